"""Arrays kept in a temporary file, so that a network's tensors need no memory."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class _Place:
    offset: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class ArrayFile:
    """A temporary file of arrays, which ends with `close`."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # `close` ends it

    def keep(self, arrays: Iterable[tuple[int, Array]]) -> DiskArrays:
        """Write arrays by index; of one that comes again the last counts.

        Raises:
            OSError: there is no room for them.
        """
        return DiskArrays(self, {index: self._placed(array) for index, array in arrays})

    def read(self, place: _Place) -> Array:
        """A new array with what was written there."""
        found = np.empty(place.shape, place.dtype)
        if found.size:
            self._file.seek(place.offset)
            content = found.reshape(-1).view(np.uint8)
            self._file.readinto(content.data)
        return found

    def close(self) -> None:
        self._file.close()

    def _placed(self, array: Array) -> _Place | Array:
        """Strings stay as they are."""
        if array.dtype.hasobject or array.dtype.kind in "SU":
            return array
        offset = self._file.seek(0, 2)
        self._file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        return _Place(offset, array.dtype, array.shape)


class DiskArrays(Mapping[int, Array]):
    """Arrays by index, each read when it is asked for."""

    def __init__(self, file: ArrayFile, places: Mapping[int, _Place | Array]) -> None:
        self._file, self._places = file, places

    def __getitem__(self, index: int) -> Array:
        place = self._places[index]
        return self._file.read(place) if isinstance(place, _Place) else place

    def __iter__(self) -> Iterator[int]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, index: object) -> bool:
        return index in self._places

    def over(self, others: DiskArrays) -> DiskArrays:
        """These, and those of `others` that are not among them; both in one file."""
        return DiskArrays(self._file, {**others._places, **self._places})
