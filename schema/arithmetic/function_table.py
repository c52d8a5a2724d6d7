"""Real functions of quantized tensors: what TFLite tabulates, and its tables for 16-bit codes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.arithmetic.fixed_point import round_half_away, saturate
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.values.view import OperatorView

Array = npt.NDArray[Any]
Int16Array = npt.NDArray[np.int16]
Function = Callable[[Array], Array]  # float array to float array of the same dtype

_INT16_STEPS = 512
_INT16_RANGE = (-32768.0, 32767.0)


def rounded_once(function: Function) -> Function:
    """`function` computed in float64."""
    return lambda real: function(real.astype(np.float64)).astype(real.dtype)


exact_exp = rounded_once(np.exp)


def exactly(function: Any, x: Array) -> Array:
    """`function` in float64, rounded once."""
    with np.errstate(over="ignore"):
        return np.asarray(function(x.astype(np.float64)), np.float32)


_erfc = np.frompyfunc(math.erfc, 1, 1)
_SQRT_2_OVER_PI = np.float32(math.sqrt(2 / math.pi))


def exact_gelu(x: Array) -> Array:
    """x times the normal distribution function of x."""
    share = np.asarray(_erfc(x * np.float32(-math.sqrt(0.5))), np.float32)
    return np.asarray(np.float32(0.5) * x * share)


def gelu_by_tanh(x: Array) -> Array:
    inner = _SQRT_2_OVER_PI * (x + np.float32(0.044715) * x * x * x)
    return np.float32(0.5) * x * (np.float32(1) + exactly(np.tanh, inner))


def exact_elu(x: Array) -> Array:
    """x, of what is below 0 the power of e less 1."""
    return np.where(x < 0, exactly(np.expm1, np.minimum(x, 0)), x)


def tabulated_function(op: OperatorView[Any], scale: np.float32, zero_point: int) -> Function:
    """What TFLite tabulates of a quantized EXP, GELU, LOG or RSQRT: where it is not defined, the
    lowest or the highest number of the output, which has this scale and zero point."""
    limits = np.iinfo(op.output.dtype)
    if op.op is Op.EXP:
        return exact_exp
    if op.op is Op.GELU:
        return gelu_by_tanh if op.options.approximate else exact_gelu
    if op.op is Op.LOG:
        bottom = np.float32(limits.min - zero_point) * scale
        return rounded_once(lambda x: np.where(x > 0, np.log(np.where(x > 0, x, 1)), bottom))
    highest = np.float32(limits.max) * scale

    def inverse_root(x: Array) -> Array:
        positive = np.where(x <= 0, 1, x).astype(np.float32)
        return np.where(x <= 0, highest, np.float32(1) / np.sqrt(positive))

    return inverse_root


def byte_table(
    codes: Array,
    function: Function,
    source: tuple[np.float32, int],
    target: tuple[np.float32, int],
    dtype: npt.DTypeLike,
) -> Array:
    """TFLite's table of the results for 8-bit `codes`.

    Args:
        source, target: scales and zero points.
        dtype: of the results.
    """
    real = source[0] * (codes.astype(np.int32) - source[1]).astype(np.float32)
    with np.errstate(over="ignore", divide="ignore"):
        rescaled = function(real) * (np.float32(1) / target[0])
    # Far outside the range of the codes only the sign matters.
    rescaled = np.clip(rescaled, np.float32(-(2**24)), np.float32(2**24))
    return saturate(round_half_away(rescaled) + np.float32(target[1]), dtype)


def int16_function(
    codes: Array, function: Function, input_scale: float, output_scale: float
) -> Int16Array:
    """`function` of 16-bit `codes` as TFLite interpolates it, in codes of the output.

    TFLite's slopes and corrections are 16-bit integers. They wrap if the function rises by more
    within one step. Codes in such a step get the true result.
    """
    points, corrections = _points(function, input_scale, output_scale, 0, np.float32)
    table = saturate(points, np.int16)
    made = interpolated(codes, table)
    slopes, exceeds = np.diff(table.astype(np.int32)), ~(np.abs(corrections) <= _INT16_RANGE[1])
    wraps = (slopes != slopes.astype(np.int16)) | exceeds | np.append(exceeds[1:], False)
    if not wraps.any():
        return made
    with np.errstate(over="ignore"):
        reals = function(codes.astype(np.float32) * np.float32(input_scale))
        true = np.clip(reals.astype(np.float64) / float(np.float32(output_scale)), *_INT16_RANGE)
    return np.where(wraps[_steps(codes)], round_half_away(true).astype(np.int16), made)


def int16_table(
    function: Function, input_scale: float, output_scale: float, input_zero_point: int
) -> Int16Array:
    """513 points of `function` over the int16 codes, in float64, which SOFTMAX computes with."""
    points, _ = _points(function, input_scale, output_scale, input_zero_point, np.float64)
    return saturate(points, np.int16)


def _points(
    function: Function,
    input_scale: float,
    output_scale: float,
    input_zero_point: int,
    dtype: type[np.floating[Any]],
) -> tuple[Array, Array]:
    """513 points of `function` over the int16 codes, computed in `dtype`, and the corrections in
    them: each of the first 512 is moved by half of what a straight line errs in the middle of the
    step after it. What is not a number is the highest code."""
    low, high = (dtype(input_scale) * dtype(code - input_zero_point) for code in (-32768, 32767))
    output_span = dtype(output_scale) * dtype(32767) - dtype(output_scale) * dtype(-32768)
    to_code = dtype(65536) / output_span
    step = (high - low) / dtype(_INT16_STEPS)
    starts = np.asarray(low + np.arange(_INT16_STEPS + 1).astype(dtype) * step)
    with np.errstate(over="ignore"):
        values = function(starts) * to_code
        middles = round_half_away(function(starts[:-1] + step / dtype(2)) * to_code)
        last = round_half_away(function(np.asarray([high])) * to_code)
    points = round_half_away(values[:-1])
    with np.errstate(invalid="ignore"):
        chords = round_half_away((values[1:] + points) / dtype(2))
        corrections = round_half_away((chords - middles) / dtype(2))
        points = points - corrections
    return np.nan_to_num(np.concatenate([points, last]), nan=_INT16_RANGE[1]), corrections


def interpolated(codes: Array, table: Int16Array) -> Int16Array:
    """int16 `codes` through a table of 513 points: 9 bits index it, 7 interpolate."""
    index = _steps(codes)
    points = table.astype(np.int32)
    slope = points[index + 1] - points[index]
    delta = (slope * (codes.astype(np.int32) & 127) + 64) >> 7
    return np.asarray(points[index] + delta).astype(np.int16)


def _steps(codes: Array) -> Array:
    """The step of a table of 513 points that each of the int16 `codes` is in."""
    return np.asarray(256 + (codes.astype(np.int32) >> 7))
