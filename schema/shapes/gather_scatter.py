"""Shape rules of the operators that write, count or select by index."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import (
    Shape,
    Shapes,
    listed,
    rule,
    shown,
    single,
)
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import differ, is_known, known_product, unknown_size
from tflite_ort.schema.values.view import Array, OperatorView, TensorView

_MOST_DENSE_DIMENSIONS = 4


def scatter_shape(indices: Shape, updates: Shape, shape: Array) -> Shape:
    """SCATTER_ND's `shape`, to which index tuples [N..., K] bring updates [N..., shape[K:]...]."""
    result: Shape = tuple(shape.reshape(-1).tolist())
    if shape.ndim != 1 or min(result, default=0) < 0 or not indices or not updates:
        raise ModelError(f"shape {shown(shape)}, indices {indices} and updates {updates}")
    if not is_known(indices[-1]):
        return result
    if indices[-1] > len(result) or differ((*indices[:-1], *result[indices[-1] :]), updates):
        raise ModelError(f"indices {indices} do not bring updates {updates} to shape {result}")
    return result


@rule(Op.SCATTER_ND)
def scatter_nd(op: OperatorView[Any]) -> Shapes | None:
    """What the shape input says."""
    indices, updates = op["indices"], op["updates"]
    shape, sizes = op["shape"].data, listed(op["shape"])
    if shape is not None:
        return (scatter_shape(indices.shape, updates.shape, shape),)
    return None if sizes is None else (sizes,)


def dense_shape(indices: Shape, shape: Array, values: Shape) -> Shape:
    """SPARSE_TO_DENSE's `shape`; scalar, [N] or [N, rank] indices for one value or [N] of them."""
    result: Shape = tuple(shape.reshape(-1).tolist())
    depth = indices[1] if len(indices) == 2 else 1
    fits = not differ((depth,), (len(result),))
    if len(indices) > 2 or not fits or len(result) > _MOST_DENSE_DIMENSIONS:
        raise ModelError(f"indices of shape {indices} do not index shape {result}")
    known = is_known(*values, *indices[:1])
    if len(values) > 1 or (values and known and prod(values) != prod(indices[:1])):
        raise ModelError(f"values of shape {values} for indices of shape {indices}")
    if shape.ndim != 1 or min(result, default=0) < 0:
        raise ModelError(f"shape {shown(shape)} is none")
    return result


@rule(Op.SPARSE_TO_DENSE)
def sparse_to_dense(op: OperatorView[Any]) -> Shapes | None:
    """What the shape input says."""
    indices, values, shape = op["indices"], op["values"], op["shape"].data
    _check_single(op["default_value"], values.type)
    if shape is not None:
        return (dense_shape(indices.shape, shape, values.shape),)
    sizes = listed(op["shape"])
    return None if sizes is None else (sizes,)


def _check_single(tensor: TensorView, type: TensorType) -> None:
    """`tensor` is one value of `type`."""
    if tensor.type is not type:
        raise ModelError(f"{tensor.type.name} is not one of the types accepted: {type.name}")
    if known_product(tensor.shape) != 1:
        raise ModelError(f"expected one value, got shape {tensor.shape}")


def one_hot_shape(indices: Shape, depth: int, axis: int) -> Shape:
    """`indices` with `depth` inserted at `axis`; -1 is behind the last."""
    place = len(indices) if axis == -1 else axis
    if not 0 <= place <= len(indices) or (is_known(depth) and depth < 0):
        raise ModelError(f"depth {depth} at axis {axis} of indices of shape {indices}")
    return (*indices[:place], depth, *indices[place:])


@rule(Op.ONE_HOT)
def one_hot(op: OperatorView[Any]) -> Shapes | None:
    """The indices' shape with `depth` at `axis`."""
    indices, depth = op["indices"], op["depth"].data
    for value in (op["on_value"], op["off_value"]):
        _check_single(value, op["on_value"].type)
    size = unknown_size() if depth is None else single(depth)
    return (one_hot_shape(indices.shape, size, op.options.axis),)


def segment_count(ids: Array, rows: int) -> int:
    """How many segments SEGMENT_SUM's `ids` name: from 0 up, each the same or the next."""
    if differ(ids.shape, (rows,)):
        raise ModelError(f"segment ids of shape {ids.shape} for {rows} rows")
    steps = ids[1:].astype(int) - ids[:-1]
    if ids.size and (ids[0] != 0 or ((steps != 0) & (steps != 1)).any()):
        raise ModelError(f"segment ids {shown(ids)} do not count up from 0 one by one")
    return int(ids[-1]) + 1 if ids.size else 0


