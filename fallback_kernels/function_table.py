"""Real functions of quantised tensors by table, as TFLite's reference kernels tabulate them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.operands import scale, zero_point
from tflite_ort.schema import OperatorView, TensorType
from tflite_ort.schema.fixed_point import round_half_away, saturate

Array = npt.NDArray[Any]
Int16Array = npt.NDArray[np.int16]
Function = Callable[[Array], Array]  # float array to float array of the same dtype

_INT16_STEPS = 512


def tabulated(op: OperatorView[Any], codes: Array, function: Function) -> Array:
    """`function` of the first input's real values in the output's codes.

    8-bit codes look up one of 256 rounded values; int16 ones interpolate between 513 points.
    """
    if op.output.type is TensorType.INT16:
        input, output = op.present_inputs()[0], op.output
        zero_point(op, input), zero_point(op, output)
        table = int16_table(function, float(scale(op, input)), float(scale(op, output)))
        return interpolated(codes, table)
    table = code_table(op, function)
    return table[codes.astype(np.int32) - np.iinfo(codes.dtype).min]


def code_table(op: OperatorView[Any], function: Function) -> Array:
    """The output code of every 8-bit input code, lowest first."""
    input, output = op.present_inputs()[0], op.output
    bounds = np.iinfo(input.dtype)
    codes = np.arange(bounds.min, bounds.max + 1)
    real = scale(op, input) * (codes - zero_point(op, input)).astype(np.float32)
    with np.errstate(over="ignore", divide="ignore"):
        rescaled = round_half_away(function(real) * (np.float32(1) / scale(op, output)))
    # Far outside the codes' range nothing but the sign matters.
    rescaled = np.clip(rescaled, np.float32(-(2**24)), np.float32(2**24))
    return saturate(rescaled + np.float32(zero_point(op, output)), output.dtype)


def int16_table(
    function: Function,
    input_scale: float,
    output_scale: float,
    input_zero_point: int = 0,
    dtype: type[np.floating[Any]] = np.float32,
) -> Int16Array:
    """513 points of `function` over the int16 codes; each is moved by half of what a straight
    line errs in the middle of the step after it.

    Args:
        dtype: the type of the arithmetic: float32, but float64 for SOFTMAX.
    """
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
    slope = (points[index + 1] - points[index]).astype(np.int16).astype(np.int32)
    delta = (slope * (codes.astype(np.int32) & 127) + 64) >> 7
    return np.asarray(points[index] + delta).astype(np.int16)
