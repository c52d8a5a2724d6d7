"""Mutations that compress constants, rightly or wrongly."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.fuzz.tree import Unfit, constant_at, values_of, with_data, with_tensor
from tflite_ort.schema import Model
from tflite_ort.schema.file.enums import DimensionType
from tflite_ort.schema.file.model import (
    DimensionMetadata,
    Int32Vector,
    SparsityParameters,
    Uint8Vector,
    Uint16Vector,
)

Array = npt.NDArray[Any]

_WIDTHS = ((Int32Vector, np.int32), (Uint16Vector, np.uint16), (Uint8Vector, np.uint8))


def sparse(draw: random.Random, model: Model) -> Model:
    """A constant in compressed rows; a share of its elements becomes zero first."""
    graph, number, tensor = constant_at(draw, model)
    values = values_of(model, tensor)
    count = int(np.prod(tensor.shape, dtype=np.int64))
    if values is None or not tensor.shape or not 0 < count == values.size <= 255:
        raise Unfit
    kept = np.array([draw.random() < 0.5 for _ in range(values.size)])
    dense = np.where(kept, values, np.zeros(1, values.dtype)).reshape(tensor.shape)
    level = draw.randrange(len(tensor.shape))
    data, dims = _compressed(draw, dense, level)
    order = tuple(range(len(tensor.shape)))
    parameters = SparsityParameters(traversal_order=order, block_map=(), dim_metadata=dims)
    return with_data(model, graph, number, data.tobytes(), sparsity=parameters)


def _compressed(
    draw: random.Random, dense: Array, level: int
) -> tuple[Array, tuple[DimensionMetadata, ...]]:
    """The values that remain when the dimension `level` is stored as CSR, the others dense."""
    rows = int(np.prod(dense.shape[:level], dtype=np.int64))
    cells = dense.reshape(rows, dense.shape[level], -1)
    present = (cells != 0).any(axis=2)
    segments = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
    indices = np.nonzero(present)[1]
    vector, dtype = draw.choice(_WIDTHS)
    dims = [DimensionMetadata(dense_size=size) for size in dense.shape]
    dims[level] = DimensionMetadata(
        format=DimensionType.SPARSE_CSR,
        array_segments=vector(values=segments.astype(dtype)),
        array_indices=vector(values=indices.astype(dtype)),
    )
    return cells[present].reshape(-1), tuple(dims)


def sparse_with_all_data(draw: random.Random, model: Model) -> Model:
    """Sparsity parameters beside data that are not compressed."""
    graph, number, tensor = constant_at(draw, model)
    order = tuple(range(len(tensor.shape)))
    dims = tuple(DimensionMetadata(dense_size=size) for size in tensor.shape)
    blocks = draw.choice(((), (0,), None, (len(order),)))
    parameters = SparsityParameters(
        traversal_order=draw.choice((order, order[::-1], None, (*order, len(order)))),
        block_map=blocks,
        dim_metadata=dims if draw.random() < 0.8 else dims[1:],
    )
    return with_tensor(model, graph, number, sparsity=parameters)
