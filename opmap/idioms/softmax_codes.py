"""SOFTMAX of codes: of 16 bits in TFLite's fixed point, of 8 bits by a table or in floats."""

from __future__ import annotations

import math

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, SoftmaxOptions, Untranslatable
from tflite_ort.schema.arithmetic.softmax_tables import softmax_powers, softmax_reciprocals
from tflite_ort.schema.values.sizes import LARGEST_SIZE, is_known

_POWER_BITS = 15


def softmax_of_int16(op: OperatorView[SoftmaxOptions], g: Graph) -> None:
    """SOFTMAX by Gather from a table of powers and one of reciprocals: exact.

    The sum of the powers is s = m * 2**n with m in [2**14, 2**15). All numbers are integers in
    float64. The second table has 1 / m, and the result is power / m / 2**n, rounded.
    """
    input, output = op["input"].quantization, op.output.quantization
    assert input is not None and output is not None
    if not math.isclose(output.scalar_scale, 2**-15, rel_tol=1e-3) or output.scalar_zero_point:
        raise Untranslatable("INT16 with a zero point, or an output scale other than 1/32768")
    powers = _powers(op, g, float(input.sole_scale * np.float32(op.options.beta)))
    total = g.op("ReduceSum", powers, g.ints([-1]), keepdims=1)
    shrink = _to_power_of_two(g, total, op["input"].shape[-1])
    place = _rounded(g, g.op("Mul", g.op("Mul", total, shrink), g.constant(4, np.float64)))
    place = g.op("Min", g.op("Sub", place, g.constant(2**16, np.float64)), g.constant(65535.0))
    index = g.cast(place, ir.DataType.INT32)
    inverse = g.op("Gather", g.constant(softmax_reciprocals()), index)
    inverse = g.cast(inverse, ir.DataType.DOUBLE)
    factor = g.op("Mul", g.op("Mul", inverse, shrink), g.constant(2.0**-14))
    codes = g.op("Min", _rounded(g, g.op("Mul", powers, factor)), g.constant(32767.0))
    result = g.cast(codes, ir.DataType.INT16)
    g.write(op.output, result, layout=Layout.LAST, domain=Domain.STORED)


def _powers(op: OperatorView[SoftmaxOptions], g: Graph, scale: float) -> ir.Value:
    """e**(scale * (code - largest code of the row)) in Q0.15, as float64."""
    codes = g.read(op["input"], layout=Layout.LAST, domain=Domain.STORED)
    codes = g.cast(codes, ir.DataType.INT32)
    largest = g.op("ReduceMax", codes, g.ints([-1]), keepdims=1)
    index = g.op("Sub", codes, g.op("Sub", largest, g.constant(65535, np.int32)))
    powers = g.op("Gather", g.constant(softmax_powers(scale)), index)
    return g.cast(powers, ir.DataType.DOUBLE)


def _to_power_of_two(g: Graph, total: ir.Value, count: int) -> ir.Value:
    """The 2**-n that scales the sum of `count` powers to below 2**15."""
    count = count if is_known(count) else LARGEST_SIZE
    most = max((count << _POWER_BITS).bit_length() - _POWER_BITS, 1)
    limits = g.constant(2.0 ** np.arange(_POWER_BITS, _POWER_BITS + most))
    reached = g.cast(g.op("GreaterOrEqual", total, limits), ir.DataType.INT32)
    n = g.op("ReduceSum", reached, g.ints([-1]), keepdims=1)
    return g.op("Gather", g.constant(0.5 ** np.arange(most + 1)), n)


def _rounded(g: Graph, value: ir.Value) -> ir.Value:
    return g.op("Floor", g.op("Add", value, g.constant(0.5, np.float64)))
