"""Float activations of integer weights (hybrid operators), rounded as TFLite rounds them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.schema import OperatorView, TensorType, TensorView

Rounding = Callable[[ir.Value], ir.Value]

_FLOAT, _DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE


def hybrid_input(
    g: Graph,
    value: ir.Value,
    input: TensorView,
    filter: TensorView,
    *,
    axes: Sequence[int],
    asymmetric: bool,
) -> ir.Value:
    """`value`, which is `input`; where `g` is made to follow TFLite and the operator is hybrid, as
    the reals that its 8-bit codes stand for, one scale for each slice that spans `axes`."""
    hybrid = input.type is TensorType.FLOAT32 and filter.type is not TensorType.FLOAT32
    if not hybrid or g.target.hybrid == "float":
        return value
    over = g.constant(axes, np.int64)
    zero = g.constant(0, np.float32)
    low = g.op("Min", g.op("ReduceMin", value, over, keepdims=1), zero)
    high = g.op("Max", g.op("ReduceMax", value, over, keepdims=1), zero)
    return _asymmetric(g, value, low, high) if asymmetric else _symmetric(g, value, low, high)


def row_rounding(op: OperatorView[Any], g: Graph, filter: TensorView) -> Rounding | None:
    """How activations of `op` are rounded, row by row, before they meet the weights `filter`; None
    where they are not."""
    if g.target.hybrid == "float" or filter.type is TensorType.FLOAT32:
        return None
    asymmetric = op.options.asymmetric_quantize_inputs
    input = op["input"]
    return lambda x: hybrid_input(g, x, input, filter, axes=[-1], asymmetric=asymmetric)


def _symmetric(g: Graph, value: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """Codes -127 to 127 around 0."""
    largest = g.constant(127, np.float32)
    reach = g.op("Max", g.op("Neg", low), high)
    reach = g.op("Where", g.op("Equal", reach, g.constant(0, np.float32)), largest, reach)
    steps = g.op("Mul", value, g.op("Div", largest, reach))
    codes = g.op("Clip", _rounded(g, steps, np.float32), g.op("Neg", largest), largest)
    return g.op("Mul", codes, g.op("Div", reach, largest))


def _asymmetric(g: Graph, value: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """Codes -128 to 127; the zero point is found in double precision from the end nearer to 0."""
    ends = [g.constant(end, np.float64) for end in (-128, 127)]
    low, high = (g.op("Cast", end, to=_DOUBLE) for end in (low, high))
    width = g.op("Sub", high, low)
    flat = g.op("Cast", g.op("Equal", width, g.constant(0, np.float64)), to=_DOUBLE)
    width = g.op("Add", width, g.op("Mul", flat, g.constant(255, np.float64)))
    step = g.op("Div", width, g.constant(255, np.float64))
    below, above = (g.op("Div", end, step) for end in (low, high))
    nearer = g.op(
        "Less",
        g.op("Sub", g.constant(128, np.float64), below),
        g.op("Add", g.constant(127, np.float64), above),
    )
    zero_points = (
        g.op("Cast", _rounded(g, g.op("Sub", end, steps), np.float64), to=_FLOAT)
        for end, steps in zip(ends, (below, above), strict=True)
    )
    bounds = [g.constant(end, np.float32) for end in (-128, 127)]
    zero_point = g.op("Clip", g.op("Where", nearer, *zero_points), *bounds)
    scale = g.op("Cast", step, to=_FLOAT)
    steps = g.op("Mul", value, g.op("Reciprocal", scale))
    codes = g.op("Clip", _rounded(g, g.op("Add", zero_point, steps), np.float32), *bounds)
    return g.op("Mul", g.op("Sub", codes, zero_point), scale)


def _rounded(g: Graph, value: ir.Value, dtype: type[np.floating]) -> ir.Value:
    """To whole numbers, halves away from zero."""
    whole = g.op("Floor", g.op("Add", g.op("Abs", value), g.constant(0.5, dtype)))
    return g.op("Mul", g.op("Sign", value), whole)
