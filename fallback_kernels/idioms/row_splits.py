"""The bounds of the rows of a ragged tensor, whose values stand in a line."""

from __future__ import annotations

import numpy as np

from tflite_ort.fallback_kernels.registry import Array
from tflite_ort.schema import KernelError


def check_splits(splits: Array, values: Array) -> None:
    """Refuse bounds that do not ascend from 0 to the number of `values`."""
    ordered = splits.size and not np.diff(splits).min(initial=0) < 0
    if not ordered or splits[0] != 0 or splits[-1] != values.size:
        raise KernelError(f"splits {splits[:4]}... of {values.size} values")
