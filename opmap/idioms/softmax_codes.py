"""SOFTMAX of 16-bit codes, in TFLite's fixed point."""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.schema import OperatorView, SoftmaxOptions, Untranslatable
from tflite_ort.schema.arithmetic.softmax_tables import softmax_powers, softmax_reciprocals

_POWER_BITS = 15


def softmax_of_int16(op: OperatorView[SoftmaxOptions], g: Graph) -> None:
    """Powers and the reciprocal of their sum by Gather, exact.

    The sum is s = m * 2**n with m in [2**14, 2**15); all are whole numbers in float64. Tables have
    1 / m, and the result is power / m / 2**n, rounded.
    """
    input, output = op["input"].quantization, op.output.quantization
    assert input is not None and output is not None
    if not math.isclose(output.scalar_scale, 2**-15, rel_tol=1e-3) or output.scalar_zero_point:
        raise Untranslatable("INT16 with a zero point, or an output scale other than 1/32768")
    powers = _powers(op, g, float(input.sole_scale * np.float32(op.options.beta)))
    total = g.op("ReduceSum", powers, g.constant([-1], np.int64), keepdims=1)
    shrink = _to_power_of_two(g, total, op["input"].shape[-1])
    place = _rounded(g, g.op("Mul", g.op("Mul", total, shrink), g.constant(4, np.float64)))
    place = g.op("Min", g.op("Sub", place, g.constant(2**16, np.float64)), g.constant(65535.0))
    index = g.op("Cast", place, to=ir.DataType.INT32)
    inverse = g.op("Gather", g.constant(softmax_reciprocals()), index)
    inverse = g.op("Cast", inverse, to=ir.DataType.DOUBLE)
    factor = g.op("Mul", g.op("Mul", inverse, shrink), g.constant(2.0**-14))
    codes = g.op("Min", _rounded(g, g.op("Mul", powers, factor)), g.constant(32767.0))
    result = g.op("Cast", codes, to=ir.DataType.INT16)
    g.write(op.output, result, layout=Layout.LAST, domain=Domain.STORED)


def _powers(op: OperatorView[SoftmaxOptions], g: Graph, scale: float) -> ir.Value:
    """e**(`scale` * (code - the largest code of its row)) as Q0.15."""
    codes = g.read(op["input"], layout=Layout.LAST, domain=Domain.STORED)
    codes = g.op("Cast", codes, to=ir.DataType.INT32)
    largest = g.op("ReduceMax", codes, g.constant([-1], np.int64), keepdims=1)
    index = g.op("Sub", codes, g.op("Sub", largest, g.constant(65535, np.int32)))
    powers = g.op("Gather", g.constant(softmax_powers(scale)), index)
    return g.op("Cast", powers, to=ir.DataType.DOUBLE)


def _to_power_of_two(g: Graph, total: ir.Value, count: int) -> ir.Value:
    """2**-n that brings the sum of `count` powers below 2**15."""
    most = max((count << _POWER_BITS).bit_length() - _POWER_BITS, 1)
    limits = g.constant(2.0 ** np.arange(_POWER_BITS, _POWER_BITS + most))
    reached = g.op("Cast", g.op("GreaterOrEqual", total, limits), to=ir.DataType.INT32)
    n = g.op("ReduceSum", reached, g.constant([-1], np.int64), keepdims=1)
    return g.op("Gather", g.constant(0.5 ** np.arange(most + 1)), n)


def _rounded(g: Graph, value: ir.Value) -> ir.Value:
    return g.op("Floor", g.op("Add", value, g.constant(0.5, np.float64)))
