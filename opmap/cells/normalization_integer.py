"""The layer normalisation of TFLite's integer LSTM, for 16-bit codes, in 64-bit integers.

ONNX's Div of integers rounds towards zero, as C does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.fixed_point import TIE_BREAK, high_half, rescaled_by
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import Untranslatable
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier

Array = npt.NDArray[Any]
_ROOT_STEPS = 5
_HALF_ROOT_OF_2 = 1518500250  # in Q0.31
_MAX = 2**31 - 1
_FRACTION_BITS = 12


@record
class Norm:
    """Weights [G, C], biases [G, C] and scales of the weights [G] of normalised gates."""

    weights: Array
    bias: Array
    scales: Array

    def of_gates(self, gates: Sequence[int]) -> Norm:
        """The weights, biases and scales of some of the gates."""
        kept = list(gates)
        return Norm(self.weights[kept], self.bias[kept], self.scales[kept])


def normalized(g: Graph, sums: ir.Value, norm: Norm) -> ir.Value:
    """Normalise rows [B, G, C] of integers in float64.

    They get mean 0 and variance 1 with 10 fraction bits. Then they are multiplied by the weights,
    and the bias is added. The results have 12 fraction bits, and are clipped to 16 bits later.
    A row whose variance is small beside its mean has deviations up to 2**26: TFLite's factor for
    the squares is cut to an integer, and so the variance that it finds may be 0.
    """
    count = norm.weights.shape[1]
    codes = g.cast(sums, ir.DataType.INT64)
    mean = _divided(g, _times(g, _row_sum(g, codes), 1024), count)
    squares = _times(g, _row_sum(g, g.op("Mul", codes, codes)), 2**20 // count)
    variance = _divided(g, g.op("Sub", squares, g.op("Mul", mean, mean)), 2**20)
    flat = g.op("Less", variance, g.ints(1))
    least = np.maximum(1, (np.float32(10000) * norm.scales).astype(np.int64))[:, np.newaxis]
    variance = g.op("Where", flat, g.ints(least), variance)
    deviations = g.op("Sub", _times(g, codes, 1024), mean)
    deviations = _times_inverse_root(g, deviations, variance)
    weighted = g.op("Add", _times(g, deviations, norm.weights), g.ints(norm.bias))
    above = g.op("Greater", weighted, g.ints(0))
    half = g.op("Where", above, g.ints(512), g.ints(-512))
    rounded = _divided(g, g.op("Add", weighted, half), 1024)
    q31, shift = (part[:, np.newaxis] for part in quantize_multiplier(norm.scales))
    shift = shift + _FRACTION_BITS
    left = np.maximum(shift, 0).astype(np.int64)
    if left.max() >= 31:
        raise Untranslatable("layer normalisation of weights beyond all 16-bit results")
    if left.any():  # in 32 bits, which may wrap around
        rounded = g.cast(_times(g, rounded, 1 << left), ir.DataType.INT32)
    rounded = g.cast(rounded, ir.DataType.DOUBLE)
    return rescaled_by(g, rounded, q31, np.minimum(shift, 0), 2.0**31, bits=17)


def _times_inverse_root(g: Graph, value: ir.Value, x: ir.Value) -> ir.Value:
    """`value` / sqrt(`x`).

    Newton-Raphson in Q3.28 finds the root of a number between 1/4 and 1, `x` times a power of 4.
    """
    is_large = g.op("GreaterOrEqual", x, g.ints(2**29))
    x = g.op("Where", is_large, _divided(g, x, 4), x)
    # The number of factors of 4 by which it is too small.
    smaller = g.op("Less", x, g.ints([2 ** (29 - 2 * pairs) for pairs in range(1, 15)]))
    pairs = _row_sum(g, g.cast(smaller, ir.DataType.INT64))
    normal = g.op("Mul", x, g.op("Gather", g.ints([4**pair for pair in range(15)]), pairs))
    root = _times_high(g, _root(g, normal), g.ints(_HALF_ROOT_OF_2))
    shift = g.op("Sub", g.op("Where", is_large, g.ints(12), g.ints(11)), pairs)
    left = g.larger(g.op("Neg", shift), g.ints(0))
    root = g.op("Mul", root, g.op("Gather", g.ints([2**bits for bits in range(16)]), left))
    is_one = g.op("Less", x, g.ints(2))
    root = g.op("Where", is_one, g.ints(_MAX), root)
    right = g.op("Where", is_one, g.ints(0), g.larger(shift, g.ints(0)))
    units = g.constant([2.0**-bits * TIE_BREAK for bits in range(16)])
    high = g.cast(high_half(g, value, root), ir.DataType.DOUBLE)
    result = g.op("Round", g.op("Mul", high, g.op("Gather", units, right)))
    return g.cast(result, ir.DataType.INT64)


def _root(g: Graph, x: ir.Value) -> ir.Value:
    """1 / sqrt(x) by Newton-Raphson: the estimate e becomes e * (3 - x * e**2) / 2."""
    half = _divided(g, g.op("Add", _divided(g, x, 2), g.ints(1)), 2)
    estimate = g.ints(1 << 28)
    for _ in range(_ROOT_STEPS):
        square = _times_high(g, estimate, estimate)
        cube = _times(g, _times_high(g, square, estimate), 64)
        step = _times_high(g, estimate, g.ints((1 << 28) + (1 << 27)))
        estimate = _times(g, g.op("Sub", step, _times_high(g, half, cube)), 8)
    return estimate


def _times_high(g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """round(a * b / 2**31) of numbers that are not negative, halves upwards."""
    return _divided(g, g.op("Add", g.op("Mul", a, b), g.ints(2**30)), 2**31)


def _times(g: Graph, value: ir.Value, factor: npt.ArrayLike) -> ir.Value:
    return g.op("Mul", value, g.ints(factor))


def _divided(g: Graph, value: ir.Value, divisor: int) -> ir.Value:
    return g.op("Div", value, g.ints(divisor))


def _row_sum(g: Graph, value: ir.Value) -> ir.Value:
    return g.op("ReduceSum", value, g.ints([-1]), keepdims=1)
