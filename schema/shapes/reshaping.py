"""Shape rules of the operators that reorder, join, cut or pad tensors."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from tflite_ort.schema.file.element_types import NUMPY_DTYPE, PACKED_BITS, TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import MirrorPadMode
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.options import MirrorPadOptions
from tflite_ort.schema.shapes.registry import (
    Shape,
    Shapes,
    listed,
    of_rank,
    reduced,
    rule,
    shapes_of_one_type,
    shown,
    some,
)
from tflite_ort.schema.values.semantics import normalized_axes, normalized_axis
from tflite_ort.schema.values.sizes import (
    cancelled,
    common,
    differ,
    is_known,
    known_product,
    multiple,
    padded_size,
    quotient,
    unknown_shape,
    unknown_size,
)
from tflite_ort.schema.values.view import Array, OperatorView, TensorView


def resolved_shape(old: Shape, new: Shape) -> Shape:
    """`new` with its one -1 filled in, so that it holds what shape `old` holds; where both have a
    0, as if neither had."""
    known = [dim for dim in new if is_known(dim)]
    if known.count(-1) > 1 or any(dim < -1 for dim in known):
        raise ModelError(f"new shape {new} has more than one unknown dimension")
    if not is_known(*old, *new):
        return _partly_resolved(old, new)
    size, rest = prod(old), prod(dim for dim in new if dim != -1)
    inferred = prod(filter(None, old)) // prod(dim for dim in new if dim > 0)
    if rest and not size:
        inferred = 0
    filled = tuple(inferred if dim == -1 else dim for dim in new)
    if prod(filled) != size:
        raise ModelError(f"{size} elements do not fill shape {new}")
    return filled


def _partly_resolved(old: Shape, new: Shape) -> Shape:
    """`new` with its -1, or the one unknown size that `old` lacks, filled in if it follows."""
    new = tuple(unknown_size() if is_known(dim) and dim == -1 else dim for dim in new)
    left, right = cancelled(old, new)
    size, rest = known_product(old), known_product(new)
    if len(right) != 1 or not rest:
        return new
    if not left and size % rest == 0:
        inferred = size // rest
    elif len(left) == 1 and size and size % rest == 0:
        inferred = multiple(left[0], size // rest)
    else:
        return new
    return tuple(inferred if dim is right[0] else dim for dim in new)


def legacy_shape(new_shape: Shape | None) -> Shape:
    """RESHAPE's shape when it is an option; old models say [0] for a scalar."""
    return () if new_shape is None or tuple(new_shape) == (0,) else tuple(new_shape)


def shape_operand(op: OperatorView[Any]) -> TensorView | None:
    """The input that RESHAPE takes its shape from; None where an option says it."""
    wanted = op.inputs[1] if len(op.inputs) > 1 else None
    fits = wanted is not None and wanted.rank == 1 and wanted.type is TensorType.INT32
    return wanted if fits else None


@rule(Op.RESHAPE)
def reshape(op: OperatorView[Any]) -> Shapes | None:
    """What the shape input or the option says, with its -1 filled in."""
    if shape_operand(op) is None:
        new_shape = legacy_shape(op.options.new_shape)
    else:
        found = listed(op["shape"])
        if found is None:
            return None
        new_shape = found
    source = op["input"]
    if source.ranked:
        return (resolved_shape(source.shape, new_shape),)
    return (tuple(unknown_size() if is_known(dim) and dim == -1 else dim for dim in new_shape),)


def squeezed_axes(shape: Shape, listed: Shape | None) -> Shape:
    """The axes SQUEEZE drops: those listed, or all of size 1 when none is."""
    axes = normalized_axes(listed or (), len(shape))
    if any(is_known(shape[axis]) and shape[axis] != 1 for axis in axes):
        raise ModelError(f"axes {axes} of shape {shape} are not all of size 1")
    return axes or tuple(axis for axis, size in enumerate(shape) if size == 1)


@rule(Op.SQUEEZE)
def squeeze(op: OperatorView[Any]) -> Shapes | None:
    """The shape without the listed axes of size 1, or without all of them."""
    shape = op["input"].shape
    if not op.options.squeeze_dims and not is_known(*shape):
        return None  # an unknown size may be 1
    return reduced(shape, squeezed_axes(shape, op.options.squeeze_dims))


@rule(Op.EXPAND_DIMS)
def expand_dims(op: OperatorView[Any]) -> Shapes | None:
    """The shape with a 1 at the axis."""
    shape, where = op["input"].shape, op["axis"].data
    if where is None:
        return (unknown_shape(len(shape) + 1),)
    axis = normalized_axis(int(where.reshape(-1)[0]), len(shape) + 1)
    return ((*shape[:axis], 1, *shape[axis:]),)


