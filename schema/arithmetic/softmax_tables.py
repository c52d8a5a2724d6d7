"""The tables by which TFLite computes SOFTMAX of 16-bit codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.arithmetic.fixed_point import (
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    saturate,
)
from tflite_ort.schema.arithmetic.function_table import int16_table, interpolated
from tflite_ort.schema.values.kept_tables import kept_table

Array = npt.NDArray[Any]
Int16Array = npt.NDArray[np.int16]

_POWER_STEP, _UNIT = 10.0 / 65535, 2.0 / 65535


@kept_table
def softmax_powers(scale: float) -> Int16Array:
    """e**(`scale` * d) as Q0.15 for the differences d of two codes, from -65535 to 0."""
    differences = np.arange(-65535, 1, dtype=np.int32)
    scaled = multiply_by_quantized_multiplier(
        differences, *quantize_multiplier(power_multiplier(scale))
    )
    return np.take(powers(), saturate(scaled + 32767, np.int16).astype(np.int32) + 32768)


def power_multiplier(scale: float) -> float:
    """The factor from differences of codes of this scale to indices of the table of powers."""
    return scale / _POWER_STEP


@kept_table
def powers() -> Int16Array:
    """e**x as Q0.15 for 65536 numbers x from -10 to 0."""
    table = int16_table(np.exp, _POWER_STEP, _UNIT, 32767)
    return interpolated(np.arange(-32768, 32768, dtype=np.int16), table)


@kept_table
def softmax_reciprocals() -> Int16Array:
    """1 / (1 + i / 65535) as Q0.15 for i from 0 to 65535."""
    table = int16_table(_one_over_one_plus, 1.0 / 65535, _UNIT, -32768)
    return interpolated(np.arange(-32768, 32768, dtype=np.int16), table)


def _one_over_one_plus(x: Array) -> Array:
    return np.asarray(1.0 / (1.0 + x))
