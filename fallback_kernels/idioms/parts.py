"""Functions of large arrays, some elements at a time, so that what is between stays small."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import KernelError

Array = npt.NDArray[Any]
_Access = list[Literal["readonly", "writeonly"]]

_AT_A_TIME = 1 << 16  # elements, which stay in the processor's cache


def broadcast_shape(*arrays: Array) -> tuple[int, ...]:
    """The shape of arrays that broadcast; `np.broadcast_shapes` has at most 32 dimensions.

    Raises:
        KernelError: they do not broadcast.
    """
    columns = zip_longest(*(array.shape[::-1] for array in arrays), fillvalue=1)
    sizes = [{*column} - {1} or {1} for column in columns][::-1]
    if any(len(each) > 1 for each in sizes):
        raise KernelError(f"shapes {[array.shape for array in arrays]} do not broadcast")
    return tuple(each.pop() for each in sizes)


def in_parts(function: Callable[..., Array], *arrays: Array, dtype: npt.DTypeLike) -> Array:
    """`function` of arrays that broadcast, which computes element by element, as `dtype`."""
    result = np.empty(broadcast_shape(*arrays), dtype)
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