@rule(Op.TRANSPOSE)
def transpose(op: OperatorView[Any]) -> Shapes | None:
    """The sizes in the order of the permutation."""
    shape, perm = op["input"].shape, op["perm"].data
    if perm is None:
        return (unknown_shape(len(shape)),)
    order = [normalized_axis(int(axis), len(shape)) for axis in perm]
    if sorted(order) != list(range(len(shape))):
        raise ModelError(f"{shown(perm)} is not a permutation of rank {len(shape)}")
    return (tuple(shape[axis] for axis in order),)


@rule(Op.CONCATENATION)
def concatenation(op: OperatorView[Any]) -> Shapes | None:
    """One shape, with the sum of the sizes along the axis."""
    shapes = shapes_of_one_type(op.every("values"))
    rank = len(shapes[0])
    axis = normalized_axis(op.options.axis, rank)
    if any(len(shape) != rank for shape in shapes):
        raise ModelError(f"shapes {some(shapes)} differ in rank")
    joined = [shape[axis] for shape in shapes]
    total = sum(joined) if is_known(*joined) else unknown_size()
    rest = [(*shape[:axis], total, *shape[axis + 1 :]) for shape in shapes]
    result = tuple(map(common, *rest))
    if any(differ(result, shape) for shape in rest):
        raise ModelError(f"shapes {some(shapes)} differ outside axis {axis}")
    return (result,)


@rule(Op.PACK)
def pack(op: OperatorView[Any]) -> Shapes | None:
    """The one shape of all values, with their number at the axis."""
    shapes = shapes_of_one_type(op.every("values"))
    shape = tuple(map(common, *shapes))
    if any(differ(shape, other) for other in shapes):
        raise ModelError(f"shapes {some(shapes)} differ")
    axis = normalized_axis(op.options.axis, len(shape) + 1)
    return ((*shape[:axis], len(shapes), *shape[axis:]),)


@rule(Op.UNPACK)
def unpack(op: OperatorView[Any]) -> Shapes | None:
    """As many shapes without the axis as it is long."""
    shape = op["input"].shape
    axis = normalized_axis(op.options.axis, len(shape))
    if is_known(shape[axis]) and shape[axis] != op.options.num:
        raise ModelError(f"axis {axis} of {shape} does not unpack into {op.options.num}")
    return ((*shape[:axis], *shape[axis + 1 :]),) * int(op.options.num)


@rule(Op.SPLIT)
def split(op: OperatorView[Any]) -> Shapes | None:
    """Equal parts along the axis."""
    where, shape, parts = op["axis"].data, op["input"].shape, int(op.options.num_splits)
    if where is None:
        return (unknown_shape(len(shape)),) * parts
    axis = normalized_axis(int(where.reshape(-1)[0]), len(shape))
    if parts <= 0 or (is_known(shape[axis]) and shape[axis] % parts):
        raise ModelError(f"axis {axis} of {shape} does not split into {parts} equal parts")
    return ((*shape[:axis], quotient((shape[axis],), parts), *shape[axis + 1 :]),) * parts


def split_sizes(total: int, sizes: Shape) -> Shape:
    """SPLIT_V's `sizes` with their one -1 filled in; they have to sum to `total`."""
    if sizes.count(-1) > 1:
        raise ModelError(f"split sizes {sizes} have more than one unknown")
    if not is_known(total):
        return tuple(unknown_size() if size == -1 else size for size in sizes)
    rest = sum(size for size in sizes if size != -1)
    filled = tuple(total - rest if size == -1 else size for size in sizes)
    if sum(filled) != total or any(size < 0 for size in filled):
        raise ModelError(f"split sizes {sizes} do not sum to {total}")
    return filled


@rule(Op.SPLIT_V)
def split_v(op: OperatorView[Any]) -> Shapes | None:
    """Parts of the listed sizes along the axis."""
    shape, sizes, where = op["input"].shape, op["size_splits"].data, op["axis"].data
    if sizes is None or where is None:
        return tuple(unknown_shape(len(shape)) for _ in op.outputs)
    axis = normalized_axis(int(where.reshape(-1)[0]), len(shape))
    filled = split_sizes(shape[axis], tuple(sizes.tolist()))
    return tuple((*shape[:axis], size, *shape[axis + 1 :]) for size in filled)


@rule(Op.SHAPE)
def shape_(op: OperatorView[Any]) -> Shapes | None:
    """A list of as many sizes as there are dimensions."""
    input = op["input"]
    return ((input.rank,),) if input.ranked else (unknown_shape(1),)


