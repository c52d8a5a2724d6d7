"""Float activations that meet integer weights (hybrid operators), rounded as TFLite does."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.file.element_types import PACKED_BITS
from tflite_ort.schema.values.semantics import UNCLAMPED

_FLOAT, _DOUBLE, _INT32 = ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.INT32
_LOWEST, _HIGHEST = -128, 127
_CODES = _HIGHEST - _LOWEST
# Replaces a largest magnitude of 0: the codes are 0 for any scale. 255 divided by it is a float32,
# and so is, with all its bits, a 255th of it.
_LEAST = 2.0**-116


class Rounding(Enum):
    """How activations become 8-bit codes: around 0, or with a zero point; the last as XNNPACK does,
    LiteRT's default, the others as LiteRT's own kernels."""

    SYMMETRIC = "symmetric"
    ASYMMETRIC = "asymmetric"
    XNNPACK = "xnnpack"


@record
class Codes:
    """Reals (codes - zero_point) * scale.

    Args:
        codes: int32, of 8 bits; or uint8.
        zero_point: whole floats; None for 0.
        unsigned: they are uint8.
    """

    codes: ir.Value
    zero_point: ir.Value | None
    scale: ir.Value
    unsigned: bool = False

    def reals(self, g: Graph) -> ir.Value:
        """The real numbers that the codes stand for, float32."""
        steps = g.cast(self.codes, _FLOAT)
        if self.zero_point is not None:
            steps = g.op("Sub", steps, self.zero_point)
        return g.op("Mul", steps, self.scale)

    def moved(self, g: Graph) -> Codes:
        """The same reals in codes of uint8."""
        if self.unsigned:
            return self
        codes = g.op("Add", self.codes, g.constant(-_LOWEST, np.int32))
        zero_point = g.constant(-_LOWEST, np.float32)
        if self.zero_point is not None:
            zero_point = g.op("Add", self.zero_point, zero_point)
        return Codes(g.cast(codes, ir.DataType.UINT8), zero_point, self.scale, unsigned=True)


def hybrid_input(
    g: Graph,
    value: ir.Value,
    input: TensorView,
    filter: TensorView,
    *,
    axes: Sequence[int],
    asymmetric: bool,
    delegated: bool = True,
) -> ir.Value:
    """`value`, the real numbers of `input`, rounded to 8-bit codes where TFLite rounds them.

    That is in a hybrid operator, if the target asks for it. There is one scale for every slice
    that spans `axes`. `delegated` is as in `input_rounding`.
    """
    rounding = input_rounding(g, input, filter, asymmetric=asymmetric, delegated=delegated)
    return value if rounding is None else rounded(g, value, rounding, axes).reals(g)


def hybrid_image(op: OperatorView[Any], g: Graph, image: ir.Value, channels: int = 1) -> ir.Value:
    """The input [N, C, H, W]; rounded to 8 bits, image by image, if the target asks for it; cell by
    cell where LiteRT's default does so.

    Args:
        channels: their axis; 3 for an input [N, H, W, C].
    """
    axes = (channels,) if g.target.hybrid == "xnnpack" and rounds_cells(op) else (1, 2, 3)
    input, filter, taken = op["input"], op["filter"], is_delegated(op)
    asymmetric = op.op is not Op.CONV_2D or rounds_with_zero_point(filter)
    return hybrid_input(g, image, input, filter, axes=axes, asymmetric=asymmetric, delegated=taken)


def rounds_cells(op: OperatorView[Any]) -> bool:
    """Whether LiteRT's default rounds each cell [C] by itself: it multiplies rows where each window
    is one cell, of all channels."""
    input, filter = op["input"], op["filter"]
    if op.op is not Op.CONV_2D or filter.shape[3] != input.shape[3]:
        return False
    if not (are_delegated(filter) and is_delegated(op)):
        return False
    kernel, options = filter.shape[1:3], op.options
    return (*kernel, options.stride_h, options.stride_w) == (1, 1, 1, 1)


def rounds_with_zero_point(filter: TensorView) -> bool:
    """Whether TFLite's CONV_2D rounds a float input with a zero point: if channel scales differ."""
    return filter.quantization is not None and bool(np.ptp(filter.quantization.scale))


def row_rounding(op: OperatorView[Any], g: Graph, filter: TensorView) -> Rounding | None:
    """How the rows that `op`, a recurrent layer, reads are rounded for the weights `filter`; None
    for not at all. XNNPACK takes no such layer."""
    if not _is_hybrid(g, op["input"], filter):
        return None
    return _own_rounding(asymmetric=op.options.asymmetric_quantize_inputs)


