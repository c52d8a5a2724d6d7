"""Fixed-point arithmetic of TFLite's quantized reference kernels, vectorised.

A real multiplier `m` is held as `q31 * 2**(shift - 31)` with `q31` in [2**30, 2**31). Multipliers
may be arrays (one per channel): they broadcast over the last axis, as numpy does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.integer[Any]]
Int32Array = npt.NDArray[np.int32]

_INT32_MAX = 2**31 - 1
# Of a multiplier: every code but 0 becomes an outermost one.
_LARGEST_MULTIPLIER = 2.0**128
# A ratio of scales; sums of codes times it, and differences of them, are finite.
_LARGEST_RATIO = 2.0**64
# A 32-bit number to which a zero point can be added.
_MOST_SHIFTED = 2**31 - 2**16
# Moves halves of 32-bit numbers away from zero before they are rounded to even, and nothing else
# over a half.
_TIE_BREAK = 1 + 2.0**-34


def round_half_away(x: npt.ArrayLike) -> npt.NDArray[Any]:
    """C's `round`: halves go away from zero; the float dtype of `x` is kept."""
    value = np.asarray(x)
    whole = np.trunc(value)
    return np.asarray(whole + np.trunc(2 * (value - whole)), value.dtype)


def quantize_multiplier(multiplier: npt.ArrayLike) -> tuple[Int32Array, Int32Array]:
    """(q31, shift) of `multiplier` (float64); below 2**-32 it is flushed to zero, and an infinite
    one is a large one."""
    mantissa, exponent = np.frexp(
        np.minimum(np.asarray(multiplier, np.float64), _LARGEST_MULTIPLIER)
    )
    q31 = round_half_away(mantissa * 2.0**31).astype(np.int64)
    carry = q31 == 2**31
    q31 = np.where(carry, q31 >> 1, q31)
    shift = np.where(carry, exponent + 1, exponent)
    tiny = (shift < -31) | (q31 == 0)
    q31, shift = np.where(tiny, 0, q31), np.where(tiny, 0, shift)
    return q31.astype(np.int32), shift.astype(np.int32)


