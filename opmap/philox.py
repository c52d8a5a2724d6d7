"""The Philox 4x32 generator (Salmon et al., SC 2011) in integer nodes, and numbers in [0, 1) of its
bits."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph

LANES = 4  # 32-bit numbers of a block

_LOW, _HALF = 0xFFFFFFFF, 32
_ROUNDS = 10
_FACTORS = [[0xD2511F53], [0xCD9E8D57]]
_STEPS = [[0x9E3779B9], [0xBB67AE85]]  # what each round adds to the two halves of the key
_MANTISSA = 23
_HIGH_MANTISSA = 20  # of a float64: in the first of two numbers


def philox(g: Graph, key: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """uint64 [LANES * N], numbers below 2**32: a block for each counter.

    Args:
        key: uint64 [1].
        low: the lower halves of the counters, uint64 [N].
        high: the upper half of them all, uint64 [1].
    """
    rows = g.constant([0, 1], np.int64)
    counters = [g.op("Unsqueeze", x, rows) for x in (low, g.op("Expand", high, g.op("Shape", low)))]
    left, right = _halves(g, g.op("Concat", *counters, axis=1))
    factors, swapped = _uint64(g, _FACTORS), g.constant([1, 0], np.int64)
    for round_key in _round_keys(g, key):
        product = g.op("Gather", g.op("Mul", left, factors), swapped, axis=1)
        mixed = g.op("BitwiseXor", right, round_key)
        right, carried = _halves(g, product)
        left = g.op("BitwiseXor", carried, mixed)
    lanes = g.op("Transpose", g.op("Concat", left, right, axis=0), perm=[2, 1, 0])
    return g.op("Reshape", lanes, g.constant([-1], np.int64))


def unit(g: Graph, numbers: ir.Value) -> ir.Value:
    """float32 in [0, 1): the low 23 bits."""
    mantissa = g.op("BitwiseAnd", numbers, _uint64(g, 2**_MANTISSA - 1))
    real = g.op("Cast", mantissa, to=ir.DataType.FLOAT)
    return g.op("Mul", real, g.constant(2.0**-_MANTISSA, np.float32))


def unit_double(g: Graph, numbers: ir.Value) -> ir.Value:
    """float64 in [0, 1) of two numbers each: 20 bits of the first and all of the second."""
    pairs = g.op("Reshape", numbers, g.constant([-1, 2], np.int64))
    pairs = g.op("BitwiseAnd", pairs, _uint64(g, [2**_HIGH_MANTISSA - 1, _LOW]))
    steps = g.constant([2.0**-_HIGH_MANTISSA, 2.0 ** -(_HIGH_MANTISSA + _HALF)], np.float64)
    parts = g.op("Mul", g.op("Cast", pairs, to=ir.DataType.DOUBLE), steps)
    return g.op("ReduceSum", parts, g.constant([1], np.int64), keepdims=0)


def _round_keys(g: Graph, key: ir.Value) -> list[ir.Value]:
    """uint64 [1, 2, 1] for each round."""
    halves = g.op("Concat", *_halves(g, key), axis=0)
    first = g.op("Unsqueeze", halves, g.constant([0, 2], np.int64))
    added = np.arange(_ROUNDS, dtype=np.uint64).reshape(-1, 1, 1) * np.array(_STEPS, np.uint64)
    keys = g.op("BitwiseAnd", g.op("Add", first, _uint64(g, added)), _uint64(g, _LOW))
    return list(g.op_multi("Split", keys, outputs=_ROUNDS, axis=0, num_outputs=_ROUNDS))


def _halves(g: Graph, words: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The low 32 bits, and the high ones."""
    low = g.op("BitwiseAnd", words, _uint64(g, _LOW))
    return low, g.op("BitShift", words, _uint64(g, _HALF), direction="RIGHT")


def _uint64(g: Graph, numbers: npt.ArrayLike) -> ir.Value:
    return g.constant(numbers, np.uint64)
