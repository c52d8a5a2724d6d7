"""Shape rules of the operators that write, count or select by index."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.enums import TensorType
from tflite_ort.schema.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, constant, of_type, rule, single
from tflite_ort.schema.view import Array, OperatorView, TensorView

_WHOLE = (TensorType.INT32, TensorType.INT64)
_SCATTERED = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, TensorType.BOOL, *_WHOLE)
_DENSE = (TensorType.FLOAT32, TensorType.UINT8, TensorType.INT8, *_WHOLE)
_ONE_HOT = (*_DENSE, TensorType.BOOL)
_SEGMENTED = (TensorType.FLOAT32, TensorType.INT32)
_CONDITIONS = (*_ONE_HOT, TensorType.UINT32)
_COMPARED = (*_DENSE, TensorType.INT16)
_MOST_DENSE_DIMENSIONS = 4


def scatter_shape(indices: Shape, updates: Shape, shape: Array) -> Shape:
    """SCATTER_ND's `shape`, to which index tuples [N..., K] bring updates [N..., shape[K:]...]."""
    result: Shape = tuple(shape.reshape(-1).tolist())
    if shape.ndim != 1 or min(result, default=0) < 0 or not indices or not updates:
        raise ModelError(f"shape {shape.tolist()}, indices {indices} and updates {updates}")
    if indices[-1] > len(result) or (*indices[:-1], *result[indices[-1] :]) != updates:
        raise ModelError(f"indices {indices} do not bring updates {updates} to shape {result}")
    return result


@rule(Op.SCATTER_ND)
def scatter_nd(op: OperatorView[Any]) -> Shapes | None:
    indices, updates = of_type(op, 0, TensorType.INT32), of_type(op, 1, *_SCATTERED)
    of_type(op, 2, TensorType.INT32)
    shape = constant(op, 2)
    return None if shape is None else (scatter_shape(indices.shape, updates.shape, shape),)


def dense_shape(indices: Shape, shape: Array, values: Shape) -> Shape:
    """SPARSE_TO_DENSE's `shape`; scalar, [N] or [N, rank] indices for one value or [N] of them."""
    result: Shape = tuple(shape.reshape(-1).tolist())
    depth = indices[1] if len(indices) == 2 else 1
    if len(indices) > 2 or depth != len(result) or len(result) > _MOST_DENSE_DIMENSIONS:
        raise ModelError(f"indices of shape {indices} do not index shape {result}")
    if len(values) > 1 or (values and prod(values) != prod(indices[:1])):
        raise ModelError(f"values of shape {values} for indices of shape {indices}")
    if shape.ndim != 1 or min(result, default=0) < 0:
        raise ModelError(f"shape {shape.tolist()} is none")
    return result


@rule(Op.SPARSE_TO_DENSE)
def sparse_to_dense(op: OperatorView[Any]) -> Shapes | None:
    indices, values, shape = of_type(op, 0, *_WHOLE), of_type(op, 2, *_DENSE), constant(op, 1)
    _check_single(of_type(op, 3, values.type))
    return None if shape is None else (dense_shape(indices.shape, shape, values.shape),)


def _check_single(tensor: TensorView) -> None:
    if prod(tensor.shape) != 1:
        raise ModelError(f"expected one value, got shape {tensor.shape}")


def one_hot_shape(indices: Shape, depth: int, axis: int) -> Shape:
    """`indices` with `depth` inserted at `axis`; -1 is behind the last."""
    place = len(indices) if axis == -1 else axis
    if not 0 <= place <= len(indices) or depth < 0:
        raise ModelError(f"depth {depth} at axis {axis} of indices of shape {indices}")
    return (*indices[:place], depth, *indices[place:])


@rule(Op.ONE_HOT)
def one_hot(op: OperatorView[Any]) -> Shapes | None:
    indices, depth = of_type(op, 0, *_WHOLE), constant(op, 1)
    on = of_type(op, 2, *_ONE_HOT)
    for value in (on, of_type(op, 3, on.type)):
        _check_single(value)
    if depth is None:
        return None
    return (one_hot_shape(indices.shape, single(depth), op.options.axis),)


def segment_count(ids: Array, rows: int) -> int:
    """How many segments SEGMENT_SUM's `ids` name: from 0 up, each the same or the next."""
    if ids.shape != (rows,):
        raise ModelError(f"segment ids of shape {ids.shape} for {rows} rows")
    steps = ids[1:].astype(int) - ids[:-1]
    if rows and (ids[0] != 0 or ((steps != 0) & (steps != 1)).any()):
        raise ModelError(f"segment ids {ids.tolist()} do not count up from 0 one by one")
    return int(ids[-1]) + 1 if rows else 0


@rule(Op.SEGMENT_SUM)
def segment_sum(op: OperatorView[Any]) -> Shapes | None:
    shape, ids = of_type(op, 0, *_SEGMENTED).shape, constant(op, 1)
    of_type(op, 1, TensorType.INT32)
    if not shape:
        raise ModelError("a scalar has no segments")
    return None if ids is None else ((segment_count(ids, shape[0]), *shape[1:]),)


def segments_shape(data: Shape, ids: Shape, segments: int) -> Shape:
    """[segments, D...] of data [I..., D...] whose ids have shape I."""
    if data[: len(ids)] != ids or segments < 0:
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
    data, ids = of_type(op, 0, *_SEGMENTED), of_type(op, 1, TensorType.INT32)
    of_type(op, 2, TensorType.INT32)
    segments = constant(op, 2)
    if segments is None:
        return None
    return (segments_shape(data.shape, ids.shape, single(segments)),)


@rule(Op.WHERE)
def where(op: OperatorView[Any]) -> Shapes | None:
    if not of_type(op, 0, *_CONDITIONS).shape:
        raise ModelError("a scalar condition has no coordinates")
    return None


@rule(Op.UNIQUE)
def unique(op: OperatorView[Any]) -> Shapes | None:
    shape = of_type(op, 0, *_COMPARED).shape
    if len(shape) != 1:
        raise ModelError(f"expected a 1-D tensor, got shape {shape}")
    return None


def top_shape(shape: Shape, k: int) -> Shape:
    """`shape` with `k` elements along the last axis; none if `k` is negative."""
    if not shape or k > shape[-1]:
        raise ModelError(f"no {k} largest elements in rows of shape {shape}")
    return (*shape[:-1], max(k, 0))


@rule(Op.TOPK_V2)
def topk_v2(op: OperatorView[Any]) -> Shapes | None:
    shape, k = of_type(op, 0, *_COMPARED).shape, constant(op, 1)
    of_type(op, 1, TensorType.INT32, TensorType.INT16)
    return None if k is None else (top_shape(shape, single(k)),) * 2
