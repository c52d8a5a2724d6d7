"""TensorFlow's operators on sparse tensors: indices [N, rank], values [N], and the sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import (
    FLOATS,
    INTEGERS,
    computed_type,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.flex.reductions import ascending, write_segments
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.indices import affordable, bounded, failing, scattered, sizes_of
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, Untranslatable
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import normalized_axes
from tflite_ort.schema.values.sizes import has_zero, is_known

View = OperatorView[Any]
_T = TensorType
_WIDE = frozenset({_T.FLOAT32, _T.FLOAT64})
_MOVED = FLOATS | INTEGERS | {_T.BOOL}
_SEGMENTS = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@flex_translator(*_SEGMENTS, *(f"{name}WithNumSegments" for name in _SEGMENTS))
def segments(op: View, g: Graph) -> None:
    """Gather, and ScatterElements (add)."""
    name = op.name.removeprefix("FlexSparse").removesuffix("WithNumSegments")
    data, ids = op["data"], op["segment_ids"]
    types = _WIDE | INTEGERS - {_T.UINT64} if name == "SegmentSum" else _WIDE
    if has_zero(*data.shape, *ids.shape):
        raise Untranslatable("no element")
    value = read_computed(g, data, types, Layout.LAST)
    rows = g.op("Gather", value, bounded(g, op["indices"], data.shape[0]), axis=0)
    count = None
    if "num_segments" in op.names:
        count = g.reshape(sizes_of(g, op["num_segments"]), (1,))
    write_segments(op, g, name, (rows, ids.shape[0]), ascending(g, ids), count)


def _columns(g: Graph, indices: ir.Value, rank: int) -> list[ir.Value]:
    """The indices along each axis, int64 [N]."""
    return [g.op("Gather", indices, g.ints(axis), axis=1) for axis in range(rank)]


def _inside(g: Graph, indices: ir.Value, sizes: ir.Value) -> ir.Value:
    """`indices` in a graph that fails if one is out of bounds."""
    wrong = g.op("Or", g.op("Less", indices, g.ints(0)), g.op("GreaterOrEqual", indices, sizes))
    return failing(g, indices, wrong)


@flex_translator("SparseSlice")
def sparse_slice(op: View, g: Graph) -> None:
    """Compress of what is inside, and Sub of the start."""
    sizes, start, size = (g.whole(op[name]) for name in ("shape", "start", "size"))
    zero = g.ints([0])
    start, size = (failing(g, each, g.op("Less", each, zero)) for each in (start, size))
    indices = _inside(g, g.whole(op["indices"]), sizes)
    fits = g.op(
        "And",
        g.op("GreaterOrEqual", indices, start),
        g.op("Less", indices, g.op("Add", start, size)),
    )
    kept = g.op("ReduceMin", g.cast(fits, ir.DataType.INT64), g.ints([1]), keepdims=0)
    kept = g.cast(kept, ir.DataType.BOOL)
    value = read_computed(g, op["values"], _MOVED, Layout.LAST)
    g.write(op.outputs[0], g.op("Sub", g.op("Compress", indices, kept, axis=0), start))
    write_computed(g, op.outputs[1], g.op("Compress", value, kept, axis=0), Layout.LAST)
    left = g.op("Max", g.op("Min", size, g.op("Sub", sizes, start)), zero)
    g.write(op.outputs[2], left)


@flex_translator("SparseReduceSum")
def reduce_sum(op: View, g: Graph) -> None:
    """ScatterElements (add) at the places that the kept axes tell."""
    axes, rank = op["reduction_axes"].data, op["input_indices"].shape[-1]
    if axes is None or not is_known(rank) or not rank:
        raise Untranslatable("axes that are computed")
    summed = normalized_axes(axes, rank)
    kept = [axis for axis in range(rank) if axis not in summed]
    sizes = g.whole(op["input_shape"])
    columns = _columns(g, _inside(g, g.whole(op["input_indices"]), sizes), rank)
    wanted = g.op("Gather", sizes, g.ints(np.array(kept, np.int64)), axis=0)
    place = g.op("Mul", columns[0], g.ints(0))
    for axis in kept:
        place = g.op(
            "Add", g.op("Mul", place, g.op("Gather", sizes, g.ints(axis), axis=0)), columns[axis]
        )
    value = read_computed(g, op["input_values"], _WIDE | INTEGERS - {_T.UINT64}, Layout.LAST)
    wanted = affordable(g, wanted, wanted, op)
    count = g.reshape(g.op("ReduceProd", wanted, keepdims=0), (1,))
    zeros = g.op("Expand", g.constant(0, computed_type(op.output.type)), count)
    made = g.op("ScatterElements", zeros, place, value, axis=0, reduction="add")
    made = g.op("Reshape", made, wanted, allowzero=1)
    if node_of(op)["keep_dims"] and summed:
        made = g.op("Unsqueeze", made, g.ints(list(summed)))
    write_computed(g, op.output, made, Layout.LAST)


@flex_translator("SparseTensorDenseMatMul")
def matmul(op: View, g: Graph) -> None:
    """Gather of rows, Mul, and ScatterElements (add)."""
    node, other, values = node_of(op), op["b"], op["a_values"]
    if has_zero(*other.shape, *values.shape, *op.output.shape):
        raise Untranslatable("no element")
    sizes = sizes_of(g, op["a_shape"])
    row, column = _columns(g, _inside(g, g.whole(op["a_indices"]), sizes), 2)
    height, inner = (g.op("Gather", sizes, g.ints([axis]), axis=0) for axis in range(2))
    if node["adjoint_a"]:
        row, column, height, inner = column, row, inner, height
    matrix = read_computed(g, other, _WIDE | INTEGERS, Layout.LAST)
    matrix = g.op("Transpose", matrix, perm=[1, 0]) if node["adjoint_b"] else matrix
    width = other.shape[0 if node["adjoint_b"] else 1]
    depth = g.op("Shape", matrix, start=0, end=1)
    column = failing(g, column, g.op("Not", g.op("Equal", inner, depth)))
    weights = g.op(
        "Unsqueeze", read_computed(g, values, _WIDE | INTEGERS, Layout.LAST), g.ints([1])
    )
    products = g.op("Mul", g.op("Gather", matrix, column, axis=0), weights)
    end = g.op("Concat", height, g.size(width), axis=0)
    height = affordable(g, height, end, op)
    zero = g.constant(0, computed_type(op.output.type))
    result = scattered(g, zero, (height, g.size(width)), row, products, 0, reduction="add")
    write_computed(g, op.output, result, Layout.LAST)


@flex_translator("SparseReshape")
def sparse_reshape(op: View, g: Graph) -> None:
    """The place of each element in a line, by Mul and Add, and its new indices, by Div and Mod."""
    ranks = op["input_shape"].shape[0], op["new_shape"].shape[0]
    if not is_known(*ranks) or 0 in ranks:
        raise Untranslatable("a rank that is not known")
    sizes, wanted = (g.whole(op[name]) for name in ("input_shape", "new_shape"))
    total = g.op("ReduceProd", sizes, keepdims=0)
    open_one = g.op("Less", wanted, g.ints(0))
    others = g.op("ReduceProd", g.op("Where", open_one, g.ints(1), wanted), keepdims=0)
    left = g.op("Div", total, g.larger(others, g.ints(1)))
    new = g.op("Where", open_one, left, wanted)
    same = g.op("Equal", g.op("ReduceProd", new, keepdims=0), total)
    new = failing(g, new, g.op("Not", same))
    place: ir.Value | None = None
    indices = _inside(g, g.whole(op["input_indices"]), sizes)
    for axis, index in enumerate(_columns(g, indices, ranks[0])):
        size = g.op("Gather", sizes, g.ints(axis), axis=0)
        place = index if place is None else g.op("Add", g.op("Mul", place, size), index)
    assert place is not None
    found = []
    for axis in range(ranks[1] - 1, -1, -1):
        size = g.larger(g.op("Gather", new, g.ints(axis), axis=0), g.ints(1))
        found.append(g.op("Unsqueeze", g.op("Mod", place, size), g.ints([1])))
        place = g.op("Div", place, size)
    g.write(op.outputs[0], g.op("Concat", *reversed(found), axis=1))
    g.write(op.outputs[1], new)


@flex_translator("SparseReorder")
def sparse_reorder(op: View, g: Graph) -> None:
    """TopK of the places in a line, the lowest first."""
    rank = op["input_shape"].shape[0]
    if not is_known(rank) or not rank:
        raise Untranslatable("a rank that is not known")
    sizes = g.whole(op["input_shape"])
    indices = _inside(g, g.whole(op["input_indices"]), sizes)
    place: ir.Value | None = None
    for axis, index in enumerate(_columns(g, indices, rank)):
        size = g.op("Gather", sizes, g.ints(axis), axis=0)
        place = index if place is None else g.op("Add", g.op("Mul", place, size), index)
    assert place is not None
    order = _order(g, place)
    values = read_computed(g, op["input_values"], _MOVED, Layout.LAST)
    g.write(op.outputs[0], g.op("Gather", indices, order, axis=0))
    write_computed(g, op.outputs[1], g.op("Gather", values, order, axis=0), Layout.LAST)


def _order(g: Graph, keys: ir.Value) -> ir.Value:
    """The places of keys, int64 [N], in ascending order."""
    _, order = g.op_multi("TopK", keys, g.op("Shape", keys), outputs=2, largest=0)
    return order


@flex_translator("SparseFillEmptyRows")
def fill_empty_rows(op: View, g: Graph) -> None:
    """NonZero of rows without values; TopK of rows, and of places among those of one row."""
    rank = op["indices"].shape[1]
    if not is_known(rank) or not rank or has_zero(*op["indices"].shape):
        raise Untranslatable("a rank that is not known, or no values")
    sizes = sizes_of(g, op["dense_shape"])
    indices = _inside(g, g.whole(op["indices"]), sizes)
    values = read_computed(g, op["values"], _MOVED, Layout.LAST)
    default = read_computed(g, op["default_value"], _MOVED, Layout.LAST)
    rows, height = (
        g.op("Gather", indices, g.ints(0), axis=1),
        g.op("Slice", sizes, g.ints([0]), g.ints([1])),
    )
    height = affordable(g, height, height, op, 2)
    ones = g.op("Expand", g.ints(1), g.op("Shape", rows))
    there = g.op("ScatterElements", g.op("Expand", g.ints(0), height), rows, ones, axis=0)
    empty = g.op("Equal", there, g.ints(0))
    added = g.op("Transpose", g.op("NonZero", empty), perm=[1, 0])
    more = g.op("Pad", added, g.ints([0, 0, 0, rank - 1])) if rank > 1 else added
    numbers = g.op("Concat", rows, g.reshape(added, (-1,)), axis=0)
    count = g.op("Shape", numbers)
    upwards = g.op("Range", g.ints(0), g.op("Squeeze", count), g.ints(1))
    order = _order(g, g.op("Add", g.op("Mul", numbers, count), upwards))
    fill = g.op("Expand", g.reshape(default, ()), g.op("Shape", g.reshape(added, (-1,))))
    back = g.op("ScatterElements", g.op("Sub", upwards, upwards), order, upwards, axis=0)
    whole = g.op("Concat", indices, more, axis=0)
    g.write(op.outputs[0], g.op("Gather", whole, order, axis=0))
    all_values = g.op("Concat", values, fill, axis=0)
    write_computed(g, op.outputs[1], g.op("Gather", all_values, order, axis=0), Layout.LAST)
    g.write(op.outputs[2], empty)
    g.write(op.outputs[3], g.op("Slice", back, g.ints([0]), g.op("Shape", rows)))


@flex_translator("SparseSoftmaxCrossEntropyWithLogits")
def cross_entropy(op: View, g: Graph) -> None:
    """LogSoftmax at the labels, and Softmax less one there."""
    logits, labels = op["features"], op["labels"]
    if has_zero(*logits.shape):
        raise Untranslatable("no element")
    value = read_computed(g, logits, _WIDE, Layout.LAST)
    places = g.op(
        "Unsqueeze", g.cast(bounded(g, labels, logits.shape[1]), ir.DataType.INT64), g.ints([1])
    )
    logarithms = g.op("LogSoftmax", value, axis=1)
    loss = g.op(
        "Neg", g.op("Squeeze", g.op("GatherElements", logarithms, places, axis=1), g.ints([1]))
    )
    less = g.op("Expand", g.constant(-1, logits.dtype), g.op("Shape", places))
    softmax = g.op("Softmax", value, axis=1)
    gradient = g.op("ScatterElements", softmax, places, less, axis=1, reduction="add")
    write_computed(g, op.outputs[0], loss, Layout.LAST)
    write_computed(g, op.outputs[1], gradient, Layout.LAST)
