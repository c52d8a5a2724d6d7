"""Counter-based random bits in integer nodes, and random numbers from these bits.

Words are 32-bit numbers in uint64.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.bits import number_of
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import TensorType, Untranslatable
from tflite_ort.schema.arithmetic.generators import (
    HIGH_MANTISSA,
    MANTISSA,
    PHILOX_FACTORS,
    PHILOX_ROUNDS,
    PHILOX_STEPS,
    THREEFRY_PARITY,
    THREEFRY_ROUNDS,
    THREEFRY_TURNS,
)
from tflite_ort.schema.values.sizes import is_known, known_product

_LOW, _HALF = 0xFFFFFFFF, 32
_MANY = 1 << 13  # numbers, from which on the numpy kernels are faster


def check_count(g: Graph, *sizes: int) -> None:
    """Refuses many numbers, which numpy draws faster, and all where 64-bit integers may be held in
    32 bits. Without kernels nothing is refused.
    """
    if g.target.fallback and not g.target.exact_integers:
        raise Untranslatable("integers of 64 bits are left to the CPU")
    if g.target.fallback and not (is_known(*sizes) and known_product(sizes) <= _MANY):
        raise Untranslatable("numpy draws many numbers faster")


def philox(g: Graph, key: ir.Value, low: ir.Value, high: ir.Value) -> ir.Value:
    """Words [4 N]: a block for each counter.

    Args:
        key: uint64 [1].
        low: the lower halves of the counters, uint64 [N].
        high: the upper halves, uint64 [N], or [1] of all.
    """
    rows = g.ints([0, 1])
    counters = [g.op("Unsqueeze", x, rows) for x in (low, g.op("Expand", high, g.op("Shape", low)))]
    left, right = _halves(g, g.op("Concat", *counters, axis=1))
    factors, swapped = _uint64(g, [[x] for x in PHILOX_FACTORS]), g.ints([1, 0])
    for round_key in _round_keys(g, key):
        product = g.op("Gather", g.op("Mul", left, factors), swapped, axis=1)
        mixed = g.op("BitwiseXor", right, round_key)
        right, carried = _halves(g, product)
        left = g.op("BitwiseXor", carried, mixed)
    lanes = g.op("Transpose", g.op("Concat", left, right, axis=0), perm=[2, 1, 0])
    return g.reshape(lanes, (-1,))


def _round_keys(g: Graph, key: ir.Value) -> list[ir.Value]:
    """uint64 [1, 2, 1] for each round."""
    halves = g.op("Concat", *_halves(g, key), axis=0)
    first = g.op("Unsqueeze", halves, g.ints([0, 2]))
    steps = np.array(PHILOX_STEPS, np.uint64).reshape(1, 2, 1)
    added = np.arange(PHILOX_ROUNDS, dtype=np.uint64).reshape(-1, 1, 1) * steps
    keys = _low(g, g.op("Add", first, _uint64(g, added)))
    return [*g.op_multi("Split", keys, outputs=PHILOX_ROUNDS, axis=0, num_outputs=PHILOX_ROUNDS)]


def threefry(g: Graph, key: ir.Value, counters: ir.Value) -> ir.Value:
    """Words [2 N]: a block for each counter.

    Args:
        key: uint64 [1].
        counters: uint64 [N].
    """
    keys = [*_halves(g, key)]
    keys.append(g.op("BitwiseXor", g.op("BitwiseXor", *keys), _uint64(g, THREEFRY_PARITY)))
    halves = zip(_halves(g, counters), keys, strict=False)
    a, b = (_low(g, g.op("Add", half, key)) for half, key in halves)
    for number in range(THREEFRY_ROUNDS):
        for turn in THREEFRY_TURNS[number % 2]:
            a = _low(g, g.op("Add", a, b))
            carried = g.op("BitShift", b, _uint64(g, _HALF - turn), direction="RIGHT")
            b = _low(g, g.op("BitShift", b, _uint64(g, turn), direction="LEFT"))
            b = g.op("BitwiseXor", g.op("BitwiseOr", b, carried), a)
        a = _low(g, g.op("Add", a, keys[(number + 1) % 3]))
        added = g.op("Add", keys[(number + 2) % 3], _uint64(g, number + 1))
        b = _low(g, g.op("Add", b, added))
    return _joined(g, a, b)


def unit(g: Graph, words: ir.Value, bits: int = MANTISSA) -> ir.Value:
    """float32 in [0, 1), one from the low bits of a word."""
    mantissa = g.op("BitwiseAnd", words, _uint64(g, 2**bits - 1))
    real = g.cast(mantissa, ir.DataType.FLOAT)
    return g.op("Mul", real, g.constant(2.0**-bits, np.float32))


def unit_double(g: Graph, words: ir.Value) -> ir.Value:
    """float64 in [0, 1), one from two words, of which the first is the high one."""
    pairs = g.reshape(words, (-1, 2))
    pairs = g.op("BitwiseAnd", pairs, _uint64(g, [2**HIGH_MANTISSA - 1, _LOW]))
    steps = g.constant([2.0**-HIGH_MANTISSA, 2.0 ** -(HIGH_MANTISSA + _HALF)], np.float64)
    parts = g.op("Mul", g.cast(pairs, ir.DataType.DOUBLE), steps)
    return g.op("ReduceSum", parts, g.ints([1]), keepdims=0)


def integers(g: Graph, words: ir.Value, type: TensorType) -> ir.Value:
    """32-bit integers, one from a word, or 64-bit ones from two words, the low one first."""
    if type in (TensorType.INT32, TensorType.UINT32):
        return number_of(g, g.cast(words, ir.DataType.INT64), type)
    pairs = g.reshape(words, (-1, 2))
    low, high = (g.op("Gather", pairs, g.ints(i), axis=1) for i in (0, 1))
    if type is TensorType.UINT64:
        raised = g.op("BitShift", high, _uint64(g, _HALF), direction="LEFT")
        return g.op("BitwiseOr", raised, low)
    low, high = (g.cast(x, ir.DataType.INT64) for x in (low, high))
    signed = g.cast(number_of(g, high, TensorType.INT32), ir.DataType.INT64)
    return g.op("Add", g.op("Mul", signed, g.ints(2**_HALF)), low)


def _joined(g: Graph, *words: ir.Value) -> ir.Value:
    """Interleave n vectors [N] to [n * N]."""
    axis = g.ints([1])
    columns = g.op("Concat", *(g.op("Unsqueeze", x, axis) for x in words), axis=1)
    return g.reshape(columns, (-1,))


def _halves(g: Graph, numbers: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The low 32 bits, and the high ones."""
    high = g.op("BitShift", numbers, _uint64(g, _HALF), direction="RIGHT")
    return _low(g, numbers), high


def _low(g: Graph, numbers: ir.Value) -> ir.Value:
    return g.op("BitwiseAnd", numbers, _uint64(g, _LOW))


def _uint64(g: Graph, numbers: npt.ArrayLike) -> ir.Value:
    return g.constant(numbers, np.uint64)
