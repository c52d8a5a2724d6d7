"""Shape rules of the operators that reorder, join, cut or pad tensors."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.enums import TensorType
from tflite_ort.schema.errors import ModelError
from tflite_ort.schema.semantics import NUMPY_DTYPE, normalized_axes, normalized_axis
from tflite_ort.schema.shapes.registry import Shape, Shapes, constant, required, rule
from tflite_ort.schema.view import Array, OperatorView


def resolved_shape(old: Shape, new: Shape) -> Shape:
    """`new` with its one -1 filled in, so that it holds what shape `old` holds; where both have a
    0, as if neither had."""
    if new.count(-1) > 1 or any(dim < -1 for dim in new):
        raise ModelError(f"new shape {new} has more than one unknown dimension")
    size, rest = prod(old), prod(dim for dim in new if dim != -1)
    inferred = prod(filter(None, old)) // prod(dim for dim in new if dim > 0)
    if rest and not size:
        inferred = 0
    filled = tuple(inferred if dim == -1 else dim for dim in new)
    if prod(filled) != size:
        raise ModelError(f"{size} elements do not fill shape {new}")
    return filled


def legacy_shape(new_shape: Shape | None) -> Shape:
    """RESHAPE's shape when it is an option; old models say [0] for a scalar."""
    return () if new_shape is None or tuple(new_shape) == (0,) else tuple(new_shape)


@rule(Op.RESHAPE)
def reshape(op: OperatorView[Any]) -> Shapes | None:
    wanted = op.inputs[1] if len(op.inputs) > 1 else None
    if wanted is None or wanted.rank != 1 or wanted.type != TensorType.INT32:
        new_shape = legacy_shape(op.options.new_shape)
    elif wanted.data is None:
        return None
    else:
        new_shape = tuple(wanted.data.tolist())
    return (resolved_shape(required(op, 0).shape, new_shape),)


def squeezed_axes(shape: Shape, listed: Shape | None) -> Shape:
    """The axes SQUEEZE drops: those listed, or all of size 1 when none is."""
    axes = normalized_axes(listed or (), len(shape))
    if any(shape[axis] != 1 for axis in axes):
        raise ModelError(f"axes {axes} of shape {shape} are not all of size 1")
    return axes or tuple(axis for axis, size in enumerate(shape) if size == 1)


@rule(Op.SQUEEZE)
def squeeze(op: OperatorView[Any]) -> Shapes | None:
    shape = required(op, 0).shape
    axes = squeezed_axes(shape, op.options.squeeze_dims)
    return (tuple(size for axis, size in enumerate(shape) if axis not in axes),)


@rule(Op.EXPAND_DIMS)
def expand_dims(op: OperatorView[Any]) -> Shapes | None:
    shape, where = required(op, 0).shape, constant(op, 1)
    if where is None:
        return None
    axis = normalized_axis(int(where.reshape(-1)[0]), len(shape) + 1)
    return ((*shape[:axis], 1, *shape[axis:]),)


@rule(Op.TRANSPOSE)
def transpose(op: OperatorView[Any]) -> Shapes | None:
    shape, perm = required(op, 0).shape, constant(op, 1)
    if perm is None:
        return None
    order = [normalized_axis(int(axis), len(shape)) for axis in perm]
    if sorted(order) != list(range(len(shape))):
        raise ModelError(f"{perm.tolist()} is not a permutation of rank {len(shape)}")
    return (tuple(shape[axis] for axis in order),)


@rule(Op.CONCATENATION)
def concatenation(op: OperatorView[Any]) -> Shapes | None:
    shapes = [required(op, position).shape for position in range(len(op.inputs))]
    rank = len(shapes[0])
    axis = normalized_axis(op.options.axis, rank)
    rest = {(len(shape), *shape[:axis], *shape[axis + 1 :]) for shape in shapes}
    if len(rest) != 1:
        raise ModelError(f"shapes {shapes} differ outside axis {axis}")
    total = sum(shape[axis] for shape in shapes)
    return ((*shapes[0][:axis], total, *shapes[0][axis + 1 :]),)


@rule(Op.PACK)
def pack(op: OperatorView[Any]) -> Shapes | None:
    shapes = [required(op, position).shape for position in range(len(op.inputs))]
    if len(set(shapes)) != 1:
        raise ModelError(f"shapes {shapes} differ")
    axis = normalized_axis(op.options.axis, len(shapes[0]) + 1)
    return ((*shapes[0][:axis], len(shapes), *shapes[0][axis:]),)


@rule(Op.UNPACK)
def unpack(op: OperatorView[Any]) -> Shapes | None:
    shape = required(op, 0).shape
    axis = normalized_axis(op.options.axis, len(shape))
    if shape[axis] != op.options.num:
        raise ModelError(f"axis {axis} of {shape} does not unpack into {op.options.num}")
    return ((*shape[:axis], *shape[axis + 1 :]),) * int(op.options.num)


