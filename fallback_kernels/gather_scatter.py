"""Reading, writing and combining elements by index: GATHER, SCATTER_ND, segments, TOPK_V2.

Rows of a table: unsorted_segment_sum, unsorted_segment_prod, unsorted_segment_max,
unsorted_segment_min.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.idioms.scattering import combine_at, rows_of
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    GatherOptions,
    KernelError,
    OneHotOptions,
    Op,
    OperatorView,
    SparseToDenseOptions,
    UniqueOptions,
)
from tflite_ort.schema.shapes.gather_scatter import (
    dense_shape,
    gather_axes,
    one_hot_shape,
    scatter_shape,
    segment_count,
    segment_start,
    segments_shape,
    top_shape,
)
from tflite_ort.schema.shapes.registry import single


@kernel(Op.GATHER, versions=(1, 8))
def gather(op: OperatorView[GatherOptions], inputs: Inputs, state: State) -> Outputs:
    """Slices along `axis` at `positions`, which share the leading `batch_dims` axes."""
    array, positions = inputs
    axis, batch = gather_axes(array.ndim, positions.ndim, op.options.axis, op.options.batch_dims)
    _check(positions, array.shape[axis], "gather")
    if array.shape[:batch] != positions.shape[:batch]:
        raise KernelError(f"batch dimensions of {array.shape} and {positions.shape} differ")
    if batch == 0:
        return (np.take(array, positions, axis),)
    rows = int(np.prod(array.shape[:batch]))
    flat = array.reshape(rows, *array.shape[batch:])
    picks = positions.reshape(rows, *positions.shape[batch:])
    results = [np.take(row, pick, axis - batch) for row, pick in zip(flat, picks, strict=True)]
    shape = (*array.shape[:axis], *positions.shape[batch:], *array.shape[axis + 1 :])
    return (np.array(results, array.dtype).reshape(shape),)


@kernel(Op.GATHER_ND, versions=(1, 6))
def gather_nd(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """params[i0, i1, ...] for all index tuples in the last axis of `indices`."""
    params, indices = inputs
    depth = indices.shape[-1]
    rows = _checked_rows(indices, params.shape[:depth], "gather_nd")
    named, others = params.shape[:depth], params.shape[depth:]
    matrix = params.reshape(math.prod(named), math.prod(others))
    return (np.take(matrix, rows, axis=0).reshape((*rows.shape, *others)),)


@kernel(Op.SCATTER_ND, versions=(1, 1))
def scatter_nd(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Zeros, plus updates at their index tuples; integers wrap, bools are or-ed."""
    indices, updates, shape = inputs
    result = np.zeros(scatter_shape(indices.shape, updates.shape, shape), updates.dtype)
    rows = _checked_rows(indices, result.shape[: indices.shape[-1]], "scatter_nd")
    combine_at(np.add, result, rows, updates)
    return (result,)


@kernel(Op.SPARSE_TO_DENSE, versions=(1, 3))
def sparse_to_dense(
    op: OperatorView[SparseToDenseOptions], inputs: Inputs, state: State
) -> Outputs:
    """The default, with `values` written at `indices` in order: of equal ones the last stays."""
    indices, shape, values, default = inputs
    sizes = dense_shape(indices.shape, shape, values.shape)
    count = indices.shape[0] if indices.ndim else 1
    at = _checked_rows(indices.reshape(count, len(sizes)), sizes, "sparse_to_dense")
    result = np.full(sizes, default.reshape(()))
    # numpy does not define the order of writes to equal indices.
    places, last = np.unique(at[::-1], return_index=True)
    result.reshape(-1)[places] = np.broadcast_to(values, at.shape)[::-1][last]
    return (result,)


def _checked_rows(indices: Array, sizes: Sequence[int], name: str) -> Array:
    """The rows that the index tuples in the last axis name."""
    for axis, size in enumerate(sizes):
        _check(indices[..., axis], size, name)
    return rows_of(indices, sizes)


