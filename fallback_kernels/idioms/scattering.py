"""Rows at tuples of indices: the dimensions that are indexed are one here, and so are all others.

numpy ends the process where `numpy.ufunc.at` gets more than 32 dimensions, and takes no more than
63 arrays of indices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


def rows_of(tuples: Array, sizes: Sequence[int]) -> Array:
    """Which rows the tuples in the last axis of `tuples` name, where all first ones of an array
    with these first `sizes` are one; none of them is out of range."""
    rows = np.zeros(tuples.shape[:-1], np.intp)
    for axis, size in enumerate(sizes):
        rows = rows * size + tuples[..., axis]
    return rows


def combine_at(combine: np.ufunc, result: Array, rows: Array, values: Array) -> None:
    """Combine rows of a contiguous `result` with those of `values`, one after another.

    Args:
        rows: for each row of `values` the one of `result`, both of as many elements.
    """
    width = values.size // max(rows.size, 1)
    if width == 1:
        combine.at(result.reshape(-1), rows.reshape(-1), values.reshape(-1))
    elif width:
        combine.at(result.reshape(-1, width), rows.reshape(-1), values.reshape(-1, width))
