"""Functions of large arrays, some elements at a time, so that what is between stays small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
_Access = list[Literal["readonly", "writeonly"]]

_AT_A_TIME = 1 << 16  # elements, which stay in the processor's cache


def in_parts(function: Callable[..., Array], *arrays: Array, dtype: npt.DTypeLike) -> Array:
    """`function` of arrays that broadcast, which computes element by element, as `dtype`."""
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    result = np.empty(shape, dtype)
    if result.size <= _AT_A_TIME:
        result[...] = function(*arrays)
        return result
    flags: list[_Access] = [["readonly"] for _ in arrays]
    parts = np.nditer(
        [*arrays, result],
        flags=["external_loop", "buffered"],
        op_flags=[*flags, ["writeonly"]],
        order="C",
        buffersize=_AT_A_TIME,
    )
    with parts:
        for *given, made in parts:
            made[...] = function(*given)
    return result
