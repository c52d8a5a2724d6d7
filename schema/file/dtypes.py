"""Numpy's types of elements, by the types of a file format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late

with late:
    import ml_dtypes

K = TypeVar("K")


class Dtypes(dict[K, np.dtype[Any]]):
    """Numpy's types by another format's; those of `ml_dtypes` are there when they are looked up.

    Args:
        types: by type, numpy's, or the name of one of `ml_dtypes`.
    """

    def __init__(self, types: Mapping[K, npt.DTypeLike | str]) -> None:
        self._late = {key: name for key, name in types.items() if isinstance(name, str)}
        super().__init__((k, np.dtype(kind)) for k, kind in types.items() if k not in self._late)
        # By numpy's type; of several keys with the same type the first one counts.
        self.known = {dtype: key for key, dtype in reversed(self.items())}

    def __missing__(self, key: K) -> np.dtype[Any]:
        dtype: np.dtype[Any] = np.dtype(getattr(ml_dtypes, self._late[key]))
        self[key] = dtype
        return dtype

    def key_of(self, dtype: npt.DTypeLike) -> K | None:
        """The first type that numpy has as `dtype`."""
        wanted = np.dtype(dtype)
        found = self.known.get(wanted)
        if found is not None:
            return found
        named = (key for key, name in self._late.items() if name == wanted.name)
        return next((key for key in named if self[key] == wanted), None)
