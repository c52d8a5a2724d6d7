"""Sparse constants made dense."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

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
Array = npt.NDArray[Any]


def densify(values: Array, shape: Shape, sparsity: SparsityParameters) -> Array:
    """The dense tensor of `shape` that `values` (flat) and `sparsity` hold.

    Levels are walked outermost first; `offsets` are where each node of a level starts in the
    dense tensor. A DENSE level has the same children under every node, a SPARSE_CSR level those
    that its segments and indices list.
    """
    offsets = np.zeros(1, np.int64)
    order, block_map = sparsity.traversal_order or (), sparsity.block_map or ()
    dims = sparsity.dim_metadata
    if sorted(order) != list(range(len(shape) + len(block_map))) or len(dims) != len(order):
        raise MalformedModel(
            f"sparse tensor of shape {shape} has traversal order {order}, block map {block_map} "
            f"and {len(dims)} levels"
        )
    for (size, stride), dim in zip(_levels(shape, order, block_map, dims), dims, strict=True):
        if dim.format == DimensionType.DENSE:
            offsets = (offsets[:, None] + np.arange(size) * stride).reshape(-1)
        else:
            counts, indices = _sparse_level(dim, offsets.size, size)
            offsets = np.repeat(offsets, counts) + indices * stride
    if values.size < offsets.size:
        raise MalformedModel(f"sparse tensor has {values.size} values for {offsets.size} places")
    dense = np.zeros(int(np.prod(shape, dtype=np.int64)), values.dtype)
    dense[offsets] = values.reshape(-1)[: offsets.size]
    return dense.reshape(shape)


def _levels(
    shape: Shape, order: Shape, block_map: Shape, dims: Sequence[DimensionMetadata]
) -> Iterable[tuple[int, int]]:
    """(size, stride in the dense tensor) of every level; a blocked dimension steps by blocks."""
    rank = len(shape)
    strides = [int(np.prod(shape[axis + 1 :], dtype=np.int64)) for axis in range(rank)]
    sizes, steps = list(shape), list(strides)
    for block, axis in enumerate(block_map):
        extent = dims[order.index(rank + block)].dense_size
        if not 0 <= axis < rank or extent <= 0 or sizes[axis] % extent:
            raise MalformedModel(f"blocks of {extent} do not tile axis {axis} of {shape}")
        sizes[axis] //= extent
        steps[axis] *= extent
        sizes.append(extent)
        steps.append(strides[axis])
    return [(sizes[dim], steps[dim]) for dim in order]


def _sparse_level(dim: DimensionMetadata, nodes: int, size: int) -> tuple[Array, Array]:
    """(children per node, their indices) of a SPARSE_CSR level under `nodes` nodes."""
    segments, indices = _index_vector(dim.array_segments), _index_vector(dim.array_indices)
    counts = np.diff(segments)
    if segments.size != nodes + 1 or segments[0] != 0 or (counts < 0).any():
        raise MalformedModel(f"sparse level has malformed segments for {nodes} nodes")
    indices = indices[: segments[-1]]
    if indices.size < segments[-1] or (indices < 0).any() or (indices >= size).any():
        raise MalformedModel(f"sparse level has indices outside a dimension of {size}")
    return counts, indices


def _index_vector(
    vector: Int32Vector | Uint16Vector | Uint8Vector | None,
) -> npt.NDArray[np.int64]:
    if vector is None or vector.values is None:
        raise MalformedModel("sparse level lacks its segments or indices")
    return np.asarray(vector.values, np.int64)
