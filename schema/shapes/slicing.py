"""Shape rules of the operators that cut regions or pick elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.enums import TensorType
from tflite_ort.schema.errors import ModelError
from tflite_ort.schema.options import StridedSliceOptions
from tflite_ort.schema.semantics import normalized_axis, strided_slice
from tflite_ort.schema.shapes.registry import Shape, Shapes, constant, of_type, required, rule
from tflite_ort.schema.view import OperatorView

_POSITIONS = (TensorType.INT16, TensorType.INT32, TensorType.INT64)
_PICKED = (
    *(*_POSITIONS, TensorType.INT4, TensorType.INT8, TensorType.UINT8, TensorType.BOOL),
    *(TensorType.FLOAT32, TensorType.FLOAT16, TensorType.BFLOAT16, TensorType.STRING),
)


def slice_sizes(shape: Shape, begin: Shape, size: Shape) -> Shape:
    """SLICE's `size` with each -1 replaced by what is left after `begin`."""
    if not len(shape) == len(begin) == len(size):
        raise ModelError(f"begin {begin} and size {size} do not index shape {shape}")
    sizes = tuple(
        dim - first if length == -1 else length
        for dim, first, length in zip(shape, begin, size, strict=True)
    )
    for dim, first, length in zip(shape, begin, sizes, strict=True):
        if first < 0 or length < 0 or first + length > dim:
            raise ModelError(f"begin {begin} with size {size} leaves shape {shape}")
    return sizes


@rule(Op.SLICE)
def slice_(op: OperatorView[Any]) -> Shapes | None:
    """Known from the size alone, unless it says "the rest" of an unknown begin."""
    begin, size = constant(op, 1), constant(op, 2)
    if size is None or (begin is None and (size < 0).any()):
        return None
    first = (0,) * size.size if begin is None else tuple(begin.tolist())
    return (slice_sizes(required(op, 0).shape, first, tuple(size.tolist())),)


@rule(Op.STRIDED_SLICE)
def strided_slice_(op: OperatorView[Any]) -> Shapes | None:
    """Known without begin and end when no axis is cut by them: all are whole, new or dropped."""
    begin, end, strides = constant(op, 1), constant(op, 2), constant(op, 3)
    if strides is None:
        return None
    if begin is None or end is None:
        if not uncut(op.options, strides.size):
            return None
        begin = end = np.zeros(strides.size, np.int32)
    return (strided_slice(required(op, 0).shape, begin, end, strides, op.options).shape,)


def uncut(options: StridedSliceOptions, count: int) -> bool:
    """Whether none of `count` entries of STRIDED_SLICE is a range with a begin or end."""
    whole = options.begin_mask & options.end_mask
    other = options.ellipsis_mask | options.new_axis_mask | options.shrink_axis_mask
    return all((whole | other) >> entry & 1 for entry in range(count))


def gather_axes(rank: int, positions_rank: int, axis: int, batch_dims: int) -> tuple[int, int]:
    """GATHER's (axis, batch_dims) counted from the front; negative batch_dims count positions."""
    axis = normalized_axis(axis, rank)
    batch = batch_dims + positions_rank if batch_dims < 0 else batch_dims
    if not 0 <= batch <= min(axis, positions_rank):
        raise ModelError(f"batch_dims {batch_dims} is outside 0..{min(axis, positions_rank)}")
    return axis, batch


def check_update(shape: Shape, update: Shape, start: Shape) -> None:
    """An update has the rank of what it goes into, and no dimension is larger."""
    if start != (len(shape),) or len(update) != len(shape):
        raise ModelError(f"start of shape {start} and update {update} for shape {shape}")
    if any(part > size for part, size in zip(update, shape, strict=True)):
        raise ModelError(f"update {update} is larger than {shape}")


@rule(Op.DYNAMIC_UPDATE_SLICE)
def dynamic_update_slice(op: OperatorView[Any]) -> Shapes | None:
    shape = required(op, 0).shape
    check_update(shape, required(op, 1).shape, required(op, 2).shape)
    return (shape,)


@rule(Op.GATHER)
def gather(op: OperatorView[Any]) -> Shapes | None:
    shape, positions = of_type(op, 0, *_PICKED).shape, of_type(op, 1, *_POSITIONS).shape
    axis, batch = gather_axes(len(shape), len(positions), op.options.axis, op.options.batch_dims)
    if shape[:batch] != positions[:batch]:
        raise ModelError(f"batch dimensions of {shape} and {positions} differ")
    return ((*shape[:axis], *positions[batch:], *shape[axis + 1 :]),)


@rule(Op.GATHER_ND)
def gather_nd(op: OperatorView[Any]) -> Shapes | None:
    shape, indices = of_type(op, 0, *_PICKED).shape, of_type(op, 1, *_POSITIONS).shape
    if not indices or indices[-1] > len(shape):
        raise ModelError(f"indices of shape {indices} do not index shape {shape}")
    return ((*indices[:-1], *shape[indices[-1] :]),)