@kernel(Op.ONE_HOT, versions=(1, 1))
def one_hot(op: OperatorView[OneHotOptions], inputs: Inputs, state: State) -> Outputs:
    """`on_value` where the position along the new axis is the index; an index out of range has
    none. TFLite reads 64-bit indices as 32-bit ones."""
    indices, depth, on, off = inputs
    axis, count = op.options.axis, single(depth)
    shape = one_hot_shape(indices.shape, count, axis)
    positions = np.arange(count).reshape(-1, *(1,) * (indices.ndim - axis if axis != -1 else 0))
    chosen = np.expand_dims(indices.astype(np.int32), axis) == positions
    return (np.where(chosen, on.reshape(()), off.reshape(())).reshape(shape),)


@kernel(Op.SEGMENT_SUM, versions=(1, 1))
def segment_sum(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Row i is the sum of the rows with id i; ids ascend from 0 in steps of at most 1."""
    data, ids = inputs
    sums = np.zeros((segment_count(ids, len(data)), *data.shape[1:]), data.dtype)
    combine_at(np.add, sums, ids, data)
    return (sums,)


def unsorted_segment(op_: Op, combine: np.ufunc) -> None:
    """Row i combines the rows with id i; those with a negative id are left out.

    A NaN is never larger or smaller than another number.
    """

    @kernel(op_, versions=(1, 1))
    def combined(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
        data, ids, segments = inputs
        shape = segments_shape(data.shape, ids.shape, single(segments))
        if ids.size and ids.max() >= shape[0]:
            raise KernelError(f"segment id {ids.max()} of {shape[0]} segments")
        result = np.full(shape, segment_start(op_, data.dtype))
        combine_at(combine, result, ids[ids >= 0], data[ids >= 0])
        return (result,)


for _op, _combine in (
    (Op.UNSORTED_SEGMENT_SUM, np.add),
    (Op.UNSORTED_SEGMENT_PROD, np.multiply),
    (Op.UNSORTED_SEGMENT_MAX, np.fmax),
    (Op.UNSORTED_SEGMENT_MIN, np.fmin),
):
    unsorted_segment(_op, _combine)


@kernel(Op.WHERE, versions=(1, 2))
def where(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The coordinates [N, rank] of elements that are not zero, in row-major order."""
    return (np.argwhere(inputs[0]),)


@kernel(Op.UNIQUE, versions=(1, 1))
def unique(op: OperatorView[UniqueOptions], inputs: Inputs, state: State) -> Outputs:
    """The distinct values in order of appearance, and the position of every element among them."""
    values, first, inverse = np.unique(inputs[0], return_index=True, return_inverse=True)
    order = np.argsort(first)
    return values[order], np.argsort(order)[inverse].astype(op.outputs[1].dtype)


@kernel(Op.TOPK_V2, versions=(1, 3))
def topk_v2(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The k largest of the last axis in descending order, and their positions.

    Equal ones keep their order; NaN is after all others.
    """
    array, k = inputs
    shape = top_shape(array.shape, single(k))
    # As rows: numpy's lexsort has no more than 32 dimensions.
    rows = array.reshape(math.prod(array.shape[:-1]), array.shape[-1])
    # A stable ascending sort of the reversed axis, read backwards, keeps the order of equal ones.
    back = rows[:, ::-1]
    order = rows.shape[1] - 1 - np.lexsort((back, ~np.isnan(back)), axis=-1)[:, ::-1]
    top = order[:, : shape[-1]]
    values = np.take_along_axis(rows, top, -1)
    return values.reshape(shape), top.reshape(shape).astype(op.outputs[1].dtype)


def _check(indices: Array, size: int, name: str) -> None:
    """Refuses negative indices, as TFLite does."""
    if indices.size and not (indices.min() >= 0 and indices.max() < size):
        raise KernelError(
            f"{name} index out of bounds: {indices.min()}..{indices.max()} in an axis of {size}"
        )
