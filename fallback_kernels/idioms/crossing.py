"""Crosses of columns of features, as TensorFlow's SparseCross makes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.fingerprint import fingerprint
from tflite_ort.fallback_kernels.idioms.short_hashes import sip_hash
from tflite_ort.schema import KernelError

Array = npt.NDArray[Any]
Feature = int | bytes
Column = Sequence[Sequence[Feature]]  # the features of each row

_BITS = (1 << 64) - 1
_FACTOR = 0xC6A4A7935BD1E995
_MOST = 1 << 24


def column_of_sparse(indices: Array, values: Array, rows: int) -> Column:
    """The features of each row of a sparse matrix."""
    if indices.ndim != 2 or indices.shape != (values.size, 2):
        raise KernelError(f"indices of {indices.shape} for {values.size} features")
    if indices.size and not (indices[:, 0].min() >= 0 and indices[:, 0].max() < rows):
        raise KernelError(f"features of rows that are not among {rows}")
    if rows > _MOST:
        raise KernelError(f"features of {rows} rows")
    if (np.diff(indices[:, 0]) < 0).any():
        raise KernelError("features whose rows do not ascend")
    found: list[list[Feature]] = [[] for _ in range(rows)]
    for (row, _), value in zip(indices.tolist(), values.tolist(), strict=True):
        found[row].append(value)
    return found


def crossed(
    columns: Sequence[Column], rows: int, cross: Callable[[Sequence[Feature]], Feature]
) -> tuple[Array, list[Feature], Array]:
    """The indices, the values and the sizes of a sparse matrix: of each row every choice of one
    feature of each column, those of the last column next to one another."""
    total = sum(prod(len(column[row]) for column in columns) for row in range(rows))
    if total > _MOST:
        raise KernelError(f"{total} crosses")
    places: list[tuple[int, int]] = []
    values: list[Feature] = []
    widest = 0
    for row in range(rows):
        made = [cross(each) for each in product(*(column[row] for column in columns))]
        places += [(row, place) for place in range(len(made))]
        values += made
        widest = max(widest, len(made))
    indices = np.array(places, np.int64).reshape(-1, 2)
    return indices, values, np.array([rows, widest], np.int64)


def text_of(features: Sequence[Feature], between: bytes) -> bytes:
    """Features as one text."""
    return between.join(each if isinstance(each, bytes) else b"%d" % each for each in features)


def hash_of(hashes: Iterable[int], buckets: int) -> int:
    """One hash of several, in a bucket or below the largest integer."""
    return reduce(_joined, hashes) % (buckets if buckets > 0 else (1 << 63) - 1)


def hashes_of(features: Sequence[Feature], key: Sequence[int] | None = None) -> Iterator[int]:
    """The hash of each feature: of a text its fingerprint, or one with a key; an integer is its
    own."""
    for each in features:
        if isinstance(each, bytes):
            yield _fingerprint(each) if key is None else sip_hash(each, key)
        else:
            yield each & _BITS


def _fingerprint(text: bytes) -> int:
    return int(fingerprint(np.frombuffer(text, np.uint8)[None])[0])


def _joined(one: int, other: int) -> int:
    """Two hashes as one."""
    made = one ^ _FACTOR
    made ^= _mixed(other * _FACTOR & _BITS) * _FACTOR & _BITS
    made = made * _FACTOR & _BITS
    return _mixed(_mixed(made) * _FACTOR & _BITS)


def _mixed(value: int) -> int:
    return value ^ value >> 47
