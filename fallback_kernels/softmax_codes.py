"""SOFTMAX and LOG_SOFTMAX of quantised codes, in TFLite's fixed point."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.fixed_point import (
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
from tflite_ort.fallback_kernels.function_table import int16_table, interpolated
from tflite_ort.fallback_kernels.operands import scale
from tflite_ort.schema import KernelError, OperatorView, TensorType

Array = npt.NDArray[Any]
View = OperatorView[Any]


def softmax_of_bytes(op: View, x: Array) -> Array:
    """Differences to the maximum as Q5.26, exponentials as Q0.31, their sum as Q12.19."""
    bounds = np.iinfo(op.output.dtype)
    multiplier = float(np.float32(op.options.beta)) * float(scale(op, op["input"])) * 2**26
    if multiplier <= 1:
        raise KernelError(f"beta times the input scale is too small: {multiplier}")
    q31, shift = quantize_multiplier(min(multiplier, 2.0**31 - 1))
    lowest = -math.floor(31 * 2.0**26 / 2.0 ** int(shift))
    codes = x.astype(np.int32)
    difference = codes - codes.max(axis=-1, keepdims=True)
    counted = difference >= lowest
    scaled = rounding_doubling_high_mul(np.where(counted, difference, 0) << shift, q31)
    powers = np.where(counted, exp_of_negative(scaled, 5), 0)
    total = rounding_shift_right(powers, 12).sum(axis=-1, keepdims=True, dtype=np.int64)
    if np.any(total >= 2**31):
        raise KernelError(f"the sum of {x.shape[-1]} exponentials passes 4096")
    inverse, bits = reciprocal(total, 12)
    # 256 steps above the lowest 8-bit code, 32768 above 0 for int16 (where TFLite's reference
    # kernel starts at -32768, against the quantisation it demands).
    steps, lowest_code = (15, 0) if op.output.type is TensorType.INT16 else (8, bounds.min)
    result = rounding_shift_right(rounding_doubling_high_mul(inverse, powers), bits + 31 - steps)
    return saturate(np.where(counted, result + lowest_code, lowest_code), op.output.dtype)


def softmax_of_int16(op: View, x: Array) -> Array:
    """Exponentials and the reciprocal of their sum by tables of 513 points."""
    ten_over_range, unit = 10.0 / 65535, 2.0 / 65535
    exp_table = int16_table(np.exp, ten_over_range, unit, 32767, np.float64)
    inverse_table = int16_table(_one_over_one_plus, 1.0 / 65535, unit, -32768, np.float64)
    factor = float(scale(op, op["input"]) * np.float32(op.options.beta)) / ten_over_range
    codes = x.astype(np.int32)
    difference = codes - codes.max(axis=-1, keepdims=True)
    scaled = multiply_by_quantized_multiplier(difference, *quantize_multiplier(factor))
    powers = interpolated(saturate(scaled + 32767, np.int16), exp_table).astype(np.int64)
    total = powers.sum(axis=-1, keepdims=True)
    headroom = leading_zeros(total)
    mantissa = ((total << (headroom - 1)) + 2**13) >> 14
    inverse = interpolated(saturate(mantissa - 2**15 - 2**16, np.int16), inverse_table)
    right = 31 - headroom
    result = (powers * inverse + (np.int64(1) << (right - 1))) >> right
    return np.asarray(np.clip(result, 0, 32767), np.int16)


def _one_over_one_plus(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + x))
