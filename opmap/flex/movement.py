"""TensorFlow's operators that move elements, which none of TFLite's own is as."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import (
    FLOATS,
    INTEGERS,
    computed_type,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.indices import (
    affordable,
    failing,
    flat_rows,
    rows_at,
    scattered,
    sizes_of,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.shapes.flex.movement import slice_places, unique_axis
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import has_zero, is_known, quotient

View = OperatorView[Any]
_T = TensorType
_MOVED = FLOATS | INTEGERS | {_T.BOOL}
_ADDED = frozenset({_T.FLOAT32, _T.FLOAT64}) | INTEGERS
_INT64 = ir.DataType.INT64

_SCATTERS = {
    "TensorScatterAdd": "add",
    "TensorScatterMax": "max",
    "TensorScatterMin": "min",
    "TensorScatterSub": "add",
    "TensorScatterUpdate": "none",
}


@flex_translator(*_SCATTERS)
def tensor_scatter(op: View, g: Graph) -> None:
    """ScatterElements into the rows of the tensor."""
    name = op.name.removeprefix("Flex")
    tensor, indices, updates = op["tensor"], op["indices"], op["updates"]
    types = _MOVED if name == "TensorScatterUpdate" else _ADDED - {_T.UINT64}
    depth = indices.shape[-1]
    if has_zero(*tensor.shape, *indices.shape, *updates.shape):
        raise Untranslatable("no index or no element")
    if node_of(op)["bad_indices_policy"] not in ("", "DEFAULT", "ERROR"):
        raise Untranslatable("indices out of bounds that are left out")
    count = quotient(indices.shape[:-1])
    sizes = tensor.shape[:depth]
    limits = sizes if is_known(*sizes) else g.shape(sizes)
    rows = flat_rows(g, indices, count, depth, limits, depth)
    value = read_computed(g, updates, types, Layout.LAST)
    value = g.op("Neg", value) if name == "TensorScatterSub" else value
    _write_rows(op, g, tensor, (rows, value), (depth, _SCATTERS[name], types))


def _write_rows(
    op: View,
    g: Graph,
    tensor: TensorView,
    updates: tuple[ir.Value, ir.Value],
    how: tuple[int, str, frozenset[TensorType]],
) -> None:
    """`tensor` combined with rows, in the order that they have: in ONNX Runtime's ScatterND threads
    race for a row that occurs twice.

    Args:
        updates: int64 [N], and N rows.
        how: how many axes count rows, the reduction, and the types.
    """
    (rows, value), (depth, reduction, types) = updates, how
    width = tensor.shape[depth:]
    if not is_known(*width):
        raise Untranslatable("rows of a size that is not known")
    base = g.reshape(read_computed(g, tensor, types, Layout.LAST), (-1, prod(width)))
    each = g.op("Concat", g.op("Shape", rows), g.ints([prod(width)]), axis=0)
    places = g.op("Expand", g.op("Unsqueeze", rows, g.ints([1])), each)
    value = g.op("Reshape", value, each)
    result = g.op("ScatterElements", base, places, value, axis=0, reduction=reduction)
    write_computed(g, op.output, g.reshape(result, op.output.shape), Layout.LAST)


_INPLACE = {"InplaceAdd": "add", "InplaceSub": "add", "InplaceUpdate": "none"}


@flex_translator(*_INPLACE)
def inplace(op: View, g: Graph) -> None:
    """ScatterElements of rows whose numbers wrap around."""
    name = op.name.removeprefix("Flex")
    x, rows, v = op["x"], op["i"], op["v"]
    types = _MOVED if name == "InplaceUpdate" else _ADDED
    if has_zero(*x.shape, *v.shape) or x.rank != v.rank:
        raise Untranslatable("no element")
    numbers = g.op("Mod", g.reshape(g.whole(rows), (-1,)), g.size(x.shape[0]))
    value = read_computed(g, v, types, Layout.LAST)
    value = g.op("Neg", value) if name == "InplaceSub" else value
    _write_rows(op, g, x, (numbers, value), (1, _INPLACE[name], types))


@flex_translator("TensorStridedSliceUpdate")
def tensor_strided_slice_update(op: View, g: Graph) -> None:
    """ScatterElements at the places of a slice that the file tells."""
    whole, value = op["input"], op["value"]
    bounds = [op[name].data for name in ("begin", "end", "strides")]
    known = [each for each in bounds if each is not None]
    if len(known) < 3 or not is_known(*whole.shape):
        raise Untranslatable("a slice that the file does not tell")
    places = slice_places(op, whole.shape, known)
    if places.shape != value.shape or not places.size:
        raise Untranslatable(f"values of shape {value.shape}, expected {places.shape}")
    base = g.reshape(read_computed(g, whole, _MOVED, Layout.LAST), (-1,))
    updates = g.reshape(read_computed(g, value, _MOVED, Layout.LAST), (-1,))
    result = g.op("ScatterElements", base, g.ints(places.reshape(-1)), updates, axis=0)
    write_computed(g, op.output, g.reshape(result, whole.shape), Layout.LAST)


@flex_translator("InvertPermutation")
def invert_permutation(op: View, g: Graph) -> None:
    """ScatterElements of the places; the graph fails unless each number is there once."""
    x = g.whole(op["x"])
    count = g.size(op["x"].shape[0])
    upwards = g.op("Range", g.ints(0), g.reshape(count, ()), g.ints(1))
    below = g.op("Less", x, g.ints(0))
    places = g.op("ScatterElements", g.op("Sub", upwards, upwards), x, upwards, axis=0)
    back = g.op("Not", g.op("Equal", g.op("GatherElements", places, x, axis=0), upwards))
    result = failing(g, places, g.op("Or", below, back))
    g.write(op.output, g.cast(result, op.output.dtype))


@flex_translator("Roll")
def roll(op: View, g: Graph) -> None:
    """Gather along each axis, of places that wrap around."""
    x, shift, axes = op["input"], op["shift"], op["axis"].data
    if axes is None or not x.rank or has_zero(*x.shape) or axes.shape != shift.shape:
        raise Untranslatable("axes that the file does not tell, or no elements")
    value = read_computed(g, x, _MOVED, Layout.LAST)
    amounts = g.reshape(g.whole(shift), (-1,))
    for place, along in enumerate(axes.reshape(-1).tolist()):
        axis = normalized_axis(along, x.rank)
        size = g.reshape(g.size(x.shape[axis]), ())
        amount = g.op("Gather", amounts, g.ints(place), axis=0)
        places = g.op("Sub", g.op("Range", g.ints(0), size, g.ints(1)), amount)
        value = g.op("Gather", value, g.op("Mod", places, size), axis=axis)
    write_computed(g, op.output, value, Layout.LAST)


@flex_translator("LinSpace")
def lin_space(op: View, g: Graph) -> None:
    """Start + step * Range, and the last number as it is."""
    types = frozenset({_T.FLOAT32, _T.FLOAT64})
    start, stop = (read_computed(g, op[name], types, Layout.LAST) for name in ("start", "stop"))
    dtype = op.output.dtype
    count = g.reshape(sizes_of(g, op["num"]), ())
    count = affordable(g, count, g.reshape(count, (1,)), op)
    none = g.op("Less", count, g.ints(1))
    steps = g.op("Range", g.ints(0), g.op("Sub", failing(g, count, none), g.ints(1)), g.ints(1))
    last = g.cast(g.larger(g.op("Sub", count, g.ints(1)), g.ints(1)), dtype)
    step = g.op("Div", g.op("Sub", stop, start), last)
    first = g.op("Add", start, g.op("Mul", step, g.cast(steps, dtype)))
    ends = g.op("Where", g.op("Equal", count, g.ints(1)), start, stop)
    g.write(op.output, g.op("Concat", first, g.reshape(ends, (1,)), axis=0))


@flex_translator("ListDiff")
def list_diff(op: View, g: Graph) -> None:
    """Compress of what equals none."""
    x, y = (read_computed(g, op[name], _MOVED, Layout.LAST) for name in ("x", "y"))
    same = g.op("Equal", g.op("Unsqueeze", x, g.ints([1])), g.op("Unsqueeze", y, g.ints([0])))
    count = g.op("ReduceSum", g.cast(same, _INT64), g.ints([1]), keepdims=0)
    kept = g.op("Equal", count, g.ints(0))
    places = g.reshape(g.op("NonZero", kept), (-1,))
    write_computed(g, op.outputs[0], g.op("Gather", x, places, axis=0), Layout.LAST)
    g.write(op.outputs[1], g.cast(places, op.outputs[1].dtype))


@flex_translator("Where")
def where(op: View, g: Graph) -> None:
    """NonZero, transposed."""
    if not op["input"].rank or op["input"].type not in _MOVED:
        raise Untranslatable(f"a scalar, or {op['input'].type.name}")
    # ONNX Runtime has NonZero of few types.
    value = g.cast(g.read(op["input"], domain=Domain.FILE), ir.DataType.BOOL)
    g.write(op.output, g.op("Transpose", g.op("NonZero", value), perm=[1, 0]))


# ONNX Runtime has Unique of these; what a NaN equals differs.
_UNIQUE = INTEGERS


@flex_translator("Unique", "UniqueV2", "UniqueWithCounts", "UniqueWithCountsV2")
def unique(op: View, g: Graph) -> None:
    """Unique, in order of appearance."""
    x = op.present_inputs()[0]
    given = op["axis"].data if "axis" in op.names else None
    if "axis" in op.names and given is None:
        raise Untranslatable("an axis that the file does not tell")
    axis = unique_axis(x.rank, given)
    if x.type not in _UNIQUE | FLOATS:
        raise Untranslatable(f"ONNX Runtime has no Unique of {x.type.name}")
    if has_zero(*x.shape):
        raise Untranslatable("no elements")
    value = read_computed(g, x, _UNIQUE | FLOATS, Layout.LAST)
    wide = computed_type(x.type)
    if wide == np.int32:
        value, wide = g.cast(value, _INT64), np.dtype(np.int64)
    along = None if x.rank == 1 else axis
    found, _, inverse, counts = g.op_multi("Unique", value, outputs=4, sorted=0, axis=along)
    if wide != op.outputs[0].dtype:
        found = g.cast(found, op.outputs[0].dtype)
    g.write(op.outputs[0], found, domain=Domain.FILE)
    for output, values in zip(op.outputs[1:], (inverse, counts), strict=False):
        g.write(output, g.cast(values, output.dtype))


@flex_translator("DynamicPartition")
def dynamic_partition(op: View, g: Graph) -> None:
    """Compress for each part; the graph fails on a part that there is not."""
    data, parts = op["data"], op["partitions"]
    if has_zero(*data.shape[parts.rank :]):
        raise Untranslatable("no elements")
    rest = data.shape[parts.rank :]
    if not is_known(*rest) and parts.rank != 1:
        raise Untranslatable("rows of a size that is not known")
    value = g.read(data, domain=Domain.FILE)
    value = value if parts.rank == 1 else g.reshape(value, (-1, *rest))
    numbers = g.reshape(g.whole(parts), (-1,))
    limit = g.ints(len(op.outputs))
    wrong = g.op("Or", g.op("Less", numbers, g.ints(0)), g.op("GreaterOrEqual", numbers, limit))
    numbers = failing(g, numbers, wrong)
    for number, output in enumerate(op.outputs):
        there = g.reshape(g.op("NonZero", g.op("Equal", numbers, g.ints(number))), (-1,))
        g.write(output, rows_at(g, value, there, data.type), domain=Domain.FILE)


@flex_translator("DynamicStitch", "ParallelDynamicStitch")
def dynamic_stitch(op: View, g: Graph) -> None:
    """ScatterElements of all rows into zeros."""
    tensors = op.present_inputs()
    indices, data = tensors[: len(tensors) // 2], tensors[len(tensors) // 2 :]
    rest = data[0].shape[indices[0].rank :]
    if has_zero(*op.output.shape) or not is_known(*rest):
        raise Untranslatable("no elements, or rows of a size that is not known")
    numbers = [g.reshape(g.whole(each), (-1,)) for each in indices]
    rows = numbers[0] if len(numbers) == 1 else g.op("Concat", *numbers, axis=0)
    parts = [g.reshape(read_computed(g, each, _MOVED, Layout.LAST), (-1, *rest)) for each in data]
    values = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=0)
    count = g.op("Add", g.op("ReduceMax", rows, keepdims=1), g.ints([1]))
    negative = g.op("Less", g.op("ReduceMin", rows, keepdims=1), g.ints([0]))
    count = failing(g, count, negative)
    sizes = g.op("Concat", count, g.ints(rest), axis=0) if rest else count
    count = affordable(g, count, sizes, op)
    zero = g.constant(0, computed_type(op.output.type))
    result = scattered(g, zero, (count, rest), rows, values, 0)
    write_computed(g, op.output, g.op("Reshape", result, sizes, allowzero=1), Layout.LAST)


@flex_translator("ConcatOffset")
def concat_offset(op: View, g: Graph) -> None:
    """CumSum of the sizes along the axis, which the file has to tell."""
    where, *sizes = op.present_inputs()
    if where.data is None:
        raise Untranslatable("an axis that the file does not tell")
    axis = normalized_axis(int(where.data.item()), sizes[0].shape[0])
    chosen = np.arange(sizes[0].shape[0]) == axis
    start = g.ints(np.zeros(len(chosen)))
    for output, each in zip(op.outputs, sizes, strict=True):
        g.write(output, g.cast(start, output.dtype))
        start = g.op("Add", start, g.op("Mul", g.whole(each), g.ints(chosen)))
