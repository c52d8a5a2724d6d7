"""The numbers of TensorFlow's fake quantization."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def nudged(low: Array, high: Array, bits: int, narrow: bool) -> tuple[Array, Array, Array, Array]:
    """The step between two numbers, how many there are in 1, and the bounds, moved so that 0 is a
    number; float32."""
    first, last = np.float32(narrow), np.float32(2**bits - 1)
    step, factor = (high - low) / (last - first), (last - first) / (high - low)
    zero = np.clip(np.floor(first - low / step + np.float32(0.5)), first, last)
    bottom, top = ((end - zero) * step for end in (first, last))
    return np.asarray(step), np.asarray(factor), np.asarray(bottom), np.asarray(top)