def divided_multiplier(q31: int, shift: int, divisor: int) -> tuple[Int32Array, Int32Array]:
    """A multiplier over `divisor`, cut to 31 bits after as many shifts as they leave room for."""
    room = min(divisor.bit_length() - 1, 32, 31 + shift)
    return np.asarray((q31 << room) // divisor, np.int32), np.asarray(shift - room, np.int32)


def rounding_doubling_high_mul(a: npt.ArrayLike, b: npt.ArrayLike) -> Int32Array:
    """High half of `2 * a * b` for int32 operands: round(a * b / 2**31), halves upwards."""
    product = np.multiply(a, b, dtype=np.int64)
    product += 2**30
    product >>= 31
    # Only (-2**31)**2 leaves the int32 range.
    return np.asarray(np.minimum(product, _INT32_MAX), np.int32)


def rounding_shift_right(x: npt.ArrayLike, exponent: npt.ArrayLike) -> IntArray:
    """`x / 2**exponent` on integers, halves away from zero; the integer dtype of `x` is kept."""
    value = np.asarray(x)
    if value.dtype.itemsize <= 4:
        factor = np.ldexp(_TIE_BREAK, -np.asarray(exponent))
        return np.asarray(np.rint(value * factor), value.dtype)
    half = (np.int64(1) << np.asarray(exponent, np.int64)) >> 1
    wide = value + half - ((value < 0) & (half > 0))
    return np.asarray(wide >> exponent, value.dtype)


def saturating_shift_left(x: npt.ArrayLike, exponent: npt.ArrayLike) -> IntArray:
    """`x * 2**exponent` held inside the integer dtype of `x`."""
    value = np.asarray(x)
    return saturate(value.astype(np.int64) << np.asarray(exponent, np.int64), value.dtype)


def multiply_by_quantized_multiplier(
    x: npt.ArrayLike, q31: npt.ArrayLike, shift: npt.ArrayLike
) -> Int32Array:
    """`round(x * q31 * 2**(shift - 31))` with two roundings: high product, then right shift.

    `x` is int32 or fits it. What a left shift moves out of 32 bits, which C leaves undefined, is
    near the lowest or the highest number.
    """
    value, shift = np.asarray(x), np.asarray(shift, np.int64)
    if shift.max(initial=0) > 0:
        wide = value.astype(np.int64) << np.clip(shift, 0, 32)
        value = np.clip(wide, -_MOST_SHIFTED, _MOST_SHIFTED)
    return np.asarray(
        rounding_shift_right(rounding_doubling_high_mul(value, q31), np.maximum(-shift, 0)),
        np.int32,
    )


def multiply_wide_by_quantized_multiplier(
    x: npt.ArrayLike, q31: npt.ArrayLike, shift: npt.ArrayLike
) -> Int32Array:
    """The 64-bit accumulator's rescale: `q31` cut to 15 bits, one rounding, halves upwards. A shift
    to the left, which C leaves undefined, saturates."""
    q15, total = narrow_multiplier(q31, shift)
    product, right = np.asarray(x, np.int64) * q15, np.maximum(total, 1)
    narrow = ((product + (np.int64(1) << (right - 1))) >> right).astype(np.int32)
    if total.min(initial=1) > 0:
        return narrow
    wide = np.clip(np.ldexp(product, -np.minimum(total, 0)), -_MOST_SHIFTED, _MOST_SHIFTED)
    return np.where(total > 0, narrow, wide.astype(np.int32))


def narrow_multiplier(q31: npt.ArrayLike, shift: npt.ArrayLike) -> tuple[IntArray, IntArray]:
    """(q15, n), int64, with about q31 * 2**(shift - 31) = q15 * 2**-n: `q31` cut to 15 bits."""
    q31 = np.asarray(q31, np.int64)
    q15 = np.where(q31 < 0x7FFF0000, (q31 + 2**15) >> 16, 0x7FFF)
    return q15, 15 - np.asarray(shift, np.int64)


def shifts_all_out(multiplier: float) -> bool:
    """Whether TFLite's vectors shift every bit of an int32 out before they multiply it: what they
    make is 0."""
    return multiplier >= 2.0**31


def rescale(x: npt.ArrayLike, multiplier: npt.ArrayLike) -> Int32Array:
    """`x * multiplier` for int32 `x`, as `multiply_by_quantized_multiplier` rounds it."""
    return multiply_by_quantized_multiplier(x, *quantize_multiplier(multiplier))


def held_ratio(ratio: float | np.float32) -> np.float32:
    """A ratio of scales, or one so large that every code but 0 becomes an outermost one."""
    return np.float32(min(ratio, _LARGEST_RATIO))


def power_of_two_shifts(scales: Sequence[np.float32]) -> tuple[int, int] | None:
    """The right shifts of two 16-bit operands to the unit of the output, if all three `scales` are
    powers of two. TFLite refuses them unless the smaller one is 0 (see `shifts_refusal`)."""
    logs = [np.log2(scale) for scale in scales]
    exponents = [round(float(log)) for log in logs]
    if any(np.abs(float(log) - e) >= 1e-3 for log, e in zip(logs, exponents, strict=True)):
        return None
    return exponents[2] - exponents[0], exponents[2] - exponents[1]


def shifts_refusal(scales: Sequence[np.float32]) -> str:
    """Why TFLite refuses these `scales` of two 16-bit inputs and the output."""
    first, second, output = (f"{float(scale):g}" for scale in scales)
    return (
        f"the inputs have the int16 scales {first} and {second}, the output {output}: TFLite takes "
        "powers of two (within 0.07 %) only if the larger scale of the inputs is the output's"
    )


def saturate(x: npt.NDArray[Any], dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """`x` cut to the range of the integer `dtype`, and of that dtype."""
    bounds = np.iinfo(np.dtype(dtype))
    return np.asarray(np.minimum(np.maximum(x, bounds.min), bounds.max), dtype)


def leading_zeros(x: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Zero bits above the highest set bit of non-negative 32-bit integers; 32 for 0."""
    _, exponent = np.frexp(np.asarray(x, np.float64))
    return 32 - exponent.astype(np.int64)


def reciprocal(x: npt.ArrayLike, integer_bits: int) -> tuple[Int32Array, npt.NDArray[np.int64]]:
    """1 / `x` for positive int32 `x` with `integer_bits` integer bits.

    Returns: (r, n) with 1 / x = r * 2**(-31 - n), r in [2**30, 2**31).
    """
    shift = leading_zeros(x)
    fraction = (np.asarray(x, np.int64) << shift) - 2**31
    half_denominator = (fraction + _INT32_MAX + 1) >> 1
    # Newton-Raphson from 48/17 - 32/17 d, in Q2.29.
    estimate = 1515870810 + rounding_doubling_high_mul(half_denominator, -1010580540)
    for _ in range(3):
        error = 2**29 - rounding_doubling_high_mul(half_denominator, estimate)
        correction = rounding_doubling_high_mul(estimate, error)
        estimate = estimate + saturating_shift_left(correction, 2)
    return np.asarray(saturating_shift_left(estimate, 1), np.int32), integer_bits - shift


_EXP_STEPS = (1672461947, 1302514674, 790015084, 290630308, 39332535, 720401, 242)


def exp_of_negative(x: npt.ArrayLike, integer_bits: int) -> Int32Array:
    """exp of int32 `x` <= 0 with `integer_bits` integer bits, as Q0.31.

    exp(x) = exp(a) * product of exp(-2**k): `a` in [-1/4, 0) by a series around -1/8, the
    rest of `x` bit by bit from -1/4 up to -16.
    """
    value = np.asarray(x, np.int32)
    fraction_bits = 31 - integer_bits
    quarter = np.int32(1 << (fraction_bits - 2))
    interval = (value & (quarter - np.int32(1))) - quarter
    result = _exp_of_last_quarter(saturating_shift_left(interval, integer_bits))
    remainder = interval - value
    for step, multiplier in enumerate(_EXP_STEPS[: integer_bits + 2]):
        taken = remainder & np.int32(1 << (fraction_bits - 2 + step)) != 0
        result = np.where(taken, rounding_doubling_high_mul(result, multiplier), result)
    return np.where(value == 0, np.int32(_INT32_MAX), result)


def _exp_of_last_quarter(x: IntArray) -> Int32Array:
    """exp of Q0.31 `x` in [-1/4, 0): exp(-1/8) * (1 + y + y**2/2 + y**3/6 + y**4/24)."""
    exp_of_minus_eighth, third = 1895147668, 715827883
    y = x + np.int32(1 << 28)
    y2 = rounding_doubling_high_mul(y, y)
    y3 = rounding_doubling_high_mul(y2, y)
    quarter_y4 = rounding_shift_right(rounding_doubling_high_mul(y2, y2), 2)
    tail = rounding_shift_right(rounding_doubling_high_mul(quarter_y4 + y3, third) + y2, 1)
    product = rounding_doubling_high_mul(exp_of_minus_eighth, y + tail)
    return np.asarray(exp_of_minus_eighth + product, np.int32)


def log_of_sum(x: npt.ArrayLike) -> Int32Array:
    """ln of `x` >= 1 with 12 integer bits, as Q5.26.

    x = 2**k * r**2 with r around 2**(-1/4); ln r is a quotient of polynomials in r - 2**(-1/4).
    """
    value, half_root, quarter_root = np.asarray(x, np.int64), 1518500250, 1805811301
    zeros = leading_zeros(value)
    lower = np.minimum(_times(value << (zeros - 1), half_root) << 1, _INT32_MAX)
    lower_power = ((12 - zeros) << 25) + (1 << 23)
    zeros = leading_zeros(_times(value, half_root)) - 1
    upper = np.minimum(value << zeros, _INT32_MAX)
    upper_power = ((12 - zeros) << 25) - (1 << 23)
    root, power = np.minimum(lower, upper), np.maximum(lower_power, upper_power)
    middle, offset = (root + quarter_root + 1) >> 1, 2 * (root - quarter_root)
    square = _times(offset, offset)
    numerator = _times(offset, root) + _times(_times(offset, square), 117049297)
    slope = 1057819769 + offset + _times(127690142, square)
    denominator = _times(middle, slope) + _times(638450708, offset)
    inverse, _ = reciprocal(denominator + 2**31, 0)
    fraction = _times(rounding_shift_right(numerator, 6), inverse)
    doubled = (_times(power, 1488522236) + fraction) << 1
    return np.asarray(np.clip(doubled, -(2**31), _INT32_MAX), np.int32)


def _times(a: npt.ArrayLike, b: npt.ArrayLike) -> npt.NDArray[np.int64]:
    return rounding_doubling_high_mul(a, b).astype(np.int64)


def inverse_sqrt(x: npt.ArrayLike) -> tuple[Int32Array, npt.NDArray[np.int64]]:
    """(q31, shift) with 1 / sqrt(`x`) = q31 * 2**(shift - 31) for positive int32 `x`."""
    value = np.asarray(x, np.int64)
    large = value >= 2**29
    shift = np.where(large, 12, 11)
    normal = np.where(large, value >> 2, np.maximum(value, 1))
    pairs = (leading_zeros(normal) - 1) // 2 - 1
    shift, normal = shift - pairs, normal << (2 * pairs)
    # Newton-Raphson on the inverse square root, in Q3.28.
    half = rounding_shift_right(normal >> 1, 1)
    estimate: IntArray = np.full_like(normal, 1 << 28)
    three_halves = (1 << 28) + (1 << 27)
    for _ in range(5):
        square = rounding_doubling_high_mul(estimate, estimate)
        cube = saturating_shift_left(rounding_doubling_high_mul(square, estimate), 6)
        step = rounding_doubling_high_mul(three_halves, estimate).astype(np.int64)
        step = step - rounding_doubling_high_mul(half, cube)
        estimate = saturating_shift_left(step.astype(np.int32), 3)
    root = rounding_doubling_high_mul(estimate, 1518500250).astype(np.int64)
    root, shift = np.where(shift < 0, root << np.maximum(-shift, 0), root), np.maximum(shift, 0)
    one = value <= 1
    return np.where(one, _INT32_MAX, root).astype(np.int32), np.where(one, 0, -shift)
