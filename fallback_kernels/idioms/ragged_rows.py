"""Ragged tensors as dense ones: where each value of rows of different lengths is."""

from __future__ import annotations

from collections.abc import Sequence, Sized

import numpy as np

from tflite_ort.fallback_kernels.registry import Array
from tflite_ort.schema import KernelError
from tflite_ort.schema.shapes.registry import shown, single


def row_ids(splits: Array, count: int) -> Array:
    """The row of each of `count` values."""
    whole = splits.ndim == 1 and splits.size and splits[0] == 0 and splits[-1] == count
    if not whole or (splits[1:] < splits[:-1]).any():
        raise KernelError(f"splits {shown(splits)} of {count} values")
    return np.repeat(np.arange(splits.size - 1), splits[1:] - splits[:-1])


def sparse_places(rows: Sequence[Sized]) -> tuple[Array, Array]:
    """The places [N, 2] of the elements of rows, and the sizes [2] that hold them all."""
    places = [(row, column) for row, each in enumerate(rows) for column in range(len(each))]
    sizes = len(rows), max(map(len, rows), default=0)
    return np.array(places, np.int64).reshape(-1, 2), np.array(sizes, np.int64)


def places_of(levels: Sequence[Array], rows: int) -> tuple[Array, list[int]]:
    """[N, levels + 1]: where each value is, and the sizes that hold all.

    Args:
        levels: the row of each value of each level, from the outermost.
        rows: how many there are in the outermost.
    """
    places, sizes = np.arange(rows).reshape(rows, 1), [rows]
    for ids in levels:
        if ids.size and not (ids.min() >= 0 and ids.max() < len(places)):
            raise KernelError(f"rows {shown(ids)} of {len(places)}")
        if (ids[1:] < ids[:-1]).any():
            raise KernelError(f"rows {shown(ids)} do not ascend")
        lengths = np.bincount(ids, minlength=len(places))
        starts = np.cumsum(lengths) - lengths
        columns = np.arange(ids.size) - starts[ids]
        places = np.concatenate([places[ids], columns[:, None]], axis=1)
        sizes.append(int(lengths.max(initial=0)))
    return places, sizes


def levels_of(
    kinds: Sequence[str], tensors: Sequence[Array], count: int
) -> tuple[list[Array], int]:
    """The row of each value of each level, and how many rows the outermost has."""
    if kinds[0] == "FIRST_DIM_SIZE":
        if len(tensors[-1]) != count:
            raise KernelError(f"rows of {len(tensors[-1])} values, not of {count}")
        return [ids.astype(np.int64) for ids in tensors[1:]], single(tensors[0])
    counts = [len(splits) - 1 for splits in tensors[1:]] + [count]
    found = [row_ids(splits, inner) for splits, inner in zip(tensors, counts, strict=True)]
    return found, len(tensors[0]) - 1


def dense(values: Array, default: Array, places: Array, sizes: Sequence[int]) -> Array:
    """The values at their places in a tensor of these sizes, and the default value elsewhere."""
    result = np.empty((*sizes, *values.shape[1:]), values.dtype)
    result[...] = default
    inside = (places < np.asarray(sizes)).all(axis=1)
    result[tuple(places[inside].T)] = values[inside]
    return result