def input_rounding(
    g: Graph,
    input: TensorView,
    filter: TensorView,
    *,
    asymmetric: bool,
    delegated: bool = True,
) -> Rounding | None:
    """How `input` is rounded for the weights `filter`; None for not at all.

    Args:
        delegated: XNNPACK takes the operator if the weights are constant.
    """
    if not _is_hybrid(g, input, filter):
        return None
    if g.target.hybrid == "xnnpack" and delegated and are_delegated(filter):
        return Rounding.XNNPACK
    return _own_rounding(asymmetric=asymmetric)


def is_delegated(op: OperatorView[Any]) -> bool:
    """Whether XNNPACK takes `op`, a layer of floats, if its weights are constant."""
    if op.op is Op.DEPTHWISE_CONV_2D:
        return False
    bias = op.get("bias")
    is_clamped = op.options.fused_activation_function not in UNCLAMPED
    return is_clamped and (bias is None or bias.is_constant)


def are_delegated(filter: TensorView) -> bool:
    """Whether XNNPACK takes these weights: constants, of which those of 4 and 2 bits are a matrix
    with rows of whole bytes, of 2 bits with a scale for each row."""
    bits = PACKED_BITS.get(filter.type)
    if bits is None or not filter.is_constant:
        return filter.is_constant
    if filter.rank != 2 or filter.shape[1] * bits % 8:
        return False
    quantization = filter.quantization
    scales = 0 if quantization is None else quantization.scale.size
    return filter.type is TensorType.INT4 or scales == filter.shape[0]


def _is_hybrid(g: Graph, input: TensorView, filter: TensorView) -> bool:
    """Whether `input` is rounded for the weights `filter`."""
    types = input.type is TensorType.FLOAT32 and filter.type is not TensorType.FLOAT32
    return types and g.target.rounds


def _own_rounding(*, asymmetric: bool) -> Rounding:
    """The rounding of LiteRT's own kernels."""
    return Rounding.ASYMMETRIC if asymmetric else Rounding.SYMMETRIC


def rounded(g: Graph, value: ir.Value, rounding: Rounding, axes: Sequence[int]) -> Codes:
    """`value` as codes, with one scale for every slice that spans `axes`."""
    return _ROUNDED[rounding](g, value, axes)


def rounded_rows(g: Graph, rows: ir.Value, rounding: Rounding, depth: int) -> Codes:
    """`rows` [..., depth] as codes, each row with a scale of its own; from opset 21 on."""
    if rounding is not Rounding.XNNPACK:
        return rounded(g, rows, rounding, [-1])
    factor, scale, place = _steps_like_xnnpack(g, rows, g.ints([-1]))
    step, middle = g.constant(1, np.float32), g.constant(-_LOWEST, np.uint8)
    zero_point = g.op("QuantizeLinear", place, step, middle)
    steps, ones = g.op("Mul", rows, factor), g.op("Div", scale, scale)
    codes = g.op("QuantizeLinear", steps, ones, zero_point, axis=-1, block_size=depth)
    return Codes(codes, g.cast(zero_point, _FLOAT), scale, unsigned=True)


def reach(g: Graph, value: ir.Value, axes: Sequence[int], least: float = _LEAST) -> ir.Value:
    """The largest magnitude in every slice that spans `axes`, or `least`."""
    over = g.ints(axes)
    largest = g.op("ReduceMax", g.op("Abs", value), over, keepdims=1)
    return g.op("Max", largest, g.constant(least, np.float32))


def _symmetric(g: Graph, value: ir.Value, axes: Sequence[int]) -> Codes:
    """Codes -127 to 127 around 0."""
    largest, most = reach(g, value, axes), g.constant(_HIGHEST, np.float32)
    steps = g.op("Mul", value, g.op("Div", most, largest))
    return Codes(_rounded(g, steps), None, g.op("Div", largest, most))


def _asymmetric(g: Graph, value: ir.Value, axes: Sequence[int]) -> Codes:
    """Codes -128 to 127: whole steps, to which the zero point is added."""
    over, zero = g.ints(axes), g.constant(0, np.float32)
    low = g.op("Min", g.op("ReduceMin", value, over, keepdims=1), zero)
    high = g.op("Max", g.op("ReduceMax", value, over, keepdims=1), zero)
    low, high = (g.cast(end, _DOUBLE) for end in (low, high))
    width = g.op("Sub", high, low)
    flat = g.cast(g.op("Equal", width, g.constant(0, np.float64)), _DOUBLE)
    width = g.op("Add", width, g.op("Mul", flat, g.constant(255, np.float64)))
    step = g.op("Div", width, g.constant(255, np.float64))
    zero_point, scale = _zero_point(g, low, high, step), g.cast(step, _FLOAT)
    steps = _rounded(g, g.op("Mul", value, g.op("Reciprocal", scale)))
    codes = _clipped(g, g.op("Add", zero_point, steps))
    return Codes(codes, g.cast(zero_point, _FLOAT), scale)


