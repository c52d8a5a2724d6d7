"""TensorFlow's gradients, but for those of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import (
    FLOAT,
    FLOATS,
    INTEGERS,
    computed_type,
    operands,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.indices import bounded
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.shapes.flex.gradients import (
    bicubic_matrix,
    bilinear_matrix,
    fake_quant_ends,
    mirrored_places,
    nearest_places,
)
from tflite_ort.schema.shapes.flex.layers import per_channel
from tflite_ort.schema.shapes.flex.movement import slice_places
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import has_zero, is_known

View = OperatorView[Any]
_SELU_ALPHA, _SELU_SCALE = 1.6732632423543772, 1.0507009873554805
# Of places that stand in a graph.
_MOST_PLACES = 1 << 20


class _Formula:
    """The nodes of a formula of values that are computed in one type."""

    def __init__(self, g: Graph, like: TensorView) -> None:
        self._g, self._type = g, computed_type(like.type)

    def __call__(self, op_type: str, *values: ir.Value | float) -> ir.Value:
        return self._g.op(op_type, *map(self._value, values))

    def _value(self, value: ir.Value | float) -> ir.Value:
        return value if isinstance(value, ir.Value) else self._g.constant(value, self._type)

    def where(self, condition: ir.Value, value: ir.Value | float, other: Any) -> ir.Value:
        """One of two."""
        return self._g.op("Where", condition, self._value(value), self._value(other))

    def kept(self, value: ir.Value, condition: ir.Value) -> ir.Value:
        """`value` by 1 or 0: what is not finite by 0 is NaN, as in TensorFlow."""
        return self._g.op("Mul", value, self._g.cast(condition, self._type))


Emit = Callable[[_Formula, ir.Value, ir.Value], ir.Value]


def _reciprocal(f: _Formula, y: ir.Value, dy: ir.Value) -> ir.Value:
    return f("Neg", f("Mul", f("Mul", y, dy), y))


def _rsqrt(f: _Formula, y: ir.Value, dy: ir.Value) -> ir.Value:
    return f("Mul", f("Mul", f("Mul", f("Neg", dy), y), 0.5), f("Mul", y, y))


def _sigmoid(f: _Formula, y: ir.Value, dy: ir.Value) -> ir.Value:
    return f("Mul", dy, f("Mul", y, f("Sub", 1, y)))


def _sqrt(f: _Formula, y: ir.Value, dy: ir.Value) -> ir.Value:
    return f("Div", f("Mul", dy, 0.5), y)


def _tanh(f: _Formula, y: ir.Value, dy: ir.Value) -> ir.Value:
    return f("Mul", dy, f("Sub", 1, f("Mul", y, y)))


def _elu(f: _Formula, given: ir.Value, y: ir.Value) -> ir.Value:
    return f.where(f("Less", y, 0), f("Mul", f("Add", y, 1), given), given)


def _relu(f: _Formula, given: ir.Value, x: ir.Value) -> ir.Value:
    return f.kept(given, f("Greater", x, 0))


def _relu6(f: _Formula, given: ir.Value, x: ir.Value) -> ir.Value:
    return f.kept(given, f("And", f("Greater", x, 0), f("Less", x, 6)))


def _selu(f: _Formula, given: ir.Value, y: ir.Value) -> ir.Value:
    below = f("Mul", given, f("Add", y, _SELU_SCALE * _SELU_ALPHA))
    return f.where(f("Less", y, 0), below, f("Mul", given, _SELU_SCALE))


def _softplus(f: _Formula, given: ir.Value, x: ir.Value) -> ir.Value:
    return f("Div", given, f("Add", f("Exp", f("Neg", x)), 1))


def _softsign(f: _Formula, given: ir.Value, x: ir.Value) -> ir.Value:
    root = f("Add", f("Abs", x), 1)
    return f("Div", given, f("Mul", root, root))


_PAIRS: dict[str, Emit] = {
    "EluGrad": _elu,
    "InvGrad": _reciprocal,
    "ReciprocalGrad": _reciprocal,
    "Relu6Grad": _relu6,
    "ReluGrad": _relu,
    "RsqrtGrad": _rsqrt,
    "SeluGrad": _selu,
    "SigmoidGrad": _sigmoid,
    "SoftplusGrad": _softplus,
    "SoftsignGrad": _softsign,
    "SqrtGrad": _sqrt,
    "TanhGrad": _tanh,
}


@flex_translator(*_PAIRS)
def pair(op: View, g: Graph) -> None:
    """The nodes of `_PAIRS`."""
    name = str(op.name).removeprefix("Flex")
    types = FLOATS | INTEGERS - {TensorType.UINT64} if name.startswith("Relu") else FLOATS
    values, layout = operands(op, g, types)
    write_computed(g, op.output, _PAIRS[name](_Formula(g, op.output), *values), layout)


@flex_translator("LeakyReluGrad")
def leaky_relu(op: View, g: Graph) -> None:
    """Where."""
    (given, x), layout = operands(op, g, FLOATS)
    f = _Formula(g, op.output)
    below = f("Mul", given, node_of(op)["alpha"])
    write_computed(g, op.output, f.where(f("Greater", x, 0), given, below), layout)


@flex_translator("BiasAddGrad")
def bias(op: View, g: Graph) -> None:
    """ReduceSum."""
    given = op["out_backprop"]
    axes = [axis for axis, size in enumerate(per_channel(op, given.rank)) if size == 1]
    value = read_computed(g, given, FLOATS | INTEGERS - {TensorType.UINT64}, Layout.LAST)
    write_computed(g, op.output, g.op("ReduceSum", value, g.ints(axes), keepdims=0), Layout.LAST)


@flex_translator("BroadcastGradientArgs")
def broadcast_axes(op: View, g: Graph) -> None:
    """The axes whose size is 1, unless all sizes are the same."""
    ranks = [tensor.shape[0] for tensor in op.present_inputs()]
    if not is_known(*ranks):
        raise Untranslatable("sizes of an unknown number of axes")
    rank = max(ranks)
    sizes = []
    for tensor, own in zip(op.present_inputs(), ranks, strict=True):
        value = g.whole(tensor)
        missing = [1] * (rank - own)
        sizes.append(g.op("Concat", g.ints(missing), value, axis=0) if missing else value)
    differ = g.op("Not", g.op("Equal", *sizes))
    other = g.op("Greater", g.op("ReduceSum", g.cast(differ, np.dtype(np.int64))), g.ints(0))
    if ranks[0] != ranks[1]:
        other = g.constant(np.ones(1, np.bool_))
    for output, each in zip(op.outputs, sizes, strict=True):
        single = g.op("And", g.op("Equal", each, g.ints(1)), other)
        axes = g.op("Reshape", g.op("NonZero", single), g.ints([-1]))
        g.write(output, g.cast(axes, output.dtype), domain=Domain.FILE)


# Layers -----------------------------------------------------------------------------------------


@flex_translator("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm(op: View, g: Graph) -> None:
    """The formulas of the numpy kernel."""
    node, x = node_of(op), op["x"]
    shape = per_channel(op, x.rank)
    axes = g.ints([axis for axis, size in enumerate(shape) if size == 1])
    given, images = (read_computed(g, op[n], FLOAT, Layout.LAST) for n in ("y_backprop", "x"))
    names = ("scale", "reserve_space_1", "reserve_space_2")
    scale, mean, variance = (read_computed(g, op[n], FLOAT, Layout.LAST) for n in names)

    def wide(value: ir.Value) -> ir.Value:
        return value if shape[-1] == -1 else g.op("Reshape", value, g.ints(shape))

    centred = g.op("Sub", images, wide(mean))
    epsilon = g.constant(node["epsilon"], np.float32)
    factor = g.op("Reciprocal", g.op("Sqrt", g.op("Add", variance, epsilon)))
    moved = g.op("Mul", given, centred)
    offset, products = (g.op("ReduceSum", v, axes, keepdims=0) for v in (given, moved))
    whole = wide(g.op("Mul", scale, factor))
    if node["is_training"]:
        less, mean_product = (g.op("ReduceMean", v, axes, keepdims=0) for v in (given, moved))
        part = g.op("Mul", mean_product, g.op("Mul", factor, factor))
        given = g.op("Sub", given, wide(less))
        given = g.op("Sub", given, g.op("Mul", centred, wide(part)))
    found = g.op("Mul", whole, given), g.op("Mul", products, factor), offset
    for output, value in zip(op.outputs, found, strict=False):
        write_computed(g, output, value, Layout.LAST)
    for output in op.outputs[3:]:
        g.write(output, g.constant(np.zeros(0, output.dtype)), domain=Domain.FILE)


@flex_translator("FakeQuantWithMinMaxArgsGradient")
def fake_quant_of_attributes(op: View, g: Graph) -> None:
    """The gradients of what is inside the range."""
    node = node_of(op)
    low, high = fake_quant_ends(op, np.float32(node["min"]), np.float32(node["max"]))
    (given, x), layout = operands(op, g, FLOAT)
    f = _Formula(g, op.output)
    inside = f("And", f("GreaterOrEqual", x, float(low)), f("LessOrEqual", x, float(high)))
    write_computed(g, op.output, f.kept(given, inside), layout)


# Images -----------------------------------------------------------------------------------------


@flex_translator("ResizeBilinearGrad", "ResizeBicubicGrad")
def resized(op: View, g: Graph) -> None:
    """Two products with the weights of rows and of columns."""
    given, image = op["grads"], op["original_image"]
    sizes = (*given.shape[1:3], *image.shape[1:3])
    if not is_known(*sizes):
        raise Untranslatable("images of an unknown size")
    matrix = bilinear_matrix if op.name == "FlexResizeBilinearGrad" else bicubic_matrix
    rows, columns = (
        matrix(op, old, new) for old, new in zip(image.shape[1:3], given.shape[1:3], strict=True)
    )
    if image.type not in FLOAT:
        raise Untranslatable(f"ONNX Runtime does not compute this of {image.type.name}")
    value = read_computed(g, given, FLOAT, Layout.FIRST)
    value = g.op("MatMul", g.op("MatMul", g.constant(rows.T), value), g.constant(columns))
    write_computed(g, op.output, value, Layout.FIRST)


def _summed(
    g: Graph, value: ir.Value, axis: int, places: np.ndarray[Any, Any], size: int
) -> ir.Value:
    """The sums of the rows of `value` along an axis that belong to each of `size` places."""
    matrix = np.zeros((len(places), size), np.float32)
    matrix[np.arange(len(places)), places] = 1
    if axis == 3:
        return g.op("MatMul", value, g.constant(matrix))
    return g.op("MatMul", g.constant(matrix.T), value)


@flex_translator("ResizeNearestNeighborGrad")
def resized_nearest(op: View, g: Graph) -> None:
    """Two products with matrices of 0 and 1."""
    sizes, old = op["grads"].shape[1:3], op.output.shape[1:3]
    if not is_known(*sizes, *old) or sizes[0] * old[0] + sizes[1] * old[1] > _MOST_PLACES:
        raise Untranslatable("images of an unknown size, or too large ones")
    value = read_computed(g, op["grads"], FLOAT, Layout.FIRST)
    for axis, (new, size) in enumerate(zip(sizes, old, strict=True), start=2):
        value = _summed(g, value, axis, nearest_places(op, size, new), size)
    write_computed(g, op.output, value, Layout.FIRST)


@flex_translator("MirrorPadGrad")
def mirrored(op: View, g: Graph) -> None:
    """ScatterElements (add) of all cells to those that they are images of."""
    shape, pairs = op.output.shape, op["paddings"].data
    if pairs is None or not is_known(*shape) or has_zero(*shape) or np.prod(shape) > _MOST_PLACES:
        raise Untranslatable("paddings or sizes that are not known")
    places = np.arange(np.prod(shape)).reshape(shape)
    for axis, (size, pair) in enumerate(zip(shape, pairs.reshape(-1, 2).tolist(), strict=True)):
        places = places.take(mirrored_places(op, size, pair), axis=axis)
    value = read_computed(g, op["input"], FLOATS, Layout.LAST)
    _write_scattered(op, g, places, value)


def _write_scattered(op: View, g: Graph, places: Any, value: ir.Value) -> None:
    """Zeros, with the values added at the places of all elements in a line."""
    zeros = g.constant(np.zeros(int(np.prod(op.output.shape)), computed_type(op.output.type)))
    flat = g.op("Reshape", value, g.ints([-1]))
    rows = g.ints(places.reshape(-1))
    result = g.op("ScatterElements", zeros, rows, flat, axis=0, reduction="add")
    write_computed(g, op.output, g.reshape(result, op.output.shape), Layout.LAST)


# Rows and slices --------------------------------------------------------------------------------


@flex_translator("StridedSliceGrad")
def strided_slice(op: View, g: Graph) -> None:
    """ScatterElements of the gradients among zeros."""
    shape = op.output.shape
    bounds = [op[name].data for name in ("begin", "end", "strides")]
    known = [each for each in bounds if each is not None]
    if len(known) < 3 or not is_known(*shape) or np.prod(shape) > _MOST_PLACES:
        raise Untranslatable("a slice or sizes that are not known")
    value = read_computed(g, op["dy"], FLOATS, Layout.LAST)
    _write_scattered(op, g, slice_places(op, shape, known), value)


@flex_translator("SparseFillEmptyRowsGrad")
def filled_rows(op: View, g: Graph) -> None:
    """Gather, and the sum of what is not gathered."""
    given, places = op["grad_values"], op["reverse_index_map"]
    values = read_computed(g, given, FLOATS, Layout.LAST)
    rows = bounded(g, places, given.shape[0])
    write_computed(g, op.outputs[0], g.op("Gather", values, rows, axis=0), Layout.LAST)
    zeros = g.op("Expand", g.constant(0, computed_type(given.type)), g.op("Shape", rows))
    others = g.op("ScatterElements", values, rows, zeros, axis=0)
    write_computed(g, op.outputs[1], g.op("ReduceSum", others, keepdims=0), Layout.LAST)


@flex_translator("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad")
def segments(op: View, g: Graph) -> None:
    """Gather of the gradients by their segments, and ScatterND (add)."""
    given, rows = op["grad"], op.output.shape[0]
    if not is_known(rows, *given.shape) or has_zero(rows, *given.shape):
        raise Untranslatable("a number of rows that is not known")
    types, long = frozenset({TensorType.FLOAT32, TensorType.FLOAT64}), ir.DataType.INT64
    values = read_computed(g, given, types, Layout.LAST)
    ids = g.cast(bounded(g, op["segment_ids"], given.shape[0]), long)
    if op.name != "FlexSparseSegmentSumGrad":
        f, wide = _Formula(g, given), computed_type(given.type)
        zero = g.constant(np.zeros(given.shape[0], wide))
        ones = g.op("Expand", g.constant(1, wide), g.op("Shape", ids))
        counts = g.op("ScatterElements", zero, ids, ones, axis=0, reduction="add")
        counts = f("Max", counts, 1)
        counts = f("Sqrt", counts) if op.name == "FlexSparseSegmentSqrtNGrad" else counts
        share = g.op("Reshape", counts, g.ints([-1, *(1,) * (given.rank - 1)]))
        values = g.op("Div", values, share)
    places = g.op("Unsqueeze", g.cast(bounded(g, op["indices"], rows), long), g.ints([1]))
    zeros = g.constant(np.zeros((rows, *given.shape[1:]), computed_type(given.type)))
    values = g.op("Gather", values, ids, axis=0)
    write_computed(
        g, op.output, g.op("ScatterND", zeros, places, values, reduction="add"), Layout.LAST
    )
