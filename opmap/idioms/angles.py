"""ATAN2: the angle of a point, by Atan of a quotient."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.indices import matched
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.values.sizes import differ, may_differ

View = OperatorView[Any]


def atan2(op: View, g: Graph, y: ir.Value, x: ir.Value) -> ir.Value:
    """Atan of the smaller magnitude over the larger, reflected into the octant of (x, y).

    The quotient is in [0, 1], so infinity and 0 / 0 do not change the quadrant. A zero is negative
    where its reciprocal is.
    """
    shapes = (op["input1"].shape, op["input2"].shape)
    if differ(*shapes):
        raise Untranslatable(f"shapes {shapes[0]} and {shapes[1]} differ")
    if may_differ(*shapes):
        x = matched(g, x, y)
    return angle(g, y, x, op.output.dtype)


def angle(g: Graph, y: ir.Value, x: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """As `atan2`, of values of one shape."""
    zero, right, straight = (g.constant(turn, dtype) for turn in (0, np.pi / 2, np.pi))
    high, wide = g.op("Abs", y), g.op("Abs", x)
    quotient = g.op("Div", g.op("Min", high, wide), g.op("Max", high, wide))
    quotient = g.op("Where", g.op("Equal", high, wide), g.op("Sign", high), quotient)
    turn = _arctangent(g, quotient, dtype)
    turn = g.op("Where", g.op("Greater", high, wide), g.op("Sub", right, turn), turn)
    below, left = (
        g.op("Or", g.op("Less", v, zero), g.op("Less", g.op("Reciprocal", v), zero)) for v in (y, x)
    )
    turn = g.op("Where", left, g.op("Sub", straight, turn), turn)
    # Where(below, Neg(turn), turn) would not do: ONNX Runtime's Where loses the sign of a zero.
    sign = g.op("Where", below, g.constant(-1, dtype), g.constant(1, dtype))
    return g.op("Mul", turn, sign)


def _arctangent(g: Graph, x: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """Atan; for doubles, which ONNX Runtime lacks, Atan of float32 and one step of Newton."""
    if dtype != np.float64:
        return g.op("Atan", x)
    rough = g.op("Atan", g.cast(x, ir.DataType.FLOAT))
    rough = g.cast(rough, ir.DataType.DOUBLE)
    sine, cosine = g.op("Sin", rough), g.op("Cos", rough)
    rest = g.op("Sub", g.op("Mul", x, cosine), sine)
    return g.op("Add", rough, g.op("Div", rest, g.op("Add", cosine, g.op("Mul", x, sine))))