@rule(Op.RANK)
def rank(op: OperatorView[Any]) -> Shapes | None:
    """A scalar."""
    return ((),)


def bitcast_shape(shape: Shape, source: TensorType, target: TensorType) -> Shape:
    """`shape` with a last dimension of parts for a smaller type, without it for a larger one."""
    before, after = NUMPY_DTYPE[source].itemsize, NUMPY_DTYPE[target].itemsize
    if before > after:
        return (*shape, before // after)
    if before < after and differ(shape[-1:], (after // before,)):
        raise ModelError(
            f"shape {shape} of {source.name} has to end in {after // before} for {target.name}"
        )
    return shape[:-1] if before < after else shape


@rule(Op.BITCAST)
def bitcast(op: OperatorView[Any]) -> Shapes | None:
    """The shape for another type of the same bits."""
    input, output = op["input"], op.output
    if input.type is not output.type and PACKED_BITS.keys() & {input.type, output.type}:
        raise ModelError(f"bits of {input.type.name} as {output.type.name}, which are packed")
    return (bitcast_shape(input.shape, input.type, op.output.type),)


@rule(Op.FILL)
def fill(op: OperatorView[Any]) -> Shapes | None:
    """What the dims input says."""
    dims = op["dims"].data
    if dims is not None and (dims.ndim != 1 or (dims < 0).any()):
        raise ModelError(f"Fill dimensions must be >= 0 and one list, got {shown(dims)}")
    shape = listed(op["dims"])
    return None if shape is None else (shape,)


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
    """A list of the numbers from `start` to before `limit`."""
    values = [op[name].data for name in op.names]
    if any(value is None for value in values):
        return (unknown_shape(1),)
    return (range_shape(*(np.asarray(value) for value in values)),)


@rule(Op.SPACE_TO_DEPTH)
def space_to_depth(op: OperatorView[Any]) -> Shapes | None:
    """[N, H / block, W / block, C * block * block]."""
    (n, h, w, c), block = of_rank(op, "input", 4), int(op.options.block_size)
    if block <= 0 or any(is_known(size) and size % block for size in (h, w)):
        raise ModelError(f"blocks of {block} do not tile {h} x {w}")
    return ((n, quotient((h,), block), quotient((w,), block), c * block * block),)


@rule(Op.DEPTH_TO_SPACE)
def depth_to_space(op: OperatorView[Any]) -> Shapes | None:
    """[N, H * block, W * block, C / (block * block)]."""
    (n, h, w, c), block = of_rank(op, "input", 4), int(op.options.block_size)
    if block <= 0 or c % (block * block):
        raise ModelError(f"{c} channels do not make blocks of {block} x {block}")
    sizes = (size * block if is_known(size) else unknown_size() for size in (h, w))
    return ((n, *sizes, c // (block * block)),)


def mirrored(options: MirrorPadOptions, pads: Array) -> list[int]:
    """The least size along each axis that MIRROR_PAD can mirror."""
    edge = int(options.mode == MirrorPadMode.REFLECT)
    return [most + edge for most in pads.max(axis=1).tolist()]


@rule(Op.PAD, Op.PADV2, Op.MIRROR_PAD)
def pad(op: OperatorView[Any]) -> Shapes | None:
    """Each size with its paddings added."""
    if "value" in op.names:
        shapes_of_one_type([op["input"], *filter(None, [op.get("value")])])
    shape, pads = op["input"].shape, op["paddings"].data
    if pads is None:
        return (_partly_padded(shape, listed(op["paddings"])),)
    if pads.shape != (len(shape), 2) or (pads < 0).any():
        raise ModelError(f"paddings {shown(pads)} do not pad a tensor of shape {shape}")
    if op.op is Op.MIRROR_PAD:
        for size, most in zip(shape, mirrored(op.options, pads), strict=True):
            if is_known(size) and size < most:
                raise ModelError(f"paddings {shown(pads)} do not mirror a tensor of shape {shape}")
    return (tuple(map(padded_size, shape, pads.sum(axis=1).tolist())),)


def _partly_padded(shape: Shape, pads: Shape | None) -> Shape:
    """Each size with its paddings added, where both are known."""
    if pads is None or len(pads) != 2 * len(shape):
        return unknown_shape(len(shape))
    if any(is_known(size) and size < 0 for size in pads):
        raise ModelError(f"paddings {pads} do not pad a tensor of shape {shape}")
    pairs = zip(shape, pads[::2], pads[1::2], strict=True)
    return tuple(
        padded_size(size, before + after) if is_known(before, after) else unknown_size()
        for size, before, after in pairs
    )
