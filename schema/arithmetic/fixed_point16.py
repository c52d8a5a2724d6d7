"""tanh, the logistic function and products of 16-bit fixed-point numbers.

A number of `n` integer bits is ``code * 2**(n - 15)``. Functions of one number are tables over its
65536 codes, made once for each count of integer bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.arithmetic.fixed_point import rounding_shift_right, saturate
from tflite_ort.schema.values.kept_tables import kept_table

Array = npt.NDArray[Any]
Int16Array = npt.NDArray[np.int16]

_ONE = 32767  # of no integer bits: as near to 1 as it comes
_BLOCK = 4096
# exp(-2**k) from k = -2 up, in Q0.15.
EXP_STEPS = (25520, 19875, 12055, 4435, 600, 11, 0)
EXP_OF_MINUS_EIGHTH, THIRD = 28918, 10923


def logistic(codes: Int16Array, integer_bits: int) -> Int16Array:
    """1 / (1 + exp(-x)), without integer bits."""
    return _logistic_table(integer_bits)[codes.view(np.uint16)]


def tanh(codes: Int16Array, integer_bits: int) -> Int16Array:
    """tanh(x), without integer bits."""
    return _tanh_table(integer_bits)[codes.view(np.uint16)]


def product(a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
    """High half of ``2 * a * b``, halves upwards."""
    doubled = (np.asarray(a, np.int32) * np.asarray(b, np.int32) + 2**14) >> 15
    return np.asarray(np.minimum(doubled, 32767))


def shifted_left(x: Array, bits: int) -> Array:
    """``x * 2**bits``, held in 16 bits."""
    return np.asarray(np.clip(x << bits, -32768, 32767))


def _of_all_codes(function: Callable[[Array], Array]) -> Int16Array:
    """The results for every code at the place of its bits, made in blocks: what is computed on the
    way then takes little memory."""
    numbers = range(0, 65536, _BLOCK)
    bits = (np.arange(first, first + _BLOCK, dtype=np.uint16) for first in numbers)
    codes = (block.view(np.int16).astype(np.int32) for block in bits)
    return np.concatenate([function(block).astype(np.int16) for block in codes])


@kept_table
def _logistic_table(integer_bits: int) -> Int16Array:
    return _of_all_codes(partial(_logistic, integer_bits))


def _logistic(integer_bits: int, codes: Array) -> Array:
    above_half = _reciprocal(_exp(-np.abs(codes), integer_bits))
    positive = saturate(shifted_left(above_half, 1), np.int16)
    return np.asarray(np.select([codes > 0, codes == 0], [positive, 16384], _ONE - positive))


# Numbers of other counts TFLite has no tanh for.
_TANH_BITS = range(7)


@kept_table
def _tanh_table(integer_bits: int) -> Int16Array:
    """(1 - e) / (1 + e) for e = exp(-2 * abs(x)), with the sign of x; correctly rounded for numbers
    that TFLite has no such function for."""
    if integer_bits not in _TANH_BITS:
        return saturate(np.rint(np.tanh(_reals(15 - integer_bits)) * 2**15), np.int16)
    return _of_all_codes(partial(_tanh, integer_bits))


def _tanh(integer_bits: int, codes: Array) -> Array:
    quotient = _reciprocal(_exp(-np.abs(codes), integer_bits + 1))
    positive = saturate(shifted_left(quotient - 2**13, 2), np.int16)
    return np.asarray(np.sign(codes) * positive)


def _reciprocal(x: Array) -> Array:
    """2 / (1 + x) for x in [0, 1], in Q2.13: Newton-Raphson from 48/17 - 32/17 d."""
    half_denominator = (x + _ONE + 1) >> 1
    estimate = 23130 + product(half_denominator, -15420)
    for _ in range(3):
        error = 2**13 - product(half_denominator, estimate)
        estimate = estimate + shifted_left(product(estimate, error), 2)
    return estimate


def _exp(x: Array, integer_bits: int) -> Array:
    """exp of x <= 0, in Q0.15: a series over the last quarter, the rest of x bit by bit."""
    fraction_bits = 15 - integer_bits
    quarter = 1 << (fraction_bits - 2)
    last = (x & (quarter - 1)) - quarter
    result, remainder = _exp_of_last_quarter(shifted_left(last, integer_bits)), last - x
    for step, multiplier in enumerate(EXP_STEPS[: integer_bits + 2]):
        taken = remainder & (quarter << step) != 0
        result = np.where(taken, product(result, multiplier), result)
    if integer_bits > 5:
        result = np.where(x < -(1 << (20 - integer_bits)), 0, result)
    return np.where(x == 0, _ONE, result)


def _exp_of_last_quarter(x: Array) -> Array:
    """exp of x in [-1/4, 0): exp(-1/8) * (1 + y + y**2/2 + y**3/6 + y**4/24), y = x + 1/8."""
    y = x + (1 << 12)
    y2 = product(y, y)
    y3 = product(y2, y)
    quarter_y4 = rounding_shift_right(product(y2, y2), 2)
    tail = rounding_shift_right(product(quarter_y4 + y3, THIRD) + y2, 1)
    result = EXP_OF_MINUS_EIGHTH + product(EXP_OF_MINUS_EIGHTH, y + tail)
    return np.asarray(np.minimum(result, 32767))


def _reals(fraction_bits: int) -> npt.NDArray[np.float64]:
    """The real value of every 16-bit code, at the place of its bits."""
    codes = np.arange(65536, dtype=np.uint16).view(np.int16)
    return np.multiply(codes, 2.0**-fraction_bits, dtype=np.float64)


@kept_table
def truncated_logistic() -> Int16Array:
    """The logistic function of numbers with 12 fraction bits, cut off after 15, at the place of
    their bits; computed in floats."""
    exp = np.exp(-_reals(12)).astype(np.float32)
    return saturate(np.trunc(1 / (1 + exp) * np.float32(32768)), np.int16)


@kept_table
def truncated_tanh(fraction_bits: int) -> Int16Array:
    """tanh likewise."""
    values = np.tanh(_reals(fraction_bits)).astype(np.float32)
    return saturate(np.trunc(values * np.float32(32768)), np.int16)
