"""Real functions of quantized tensors by table, as TFLite's reference kernels tabulate them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.idioms.operands import scale, zero_point
from tflite_ort.schema import OperatorView, TensorType
from tflite_ort.schema.arithmetic.function_table import (
    Array,
    Function,
    byte_table,
    int16_function,
)


def tabulated(op: OperatorView[Any], codes: Array, function: Function) -> Array:
    """`function` of the first input's real values in the output's codes.

    8-bit codes look up one of 256 rounded values; int16 ones interpolate between 513 points.
    """
    if op.output.type is TensorType.INT16:
        input, output = op.present_inputs()[0], op.output
        zero_point(op, input), zero_point(op, output)
        return int16_function(codes, function, float(scale(op, input)), float(scale(op, output)))
    table = code_table(op, function)
    return table[codes.astype(np.int32) - np.iinfo(codes.dtype).min]


def code_table(op: OperatorView[Any], function: Function) -> Array:
    """The output code of every 8-bit input code, lowest first."""
    input, output = op.present_inputs()[0], op.output
    bounds = np.iinfo(input.dtype)
    codes = np.arange(bounds.min, bounds.max + 1)
    source, target = ((scale(op, each), zero_point(op, each)) for each in (input, output))
    return byte_table(codes, function, source, target, output.dtype)
