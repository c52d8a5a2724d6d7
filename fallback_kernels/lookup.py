"""Rows looked up by key: EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE, HASHTABLE_LOOKUP."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    CombinerType,
    EmbeddingLookupSparseOptions,
    KernelError,
    Op,
    OperatorView,
)
from tflite_ort.schema.shapes_lookup import combined_shape


@kernel(Op.EMBEDDING_LOOKUP, versions=(1, 5), inputs=("ids", "table"))
def embedding_lookup(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Rows of the table; of integer codes for a float output, code * scale (of the row).

    TFLite reads uint8 codes as int8 ones.
    """
    ids, table = inputs
    rows = table[_checked(ids, len(table))]
    if rows.dtype == op.output.dtype:
        return (rows,)
    quantization = op["table"].quantization
    if quantization is None or table.itemsize != 1 or op.output.dtype.kind != "f":
        raise KernelError(f"no {op.output.dtype} rows from a table of {table.dtype}")
    if quantization.zero_point[0]:
        raise KernelError(f"table has zero point {quantization.zero_point[0]}, expected 0")
    scale = np.broadcast_to(quantization.scale, len(table))[ids]
    scale = scale.reshape(-1, *(1,) * (table.ndim - 1))
    return ((rows.view(np.int8).astype(np.float32) * scale).astype(op.output.dtype),)


def _checked(ids: Array, rows: int) -> Array:
    if ((ids < 0) | (ids >= rows)).any():
        raise KernelError(f"index out of bounds: {ids.min()}..{ids.max()} of {rows} rows")
    return ids


@kernel(
    Op.EMBEDDING_LOOKUP_SPARSE,
    versions=(1, 1),
    inputs=("ids", "indices", "dense_shape", "weights", "params"),
)
def embedding_lookup_sparse(
    op: OperatorView[EmbeddingLookupSparseOptions], inputs: Inputs, state: State
) -> Outputs:
    """Weighted rows summed by bucket (all but the last index), divided by the sum of the weights
    (MEAN) or the root of the sum of their squares (SQRTN); 0 in a bucket without rows.

    A bucket ends where another begins: one that comes again is divided again.
    """
    ids, indices, dense_shape, weights, params = inputs
    shape = combined_shape(dense_shape, params.shape)
    rows = params[_checked(ids, len(params))] * weights.reshape(-1, *(1,) * (params.ndim - 1))
    buckets = _buckets(indices[:, :-1], shape)
    result = np.zeros((int(np.prod(shape[: indices.shape[1] - 1])), *params.shape[1:]), np.float32)
    starts = np.flatnonzero(np.diff(buckets, prepend=-1))
    for first, last in zip(starts, [*starts[1:], len(ids)], strict=True):
        bucket, part = buckets[first], slice(first, last)
        np.add.at(result, buckets[part], rows[part])
        result[bucket] /= _divisor(op.options.combiner, weights[part])
    return (result.reshape(shape),)


def _buckets(indices: Array, shape: tuple[int, ...]) -> Array:
    for axis, size in enumerate(shape[: indices.shape[1]]):
        _checked(indices[:, axis], size)
    if not indices.shape[1]:
        return np.zeros(len(indices), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(indices.T), shape[: indices.shape[1]]))


def _divisor(combiner: CombinerType, weights: npt.NDArray[np.float32]) -> np.float32:
    if combiner == CombinerType.SUM:
        return np.float32(1)
    if combiner == CombinerType.MEAN:
        return np.float32(weights.sum(dtype=np.float32))
    return np.float32(np.sqrt((weights * weights).sum(dtype=np.float32)))


@kernel(Op.HASHTABLE_LOOKUP, versions=(1, 1), inputs=("lookup", "keys", "values"))
def hashtable_lookup(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The rows of `values` at the keys looked up, zeros for one that is not there; and 1 or 0 for
    found or not."""
    lookup, keys, values = inputs
    places = _binary_search(lookup, keys)
    found = places >= 0
    rows = np.where(found.reshape(-1, *(1,) * (values.ndim - 1)), values[places], 0)
    return rows.astype(values.dtype), found.astype(np.uint8)


def _binary_search(wanted: Array, keys: Array) -> npt.NDArray[np.int64]:
    """Where in `keys` the values are, -1 for those not met. Of equal keys, and where they are not
    ascending, C's bsearch finds the same."""
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(keys))
    places = np.full(len(wanted), -1)
    for _ in range(len(keys).bit_length()):
        middle = (low + high) // 2
        step = wanted - keys[np.minimum(middle, len(keys) - 1)]
        open_ = (low < high) & (places < 0)
        places = np.where(open_ & (step == 0), middle, places)
        high = np.where(open_ & (step < 0), middle, high)
        low = np.where(open_ & (step > 0), middle + 1, low)
    return places
