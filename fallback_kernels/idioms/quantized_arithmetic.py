"""ADD, SUB, MUL, DIV and SQUARED_DIFFERENCE of quantized codes, in TFLite's fixed point.

The results are output codes less the zero point, not yet clipped to the range of the type.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.operands import centred, refusal, scale
from tflite_ort.schema import KernelError, OperatorView, TensorType
from tflite_ort.schema.arithmetic.fixed_point import (
    leading_zeros,
    power_of_two_shifts,
    quantize_multiplier,
    reciprocal,
    rescale,
    rounding_doubling_high_mul,
    rounding_shift_right,
    shifts_all_out,
    shifts_refusal,
)

Array = npt.NDArray[Any]
View = OperatorView[Any]


def refuse_zero(divisor: Array) -> None:
    """Refuses a divisor of 0."""
    if not np.all(divisor):
        raise KernelError("division by 0")


def quantized_sum(op: View, a: Array, b: Array, *, sign: int) -> Array:
    """a + sign * b, both in units of twice the larger scale over 2**20 (int16: 2**15).

    If such a unit is one of the output or more, TFLite's ADD ends the process, and its SUB shifts
    all bits out. Here it is the true result.
    """
    if op.output.type is TensorType.INT16 and op.options.pot_scale_int16:
        scales = [scale(op, tensor) for tensor in (*op.present_inputs(), op.output)]
        shifts = power_of_two_shifts(scales)
        if shifts is not None:
            if min(shifts) != 0:
                raise KernelError(shifts_refusal(scales))
            a, b = (
                rounding_shift_right(centred(op, tensor, codes), shift)
                for tensor, codes, shift in zip(op.present_inputs(), (a, b), shifts, strict=True)
            )
            return a + sign * b
    bits = 15 if op.output.type is TensorType.INT16 else 20
    first, second, twice = _common_scale(op, a, b, bits)
    unit = 2**bits * float(scale(op, op.output))
    if max(unit, twice) > np.finfo(np.float32).max:  # TFLite ends the process
        raise KernelError(f"sums in units of {unit:g} and {twice:g} exceed float32")
    to_output = twice / unit
    if to_output >= 1:
        return _true_sum(op, a, b, sign)
    return rescale(first + sign * second, to_output)


def _true_sum(op: View, a: Array, b: Array, sign: int) -> Array:
    """a + sign * b in double."""
    first, second = _reals(op, a, b)
    return _codes(op, first + sign * second)


def _reals(op: View, a: Array, b: Array) -> tuple[Array, Array]:
    """The real numbers of both operands, in double."""
    tensors = op.present_inputs()
    x, y = (centred(op, t, c) * float(scale(op, t)) for t, c in zip(tensors, (a, b), strict=True))
    return x, y


def _codes(op: View, reals: Array) -> Array:
    """Codes less the zero point, cut to those that a zero point can be added to."""
    codes = np.rint(reals / float(scale(op, op.output)))
    return np.clip(codes, -(2**30), 2**30).astype(np.int32)


def _common_scale(
    op: View, a: Array, b: Array, bits: int
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], float]:
    """Both operands in units of twice the larger scale over 2**bits, and that scale."""
    tensors = op.present_inputs()
    twice = 2 * max(float(scale(op, tensor)) for tensor in tensors)
    first, second = (
        rescale(centred(op, tensor, codes) << bits, float(scale(op, tensor)) / twice)
        for tensor, codes in zip(tensors, (a, b), strict=True)
    )
    return first, second, twice


def quantized_product(op: View, a: Array, b: Array) -> Array:
    """Product of the codes times s_a * s_b / s_out."""
    first, second = op.present_inputs()
    if first.type is not op.output.type:
        raise refusal(op)
    product = centred(op, first, a) * centred(op, second, b)
    multiplier = scale(op, first) * scale(op, second) / scale(op, op.output)
    if op.output.type is not TensorType.INT16 and shifts_all_out(float(multiplier)):
        return np.zeros_like(product)
    return rescale(product, multiplier)


def quantized_quotient(op: View, a: Array, b: Array) -> Array:
    """The codes of `a` times the reciprocals of those of `b`, times s_a / (s_b * s_out).

    TFLite's result is undefined where the last right shift passes 31 bits; here it is 0. One to the
    left saturates.
    """
    first, second = op.present_inputs()
    dividend, divisor = centred(op, first, a), centred(op, second, b)
    refuse_zero(divisor)
    dividend, divisor = np.where(divisor < 0, -dividend, dividend), np.abs(divisor)
    inverse, bits = reciprocal(divisor, 31)
    headroom = leading_zeros(np.where(dividend < 0, ~dividend, dividend)) - 1
    quotient = rounding_doubling_high_mul(dividend << headroom, inverse)
    q31, shift = quantize_multiplier(scale(op, first) / (scale(op, second) * scale(op, op.output)))
    right = bits + headroom - shift
    made = rounding_shift_right(rounding_doubling_high_mul(quotient, q31), np.clip(right, 0, 62))
    if right.min(initial=0) >= 0:
        return made
    left = made.astype(np.int64) << np.clip(-right, 0, 32)
    return np.asarray(np.clip(left, -(2**30), 2**30))


def quantized_squared_difference(op: View, a: Array, b: Array) -> Array:
    """(a - b)**2, both rescaled to a common scale and shifted left by 7 bits.

    If the square of such a unit is one of the output or more, TFLite ends the process. Here it is
    the true result.
    """
    first, second, twice = _common_scale(op, a, b, 7)
    difference = first - second
    multiplier = twice * twice / float(np.float32(2**14) * scale(op, op.output))
    if multiplier >= 1:
        x, y = _reals(op, a, b)
        return _codes(op, (x - y) ** 2)
    return rescale(difference * difference, multiplier)