def _like_xnnpack(g: Graph, value: ir.Value, axes: Sequence[int]) -> Codes:
    """Codes 0 to 255, 128 more than XNNPACK's own: whole steps, halves to even, to which the zero
    point is added; all in single precision."""
    factor, scale, place = _steps_like_xnnpack(g, value, g.ints(axes))
    zero_point = g.op("Add", g.op("Round", place), g.constant(-_LOWEST, np.float32))
    steps = g.op("Add", g.op("Round", g.op("Mul", value, factor)), zero_point)
    ends = (g.constant(end, np.float32) for end in (0, _CODES))
    codes = g.cast(g.op("Clip", steps, *ends), ir.DataType.UINT8)
    return Codes(codes, zero_point, scale, unsigned=True)


def quantized_row(g: Graph, row: ir.Value) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The codes uint8 of a single row, its zero point uint8 and its scale, as `_like_xnnpack`.

    QuantizeLinear in steps of 1 rounds, adds the zero point and cuts off."""
    factor, scale, place = _steps_like_xnnpack(g, row, None)
    step, middle = g.constant(1, np.float32), g.constant(-_LOWEST, np.uint8)
    zero_point = g.op("QuantizeLinear", place, step, middle)
    return g.op("QuantizeLinear", g.op("Mul", row, factor), step, zero_point), zero_point, scale


def _steps_like_xnnpack(
    g: Graph, value: ir.Value, over: ir.Value | None
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Of every slice that spans the axes `over`, or of all: how many steps are in 1, how large one
    is, and the place of 0 among codes -128 to 127, not rounded yet.

    The place is counted from the end of the range that is nearer to 0. Both ends give the same
    number but for the last bit, which decides in symmetric rows: there it is halfway between two
    codes."""
    keeps, zero = int(over is not None), g.constant(0, np.float32)
    low = g.op("Min", g.op("ReduceMin", value, over, keepdims=keeps), zero)
    high = g.op("Max", g.op("ReduceMax", value, over, keepdims=keeps), zero)
    width = g.op("Max", g.op("Sub", high, low), g.constant(_LEAST, np.float32))
    factor = g.op("Div", g.constant(_CODES, np.float32), width)
    below, above = g.op("Mul", low, factor), g.op("Mul", high, factor)
    from_low = g.op("Greater", g.op("Add", below, above), g.constant(1, np.float32))
    place = g.op(
        "Where",
        from_low,
        g.op("Sub", g.constant(_LOWEST, np.float32), below),
        g.op("Sub", g.constant(_HIGHEST, np.float32), above),
    )
    return factor, g.op("Mul", width, g.constant(np.float32(1 / _CODES))), place


def _zero_point(g: Graph, low: ir.Value, high: ir.Value, step: ir.Value) -> ir.Value:
    """The code of 0, in double precision from the end of the range that is nearer to 0."""
    below, above = (g.op("Div", end, step) for end in (low, high))
    nearer = g.op(
        "Less",
        g.op("Sub", g.constant(-_LOWEST, np.float64), below),
        g.op("Add", g.constant(_HIGHEST, np.float64), above),
    )
    zero_points = (
        g.op("Sub", g.constant(end, np.float64), steps)
        for end, steps in ((_LOWEST, below), (_HIGHEST, above))
    )
    return _clipped(g, _rounded(g, g.op("Where", nearer, *zero_points)))


def _rounded(g: Graph, value: ir.Value) -> ir.Value:
    """The nearest integers, halves away from zero: whole halves less whole steps, both cut off."""
    halves = g.cast(g.op("Add", value, value), _INT32)
    return g.op("Sub", halves, g.cast(value, _INT32))


def _clipped(g: Graph, codes: ir.Value) -> ir.Value:
    return g.op("Clip", codes, *(g.constant(end, np.int32) for end in (_LOWEST, _HIGHEST)))


_ROUNDED = {
    Rounding.SYMMETRIC: _symmetric,
    Rounding.ASYMMETRIC: _asymmetric,
    Rounding.XNNPACK: _like_xnnpack,
}