@rule(Op.SEGMENT_SUM)
def segment_sum(op: OperatorView[Any]) -> Shapes | None:
    """[segments, D...] of data [N, D...]."""
    shape, ids = op["data"].shape, op["segment_ids"].data
    if not shape:
        raise ModelError("a scalar has no segments")
    count = unknown_size() if ids is None else segment_count(ids, shape[0])
    return ((count, *shape[1:]),)


def segments_shape(data: Shape, ids: Shape, segments: int) -> Shape:
    """[segments, D...] of data [I..., D...] whose ids have shape I."""
    if differ(data[: len(ids)], ids) or (is_known(segments) and segments < 0):
        raise ModelError(f"{segments} segments of data {data} by ids of shape {ids}")
    return (segments, *data[len(ids) :])


def segment_start(op: Op, dtype: np.dtype[Any]) -> Any:
    """What an empty segment holds; extremes are the finite ones of `dtype`."""
    limits = np.finfo(dtype) if dtype.kind == "f" else np.iinfo(dtype)
    starts = {Op.UNSORTED_SEGMENT_PROD: 1, Op.UNSORTED_SEGMENT_MAX: limits.min}
    return dtype.type({**starts, Op.UNSORTED_SEGMENT_MIN: limits.max}.get(op, 0))


@rule(
    Op.UNSORTED_SEGMENT_SUM,
    Op.UNSORTED_SEGMENT_PROD,
    Op.UNSORTED_SEGMENT_MAX,
    Op.UNSORTED_SEGMENT_MIN,
)
def unsorted_segments(op: OperatorView[Any]) -> Shapes | None:
    """[num_segments, D...] of data [I..., D...] whose ids have shape I."""
    data, ids = op["data"], op["segment_ids"]
    segments = op["num_segments"].data
    count = unknown_size() if segments is None else single(segments)
    return (segments_shape(data.shape, ids.shape, count),)


@rule(Op.WHERE)
def where(op: OperatorView[Any]) -> Shapes:
    """[how many are true, rank]."""
    shape = op["condition"].shape
    if not shape:
        raise ModelError("a scalar condition has no coordinates")
    return ((unknown_size(), len(shape)),)


@rule(Op.UNIQUE)
def unique(op: OperatorView[Any]) -> Shapes:
    """[how many differ], and the input's shape."""
    shape = op["input"].shape
    if len(shape) != 1:
        raise ModelError(f"expected a 1-D tensor, got shape {shape}")
    return (unknown_size(),), shape


def top_shape(shape: Shape, k: int) -> Shape:
    """`shape` with `k` elements along the last axis; none if `k` is negative."""
    if not shape or (is_known(k, shape[-1]) and k > shape[-1]):
        raise ModelError(f"no {k} largest elements in rows of shape {shape}")
    return (*shape[:-1], max(k, 0) if is_known(k) else k)


@rule(Op.TOPK_V2)
def topk_v2(op: OperatorView[Any]) -> Shapes | None:
    """The input's shape with `k` for its last size, twice."""
    shape, k = op["input"].shape, op["k"].data
    return (top_shape(shape, unknown_size() if k is None else single(k)),) * 2


def gather_axes(rank: int, positions_rank: int, axis: int, batch_dims: int) -> tuple[int, int]:
    """GATHER's (axis, batch_dims) counted from the front; negative batch_dims count positions."""
    axis = normalized_axis(axis, rank)
    batch = batch_dims + positions_rank if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(axis, positions_rank):
        raise ModelError(f"batch_dims {batch_dims} is outside 0..{min(axis, positions_rank)}")
    return axis, batch


@rule(Op.GATHER)
def gather(op: OperatorView[Any]) -> Shapes | None:
    """The positions in place of the axis that they index."""
    shape, positions = op["input"].shape, op["positions"].shape
    axis, batch = gather_axes(len(shape), len(positions), op.options.axis, op.options.batch_dims)
    if differ(shape[:batch], positions[:batch]):
        raise ModelError(f"batch dimensions of {shape} and {positions} differ")
    return ((*shape[:axis], *positions[batch:], *shape[axis + 1 :]),)


@rule(Op.GATHER_ND)
def gather_nd(op: OperatorView[Any]) -> Shapes | None:
    """[N..., D...] of index tuples [N..., K] into K dimensions and D."""
    shape, indices = op["params"].shape, op["indices"].shape
    if indices and not is_known(indices[-1]):
        return None
    if not indices or indices[-1] > len(shape):
        raise ModelError(f"indices of shape {indices} do not index shape {shape}")
    return ((*indices[:-1], *shape[indices[-1] :]),)
