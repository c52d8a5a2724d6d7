"""HARD_SWISH of 8-bit codes in TFLite's fixed point of 16 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.arithmetic.fixed_point import (
    quantize_multiplier,
    rounding_shift_right,
    saturating_shift_left,
)

Array = npt.NDArray[Any]


def hard_swish_codes(centred: Array, scale: np.float32, output_scale: np.float32) -> Array | None:
    """Codes of x * min(max(x + 3, 0), 6) / 6, less their zero point, of codes less theirs; None of
    scales that TFLite refuses."""
    fine_scale = np.float32(1 / 128) * scale
    factor, shift = _int16_multiplier(fine_scale / output_scale)
    if shift > 0:
        return None
    fine = np.asarray(centred.astype(np.int32) << 7).astype(np.int16)
    gate = _hard_sigmoid(fine, *_int16_multiplier(fine_scale / np.float32(3 / 32768)))
    product = gate * _high_mul_int16(fine, factor).astype(np.int32)
    # The truncation cancels the bias of the rounded products before it.
    return rounding_shift_right(np.trunc(product / 32768).astype(np.int32), -shift)


def _hard_sigmoid(fine: npt.NDArray[np.int16], factor: int, shift: int) -> npt.NDArray[np.int32]:
    """(x + 3) / 6, clipped to [0, 1], in Q0.15; 3 gives 32767."""
    value = saturating_shift_left(fine, np.clip(shift - 1, 0, 31))
    value = _high_mul_int16(value, factor)
    value = saturating_shift_left(value, 1) if shift > 0 else value
    value = rounding_shift_right(value, max(-shift, 0))
    return (value.astype(np.int32) + 2**15) >> 1


def _int16_multiplier(multiplier: np.float32) -> tuple[int, int]:
    """(q15, shift) with multiplier = q15 * 2**(shift - 15)."""
    q31, shift = quantize_multiplier(multiplier)
    return min((int(q31) + 2**15) >> 16, 2**15 - 1), int(shift)


def _high_mul_int16(x: Array, factor: int) -> npt.NDArray[np.int16]:
    """round(x * factor / 2**15), halves upwards."""
    return np.asarray((x.astype(np.int32) * np.int32(factor) + 2**14) >> 15, np.int16)
