"""POW of floats and of integers."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorType, Untranslatable


def power(op: OperatorView[Any], g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Pow; of integers the graph fails on a negative exponent, unless a kernel is available.

    Integers that overflow give the lowest one, in ONNX Runtime and in TFLite. But for a single
    exponent that broadcasts TFLite multiplies, and wraps.
    """
    if op.output.type is not TensorType.INT32:
        return g.op("Pow", a, b)
    exponents, negative = op["input2"], g.op("Less", b, g.constant(0, np.int32))
    known = exponents.data
    if g.target.fallback if known is None else np.any(known < 0):
        raise Untranslatable("integer exponent that may be negative")
    if known is None:
        b = failing(g, g.cast(b, ir.DataType.INT64), negative)
    if exponents.dynamic or prod(exponents.shape) != 1 or exponents.shape == op["input1"].shape:
        return g.op("Pow", a, b)
    return _integer_power(g, a, b, 31 if known is None else int(known.max()).bit_length())


def _integer_power(g: Graph, a: ir.Value, b: ir.Value, bits: int) -> ir.Value:
    """a ** b by repeated squares, one for every bit of the exponent b."""
    two, one = g.ints(2), g.constant(1, np.int32)
    power, rest = one, g.cast(b, ir.DataType.INT64)
    for bit in range(max(bits, 1)):
        if bit:
            rest, a = g.op("Div", rest, two), g.op("Mul", a, a)
        is_set = g.cast(g.op("Mod", rest, two), ir.DataType.BOOL)
        power = g.op("Mul", power, g.op("Where", is_set, a, one))
    return power
