"""Arrays over an interpreter's own memory, and whether somebody still holds one."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class _Anchor:
    """What all views of one array have as their base: it lives as long as one of them does."""

    def __init__(self, array: Array) -> None:
        self._array = array

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return dict(self._array.__array_interface__)


class LiveViews:
    """The views of an interpreter's arrays that were given out.

    Examples:
        >>> views, buffer = LiveViews(), np.zeros(3)
        >>> part = views.of(buffer)[1:]
        >>> bool(views)
        True
        >>> del part
        >>> bool(views)
        False

    Attributes:
        alive: not empty while one of them is held; to look here is faster than to ask the object.
    """

    __slots__ = ("alive",)

    def __init__(self) -> None:
        self.alive: set[weakref.ref[_Anchor]] = set()

    def of(self, array: Array) -> Array:
        """`array` under another name that is counted until it and its slices are gone."""
        anchor = _Anchor(array)
        self.alive.add(weakref.ref(anchor, self.alive.discard))
        return np.asarray(anchor).view(array.dtype)

    def __bool__(self) -> bool:
        return bool(self.alive)
