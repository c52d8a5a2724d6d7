"""Real functions of quantised tensors: what TFLite tabulates, and its tables for 16-bit codes."""

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


def rounded_once(function: Function) -> Function:
    """`function` computed in float64."""
    return lambda real: function(real.astype(np.float64)).astype(real.dtype)


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


def tabulated_function(op: OperatorView[Any], scale: np.float32, zero_point: int) -> Function:
    """What TFLite tabulates of a quantised EXP, GELU, LOG or RSQRT: where it is not defined, the
    lowest or the highest number of the output, which has this scale and zero point."""
    limits = np.iinfo(op.output.dtype)
    if op.op is Op.EXP:
        return rounded_once(np.exp)
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


def int16_table(
    function: Function,
    input_scale: float,
    output_scale: float,
    input_zero_point: int = 0,
    dtype: type[np.floating[Any]] = np.float32,
) -> Int16Array:
    """513 points of `function` over the int16 codes; each is moved by half of what a straight
    line errs in the middle of the step after it. `dtype` is of the arithmetic: float64 for SOFTMAX,
    else float32."""
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
        points = points - round_half_away((chords - middles) / dtype(2))
    return saturate(np.nan_to_num(np.concatenate([points, last]), nan=32767.0), np.int16)


def interpolated(codes: Array, table: Int16Array) -> Int16Array:
    """int16 `codes` through a table of 513 points: 9 bits index it, 7 interpolate."""
    index = 256 + (codes.astype(np.int32) >> 7)
    points = table.astype(np.int32)
    slope = points[index + 1] - points[index]
    delta = (slope * (codes.astype(np.int32) & 127) + 64) >> 7
    return np.asarray(points[index] + delta).astype(np.int16)
