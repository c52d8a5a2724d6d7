"""Large matrices in another order: numpy writes a transposed one element by element, each from a
line of memory of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_LARGE = 1 << 20  # bytes; below, what is read stays in the caches of the processor
_ROWS = 64  # of the source at a time, whose lines the caches hold
_WORD = 8  # bytes that are moved at once


def in_order(array: Array) -> Array:
    """`array` in C order; a large transposed matrix about ten times as fast as by numpy."""
    if array.ndim != 2 or array.flags.c_contiguous or not array.flags.f_contiguous:
        return np.asarray(array, order="C")
    count = _WORD // array.itemsize if array.dtype.kind in "iuf" else 0
    if array.nbytes < _LARGE or count < 2 or array.shape[0] % count:
        return np.asarray(array, order="C")
    return _transposed(array.T, count)


def _transposed(source: Array, count: int) -> Array:
    """The transpose of a matrix in C order.

    Some rows at a time: words of `count` elements are put in order, then the elements in them.
    """
    height, width = source.shape
    result = np.empty((width, height), source.dtype)
    lines = result.reshape(width // count, count, height)
    words = np.empty((width // count, _ROWS), np.uint64)  # once: fresh memory costs more than this
    for start in range(0, height, _ROWS):
        rows = source[start : start + _ROWS]
        part = words[:, : len(rows)]
        part[...] = rows.view(np.uint64).T
        elements = words.view(source.dtype).reshape(width // count, _ROWS, count)
        lines[:, :, start : start + _ROWS] = elements[:, : len(rows)].transpose(0, 2, 1)
    return result
