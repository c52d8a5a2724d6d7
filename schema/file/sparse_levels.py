"""How a sparse constant is stored: levels of places, the outermost first, then the values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.schema.file.enums import DimensionType
from tflite_ort.schema.file.errors import MalformedModel
from tflite_ort.schema.file.model import (
    DimensionMetadata,
    Int32Vector,
    SparsityParameters,
    Uint8Vector,
    Uint16Vector,
)

Shape = tuple[int, ...]
Indices = npt.NDArray[np.int64]


@record
class Level:
    """One dimension, or the inside of its blocks, in the order of the file.

    Args:
        size: how many places it has in the dense tensor.
        stride: elements of the dense tensor from one of them to the next.
        counts: of a compressed level, how many places are stored under each place of the level
            above; None for a dense level, where all are.
        indices: which places these are.
    """

    size: int
    stride: int
    counts: Indices | None = None
    indices: Indices | None = None


def sparse_levels(shape: Shape, sparsity: SparsityParameters, stored: int) -> list[Level]:
    """The levels of a tensor of `shape` of which `stored` values are in the file.

    Raises:
        MalformedModel: they do not fit each other, the shape or the values.
    """
    order, block_map = sparsity.traversal_order or (), sparsity.block_map or ()
    dims = sparsity.dim_metadata
    if sorted(order) != list(range(len(shape) + len(block_map))) or len(dims) != len(order):
        raise MalformedModel(
            f"sparse tensor of shape {shape} has traversal order {order}, block map {block_map} "
            f"and {len(dims)} levels"
        )
    levels, places = [], 1
    for (size, stride), dim in zip(_sizes(shape, order, block_map, dims), dims, strict=True):
        if dim.format == DimensionType.DENSE:
            levels.append(Level(size, stride))
            places *= size
        else:
            counts, indices = _compressed(dim, places, size)
            levels.append(Level(size, stride, counts, indices))
            places = indices.size
    if stored < places:
        raise MalformedModel(f"sparse tensor has {stored} values for {places} places")
    return levels


def _sizes(
    shape: Shape, order: Shape, block_map: Shape, dims: Sequence[DimensionMetadata]
) -> Iterator[tuple[int, int]]:
    """(size, stride in the dense tensor) of every level; a blocked dimension steps by blocks."""
    rank = len(shape)
    strides = [math.prod(shape[axis + 1 :]) for axis in range(rank)]
    sizes, steps = list(shape), list(strides)
    for block, axis in enumerate(block_map):
        extent = dims[order.index(rank + block)].dense_size
        if not 0 <= axis < rank or extent <= 0 or sizes[axis] % extent:
            raise MalformedModel(f"blocks of {extent} do not tile axis {axis} of {shape}")
        sizes[axis] //= extent
        steps[axis] *= extent
        sizes.append(extent)
        steps.append(strides[axis])
    return ((sizes[dim], steps[dim]) for dim in order)


def _compressed(dim: DimensionMetadata, places: int, size: int) -> tuple[Indices, Indices]:
    """(places stored per place above, which) of a SPARSE_CSR level under `places` places."""
    segments, indices = _index_vector(dim.array_segments), _index_vector(dim.array_indices)
    counts = np.diff(segments)
    if segments.size != places + 1 or segments[0] != 0 or (counts < 0).any():
        raise MalformedModel(f"sparse level has malformed segments for {places} nodes")
    indices = indices[: segments[-1]]
    if indices.size < segments[-1] or (indices < 0).any() or (indices >= size).any():
        raise MalformedModel(f"sparse level has indices outside a dimension of {size}")
    return counts, indices


def _index_vector(vector: Int32Vector | Uint16Vector | Uint8Vector | None) -> Indices:
    if vector is None or vector.values is None:
        raise MalformedModel("sparse level lacks its segments or indices")
    return np.asarray(vector.values, np.int64)
