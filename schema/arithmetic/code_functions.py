"""What TFLite's integer kernels make of each code, for operators of one operand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.schema.arithmetic.fixed_point import (
    held_ratio,
    inverse_sqrt,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rescale,
    round_half_away,
    saturate,
)

with late:
    from tflite_ort.schema.arithmetic import fixed_point16

Array = npt.NDArray[Any]
Int16Array = npt.NDArray[np.int16]

_BEYOND_CODES = np.float32(2**30)


def leaky_relu_codes(
    centred: Array, scale: np.float32, alpha: np.float32, output_scale: np.float32
) -> Array:
    """Codes of the output, less its zero point, of codes less theirs."""
    above = rescale(centred, scale / output_scale)
    below = rescale(centred, np.abs(scale * alpha / output_scale))
    return np.where(centred >= 0, above, -below if alpha < 0 else below)


def joined_codes(
    codes: Array, source: tuple[np.float32, int], target: tuple[np.float32, int]
) -> Array:
    """uint8 codes of a scale and a zero point as those of others, as CONCATENATION makes them."""
    scale = held_ratio(source[0] * (np.float32(1) / target[0]))
    bias = np.float32(-source[1]) * scale
    rounded = round_half_away(codes.astype(np.float32) * scale + bias)
    return saturate(rounded + target[1], np.uint8)


def root_codes(centred: Array, scale: np.float32, output_scale: np.float32) -> Array:
    """Codes of the square roots, less their zero point, of codes less theirs; cut, not rounded."""
    roots = np.sqrt(scale * centred.astype(np.float32)) / output_scale
    return np.asarray(np.minimum(roots, _BEYOND_CODES), np.int64)


def inverse_root_codes(centred: Array, scale: np.float32, output_scale: np.float32) -> Array:
    """Codes of 1 / sqrt(x), less their zero point, of codes less theirs; of 0 more than a code."""
    q31, shift = quantize_multiplier(1.0 / float(np.sqrt(scale) * output_scale))
    inverse, inverse_shift = inverse_sqrt(centred)
    data = multiply_by_quantized_multiplier(1, inverse, inverse_shift + 20)
    codes = multiply_by_quantized_multiplier(data, q31, shift - 20)
    return np.where(centred == 0, 2**30, codes)


def _sigmoid_points() -> npt.NDArray[np.int64]:
    """sigmoid(i / 24) in Q0.16 for 256 points, moved by half of what a straight line errs."""
    step = 1 / 24
    at = np.arange(256) * step
    here, middle, after = (65536 / (1 + np.exp(-(at + d))) for d in (0, step / 2, step))
    points = np.asarray(np.floor(here - ((here + after) / 2 - middle) / 2 + 0.5), np.int64)
    points[255] = 65535
    return points


_SIGMOID = _sigmoid_points()
# The exponents that `_left_shift` gives.
_SIGMOID_EXACT, _TANH_EXACT = (0,), (0, 1)
# With more every code but 0 is past the table.
_LARGEST_MULTIPLIER = 2**32


def sigmoid_int16(codes: Array, scale: np.float32) -> Int16Array:
    """1 / (1 + e**-x) as Q0.15; 2**9 of the scaled input are a step of the table."""
    positive, line, beyond = _sigmoid_line(codes, scale, 9, _SIGMOID_EXACT)
    line = np.where(beyond, 0x7FFF << 10, line)
    line = np.where(positive, line + 512, (1 << 25) - line + 511)
    return np.asarray(line >> 10, np.int16)


def tanh_int16(codes: Array, scale: np.float32) -> Int16Array:
    """2 * sigmoid(2x) - 1 as Q0.15; a step of the table is half as long."""
    positive, line, beyond = _sigmoid_line(codes, scale, 8, _TANH_EXACT)
    line = np.where(beyond, 0xFFFF << 8, line) - (1 << 23)
    return np.asarray(np.where(positive, line + 128, 127 - line) >> 8, np.int16)


def fast_sigmoid_int16(codes: Array, scale: np.float32) -> Int16Array:
    """`sigmoid_int16` of TFLite's optimized kernels: at a scale near 1 / 4096 fixed-point numbers
    in place of the table, up to 7 codes away."""
    left = _left_shift(scale, _SIGMOID_EXACT)
    if left is None:
        return sigmoid_int16(codes, scale)
    return fixed_point16.logistic(codes.astype(np.int16), 3 + left)


def fast_tanh_int16(codes: Array, scale: np.float32) -> Int16Array:
    """`tanh_int16` of TFLite's optimized kernels: at a scale near 1 / 4096 or 1 / 2048 fixed-point
    numbers in place of the table, up to 12 codes away."""
    left = _left_shift(scale, _TANH_EXACT)
    if left is None:
        return tanh_int16(codes, scale)
    return fixed_point16.tanh(codes.astype(np.int16), 3 + left)


def _sigmoid_line(
    codes: Array, scale: np.float32, bits: int, exact: tuple[int, ...]
) -> tuple[Array, Array, Array]:
    """(x >= 0, sigmoid of |x| interpolated as Q0.(16 + bits), whether |x| is past the table).

    Args:
        exact: as of `_left_shift`.
    """
    multiplier, shift = _sigmoid_multiplier(scale, exact)
    value = (codes.astype(np.int64) * multiplier + ((1 << shift) >> 1)) >> shift
    magnitude = np.abs(value)
    index = np.minimum(magnitude >> bits, 254)
    slope = _SIGMOID[index + 1] - _SIGMOID[index]
    line = (_SIGMOID[index] << bits) + (magnitude & ((1 << bits) - 1)) * slope
    return value >= 0, line, (magnitude >> bits) >= 255


def _sigmoid_multiplier(input_scale: np.float32, exact: tuple[int, ...]) -> tuple[int, int]:
    """(multiplier, right shift) that bring codes of `input_scale` to 1 / (3 * 4096).

    Args:
        exact: as of `_left_shift`.
    """
    left = _left_shift(input_scale, exact)
    if left is not None:
        return 3 << left, 0
    multiplier, shift = float(input_scale) * 4096.0 * 3.0, 0
    while multiplier <= 32767.0 / 2.0 and shift <= 30:
        multiplier, shift = multiplier * 2.0, shift + 1
    return int(min(multiplier, _LARGEST_MULTIPLIER)), shift


def _left_shift(scale: np.float32, exact: tuple[int, ...]) -> int | None:
    """The exponent of the power of two, times 1 / 4096, that `scale` is near; None where it is not
    in `exact`."""
    log = math.log2(scale)
    left = 12 + round(log)
    return left if abs(log - round(log)) < 1e-3 and left in exact else None
