"""SOFTMAX and LOG_SOFTMAX of quantized codes, in TFLite's fixed point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.idioms.accumulator import quantization
from tflite_ort.fallback_kernels.idioms.operands import scale
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.arithmetic.fixed_point import (
    exp_of_negative,
    leading_zeros,
    log_of_sum,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    reciprocal,
    rounding_doubling_high_mul,
    rounding_shift_right,
    saturate,
)
from tflite_ort.schema.arithmetic.softmax_tables import softmax_powers, softmax_reciprocals

Array = npt.NDArray[Any]
View = OperatorView[Any]


@record
class Exponentials:
    """e**(beta * (x - the largest x)) of 8-bit codes along the last axis.

    Args:
        difference: codes less the largest, int32.
        counted: where the difference is not below `lowest`; the exponential is 0 elsewhere.
        scaled: beta * difference as Q5.26.
        powers: the exponentials as Q0.31.
        total: their sum as Q12.19, int64.
        lowest: the lowest difference that counts.
        multiplier: beta times the scale, as a mantissa in Q0.31 and an exponent.
    """

    difference: Array
    counted: Array
    scaled: Array
    powers: Array
    total: Array
    lowest: int
    multiplier: tuple[int, int]


def is_fixed_point(op: View, beta: float) -> bool:
    """Whether TFLite's fixed point has bits for `beta` times the scale of the input."""
    return _multiplier(op, beta) > 1


def _multiplier(op: View, beta: float) -> float:
    _refuse_negative(beta)
    return float(np.float32(beta)) * float(scale(op, op["input"])) * 2**26


def _refuse_negative(beta: float) -> None:
    """Of a beta below 0 TFLite's kernels end the process, or compute something else."""
    if not beta >= 0:
        raise KernelError(f"beta is {beta}")


def exponentials(op: View, x: Array, beta: float) -> Exponentials:
    """The exponentials of codes, as SOFTMAX and LOG_SOFTMAX compute them."""
    q31, shift = quantize_multiplier(min(_multiplier(op, beta), 2.0**31 - 1))
    lowest = -math.floor(31 * 2.0**26 / 2.0 ** int(shift))
    codes = x.astype(np.int32)
    difference = codes - codes.max(axis=-1, keepdims=True, initial=np.iinfo(x.dtype).min)
    counted = difference >= lowest
    scaled = rounding_doubling_high_mul(np.where(counted, difference, 0) << shift, q31)
    powers = np.where(counted, exp_of_negative(scaled, 5), 0)
    total = rounding_shift_right(powers, 12).sum(axis=-1, keepdims=True, dtype=np.int64)
    if np.any(total >= 2**31):
        raise KernelError(f"the sum of {x.shape[-1]} exponentials passes 4096")
    return Exponentials(difference, counted, scaled, powers, total, lowest, (int(q31), int(shift)))


def softmax_of_bytes(op: View, x: Array) -> Array:
    """SOFTMAX of 8-bit codes: the exponentials divided by their sum."""
    e = exponentials(op, x, op.options.beta)
    inverse, bits = reciprocal(e.total, 12)
    # As many steps as there are codes above the lowest one that the output's quantization means;
    # TFLite's reference kernel takes all of int16 even where that begins at 0.
    bounds, lowest_code = np.iinfo(op.output.dtype), quantization(op.output).scalar_zero_point
    steps = (bounds.max - lowest_code).bit_length()
    result = rounding_shift_right(rounding_doubling_high_mul(inverse, e.powers), bits + 31 - steps)
    return saturate(np.where(e.counted, result + lowest_code, lowest_code), op.output.dtype)


def log_softmax_of_bytes(op: View, x: Array) -> Array:
    """LOG_SOFTMAX of 8-bit codes: scaled differences less the logarithm of the sum, in 1/16."""
    e = exponentials(op, x, 1.0)
    logarithm = log_of_sum(e.total).astype(np.int64)
    # Results below -32 do not fit the product, so the difference decides.
    q31, shift = e.multiplier
    back = quantize_multiplier(2.0 ** (31 - shift) / q31)
    bound = multiply_by_quantized_multiplier(logarithm - 2**31, *back)
    counted = e.difference > np.maximum(e.lowest - 1, bound)
    steps = rounding_shift_right(e.scaled - logarithm, 22)
    bounds = np.iinfo(x.dtype)
    return saturate(np.where(counted, steps + bounds.max, bounds.min), x.dtype)


def softmax_of_reals(op: View, x: Array) -> Array:
    """SOFTMAX in float32, as TFLite's optimised kernel computes it in any unit."""
    shifted = _shifted(op, x, op.options.beta)
    powers = np.exp(shifted)
    return _codes(op, powers / powers.sum(axis=-1, keepdims=True))


def log_softmax_of_reals(op: View, x: Array) -> Array:
    """LOG_SOFTMAX in float32."""
    shifted = _shifted(op, x, 1.0)
    return _codes(op, shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True)))


def _shifted(op: View, x: Array, beta: float) -> npt.NDArray[np.float32]:
    """beta times what codes are above the largest of their row, in float32."""
    codes = x.astype(np.int32)
    lowest = np.iinfo(x.dtype).min
    above = (codes - codes.max(axis=-1, keepdims=True, initial=lowest)).astype(np.float32)
    return np.asarray(above * (scale(op, op["input"]) * np.float32(beta)), np.float32)


def _codes(op: View, real: Array) -> Array:
    unit = np.float32(1) / scale(op, op.output)
    zero = quantization(op.output).scalar_zero_point
    return saturate(np.rint(real * unit) + zero, op.output.dtype)


def softmax_of_int16(op: View, x: Array) -> Array:
    """SOFTMAX of int16 codes: exponentials and the reciprocal of their sum, from tables."""
    _refuse_negative(op.options.beta)
    table = softmax_powers(float(scale(op, op["input"]) * np.float32(op.options.beta)))
    codes = x.astype(np.int32)
    largest = codes.max(axis=-1, keepdims=True, initial=np.iinfo(np.int16).min)
    powers = table[65535 + codes - largest].astype(np.int64)
    total = powers.sum(axis=-1, keepdims=True)
    headroom = leading_zeros(total)
    mantissa = ((total << (headroom - 1)) + 2**13) >> 14
    inverse = softmax_reciprocals()[np.minimum(mantissa - 2**16, 65535)].astype(np.int64)
    right = 31 - headroom
    result = (powers * inverse + (np.int64(1) << (right - 1))) >> right
    return np.asarray(np.clip(result, 0, 32767), np.int16)