@rule(Op.SPLIT)
def split(op: OperatorView[Any]) -> Shapes | None:
    where, shape, parts = constant(op, 0), required(op, 1).shape, int(op.options.num_splits)
    if where is None:
        return None
    axis = normalized_axis(int(where.reshape(-1)[0]), len(shape))
    if parts <= 0 or shape[axis] % parts:
        raise ModelError(f"axis {axis} of {shape} does not split into {parts} equal parts")
    return ((*shape[:axis], shape[axis] // parts, *shape[axis + 1 :]),) * parts


def split_sizes(total: int, sizes: Shape) -> Shape:
    """SPLIT_V's `sizes` with their one -1 filled in; they have to sum to `total`."""
    if sizes.count(-1) > 1:
        raise ModelError(f"split sizes {sizes} have more than one unknown")
    rest = sum(size for size in sizes if size != -1)
    filled = tuple(total - rest if size == -1 else size for size in sizes)
    if sum(filled) != total or any(size < 0 for size in filled):
        raise ModelError(f"split sizes {sizes} do not sum to {total}")
    return filled


@rule(Op.SPLIT_V)
def split_v(op: OperatorView[Any]) -> Shapes | None:
    shape, sizes, where = required(op, 0).shape, constant(op, 1), constant(op, 2)
    if sizes is None or where is None:
        return None
    axis = normalized_axis(int(where.reshape(-1)[0]), len(shape))
    filled = split_sizes(shape[axis], tuple(sizes.tolist()))
    return tuple((*shape[:axis], size, *shape[axis + 1 :]) for size in filled)


@rule(Op.SHAPE)
def shape_(op: OperatorView[Any]) -> Shapes | None:
    return ((required(op, 0).rank,),)


@rule(Op.RANK)
def rank(op: OperatorView[Any]) -> Shapes | None:
    return ((),)


def bitcast_shape(shape: Shape, source: TensorType, target: TensorType) -> Shape:
    """`shape` with a last dimension of parts for a smaller type, without it for a larger one."""
    before, after = NUMPY_DTYPE[source].itemsize, NUMPY_DTYPE[target].itemsize
    if before > after:
        return (*shape, before // after)
    if before < after and shape[-1:] != (after // before,):
        raise ModelError(
            f"shape {shape} of {source.name} has to end in {after // before} for {target.name}"
        )
    return shape[:-1] if before < after else shape


@rule(Op.BITCAST)
def bitcast(op: OperatorView[Any]) -> Shapes | None:
    input = required(op, 0)
    return (bitcast_shape(input.shape, input.type, op.output.type),)


@rule(Op.FILL)
def fill(op: OperatorView[Any]) -> Shapes | None:
    dims = constant(op, 0)
    if dims is None:
        return None
    if dims.ndim != 1 or (dims < 0).any():
        raise ModelError(f"Fill dimensions must be >= 0 and one list, got {dims.tolist()}")
    return (tuple(dims.tolist()),)


def range_shape(start: Array, limit: Array, delta: Array) -> Shape:
    """How many numbers there are from `start` by `delta` up (or down) to before `limit`."""
    if start.ndim or limit.ndim or delta.ndim:
        raise ModelError("start, limit and delta have to be scalars")
    up, down = bool(start <= limit and delta > 0), bool(start >= limit and delta < 0)
    if not up and not down:
        raise ModelError(f"no way from {start.item()} to {limit.item()} by {delta.item()}")
    if start.dtype.kind != "f":
        span, step = abs(limit.item() - start.item()), abs(delta.item())
        return ((span + step - 1) // step,)
    return (int(np.ceil(np.abs((limit - start) / delta)).item()),)


@rule(Op.RANGE)
def range_(op: OperatorView[Any]) -> Shapes | None:
    values = [constant(op, position) for position in range(3)]
    if any(value is None for value in values):
        return None
    return (range_shape(*(np.asarray(value) for value in values)),)


@rule(Op.SPACE_TO_DEPTH)
def space_to_depth(op: OperatorView[Any]) -> Shapes | None:
    (n, h, w, c), block = _image(op), int(op.options.block_size)
    if block <= 0 or h % block or w % block:
        raise ModelError(f"blocks of {block} do not tile {h} x {w}")
    return ((n, h // block, w // block, c * block * block),)


@rule(Op.DEPTH_TO_SPACE)
def depth_to_space(op: OperatorView[Any]) -> Shapes | None:
    (n, h, w, c), block = _image(op), int(op.options.block_size)
    if block <= 0 or c % (block * block):
        raise ModelError(f"{c} channels do not make blocks of {block} x {block}")
    return ((n, h * block, w * block, c // (block * block)),)


def _image(op: OperatorView[Any]) -> Shape:
    shape = required(op, 0).shape
    if len(shape) != 4:
        raise ModelError(f"expected a 4-D tensor, got shape {shape}")
    return shape


@rule(Op.PAD, Op.PADV2, Op.MIRROR_PAD)
def pad(op: OperatorView[Any]) -> Shapes | None:
    shape, pads = required(op, 0).shape, constant(op, 1)
    if pads is None:
        return None
    if pads.shape != (len(shape), 2) or (pads < 0).any():
        raise ModelError(f"paddings {pads.tolist()} do not pad a tensor of shape {shape}")
    return (tuple(int(dim) for dim in np.add(shape, pads.sum(axis=1))),)
