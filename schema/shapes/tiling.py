"""Shape rules of the operators that repeat, reverse, spread and block elements."""

from __future__ import annotations

from math import prod
from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import (
    Shape,
    Shapes,
    listed,
    rule,
    shown,
)
from tflite_ort.schema.values.semantics import normalized_axis
from tflite_ort.schema.values.sizes import (
    differ,
    is_known,
    is_one,
    known_product,
    multiple,
    padded_size,
    quotient,
    unknown_shape,
    unknown_size,
)
from tflite_ort.schema.values.view import Array, OperatorView

_BLOCKED_RANKS = (3, 4)


def tiled_shape(shape: Shape, multiples: Shape) -> Shape:
    """`shape` times `multiples`, one for each dimension."""
    if len(multiples) != len(shape) or any(is_known(n) and n < 0 for n in multiples):
        raise ModelError(f"multiples {list(multiples)} do not tile shape {shape}")
    return tuple(map(_times, shape, multiples))


def _times(size: int, factor: int) -> int:
    if is_one(factor) or is_one(size):
        return size if is_one(factor) else factor
    return multiple(size, factor) if is_known(factor) else unknown_size()


@rule(Op.TILE)
def tile(op: OperatorView[Any]) -> Shapes | None:
    """Each size times its multiple."""
    multiples = listed(op["multiples"])
    return None if multiples is None else (tiled_shape(op["input"].shape, multiples),)


def broadcast_shape(shape: Shape, wanted: Shape) -> Shape:
    """`wanted`, if it is a shape to which `shape` broadcasts; never the other way round."""
    last = wanted[max(len(wanted) - len(shape), 0) :]
    fits = len(last) == len(shape) and not any(
        is_known(size, dim) and size not in (1, dim) for size, dim in zip(shape, last, strict=True)
    )
    if any(is_known(dim) and dim < 0 for dim in wanted) or not fits:
        raise ModelError(f"shape {shape} does not broadcast to {wanted}")
    return wanted


@rule(Op.BROADCAST_TO)
def broadcast_to(op: OperatorView[Any]) -> Shapes | None:
    """What the shape input says."""
    wanted = listed(op["shape"])
    if op["shape"].rank != 1:
        raise ModelError(f"a shape of shape {op['shape'].shape} is none")
    return None if wanted is None else (broadcast_shape(op["input"].shape, wanted),)


@rule(Op.BROADCAST_ARGS)
def broadcast_args(op: OperatorView[Any]) -> Shapes | None:
    """The longer of two lists."""
    shapes = [op[name].shape for name in op.names]
    if any(len(shape) != 1 for shape in shapes):
        raise ModelError(f"expected two 1-D shapes, got tensors of shapes {shapes}")
    return (max(shapes),)


def reversed_axes(axes: Array, rank: int) -> Shape:
    """REVERSE_V2's axes in ascending order; TFLite takes only neighbouring ones."""
    found = sorted(normalized_axis(axis, rank) for axis in axes.reshape(-1).tolist())
    if found and found != list(range(found[0], found[0] + len(found))):
        raise ModelError(f"axes {shown(axes)} of rank {rank} are not neighbours")
    return tuple(found)


@rule(Op.REVERSE_V2)
def reverse_v2(op: OperatorView[Any]) -> Shapes | None:
    """The input's shape."""
    input, axes = op["input"], op["axes"].data
    if axes is not None:
        reversed_axes(axes, input.rank)
    return (input.shape,)


@rule(Op.REVERSE_SEQUENCE)
def reverse_sequence(op: OperatorView[Any]) -> Shapes | None:
    """The input's shape."""
    shape, lengths = op["input"].shape, op["lengths"].shape
    time, batch = op.options.seq_dim, op.options.batch_dim
    if time == batch or not all(0 <= axis < len(shape) for axis in (time, batch)):
        raise ModelError(f"sequence axis {time} and batch axis {batch} of rank {len(shape)}")
    if differ(lengths, (shape[batch],)):
        raise ModelError(f"lengths of shape {lengths} for {shape[batch]} sequences")
    return (shape,)


@rule(Op.MATRIX_DIAG)
def matrix_diag(op: OperatorView[Any]) -> Shapes | None:
    """[..., N, N] of diagonals [..., N]."""
    shape = op["diagonal"].shape
    if not shape:
        raise ModelError("a scalar has no diagonal")
    return ((*shape, shape[-1]),)


@rule(Op.MATRIX_SET_DIAG)
def matrix_set_diag(op: OperatorView[Any]) -> Shapes | None:
    """The input's shape."""
    shape, diagonal = op["input"].shape, op["diagonal"].shape
    if len(shape) < 2:
        raise ModelError(f"shape {shape} has no diagonal")
    if op["diagonal"].type is not op["input"].type:
        raise ModelError(f"a diagonal of {op['diagonal'].type.name} in {op['input'].type.name}")
    known = is_known(*diagonal, *shape)
    if known and prod(diagonal) != prod(diagonal_shape(shape)):
        raise ModelError(f"shape {diagonal} is not the diagonal of {shape}")
    return (shape,)


def diagonal_shape(shape: Shape) -> Shape:
    """The shape of the main diagonals of matrices [..., rows, columns]."""
    return (*shape[:-2], min(shape[-2:]))


def dilated_shape(shape: Shape, dilations: Array) -> Shape:
    """(n - 1) * dilation + 1 in every dimension; nothing stays nothing."""
    if dilations.shape != (len(shape),) or (dilations < 1).any():
        raise ModelError(f"dilations {shown(dilations)} do not dilate shape {shape}")
    factors = dilations.tolist()
    return tuple(map(_dilated, shape, factors))


def _dilated(size: int, factor: int) -> int:
    if factor == 1:
        return size
    if not is_known(size):
        return unknown_size()
    return (size - 1) * factor + 1 if size else 0


@rule(Op.DILATE)
def dilate(op: OperatorView[Any]) -> Shapes | None:
    """(n - 1) * dilation + 1 of each size n."""
    input, value, dilations = op["input"], op["padding"], op["dilations"].data
    if not input.shape:
        raise ModelError("a scalar cannot be dilated")
    if value.type is not input.type or known_product(value.shape) != 1:
        raise ModelError(
            f"padding of {value.type.name} {value.shape} for {input.type.name} elements"
        )
    if dilations is None:
        return (unknown_shape(input.rank),)
    return (dilated_shape(input.shape, dilations),)


def space_to_batch_shape(shape: Shape, blocks: Array | None, paddings: Array | None) -> Shape:
    """[N, D..., C] padded and cut into blocks: [N * blocks, D / block..., C]."""
    batch = _times(shape[0], _block_count(shape, blocks))
    if blocks is None or paddings is None:
        return (batch, *unknown_shape(len(shape) - 2), shape[-1])
    spatial = _framed(shape, blocks, paddings)
    sizes = [padded_size(size, sum(pair)) for size, _, pair in spatial]
    rows = list(zip(sizes, (block for _, block, _ in spatial), strict=True))
    if any(is_known(size) and size % block for size, block in rows):
        raise ModelError(f"blocks {shown(blocks)} do not tile {sizes}")
    return (batch, *(quotient((size,), block) for size, block in rows), shape[-1])


def batch_to_space_shape(shape: Shape, blocks: Array | None, crops: Array | None) -> Shape:
    """[N * blocks, D..., C] joined and cropped: [N, D * block - crops..., C]."""
    batch, count = shape[0], _block_count(shape, blocks)
    if blocks is None or crops is None:
        batch = quotient((batch,), count) if is_known(count) else count
        return (batch, *unknown_shape(len(shape) - 2), shape[-1])
    spatial = _framed(shape, blocks, crops)
    sizes = tuple(padded_size(_times(size, block), -sum(pair)) for size, block, pair in spatial)
    known = [size for size in sizes if is_known(size)]
    if (is_known(batch) and batch % count) or min(known, default=0) < 0:
        raise ModelError(
            f"shape {shape} is not {count} blocks with {shown(crops)} cropped from them"
        )
    return (quotient((batch,), count), *sizes, shape[-1])


def _block_count(shape: Shape, blocks: Array | None) -> int:
    """How many cells a block has."""
    if len(shape) not in _BLOCKED_RANKS:
        raise ModelError(f"expected a tensor of rank 3 or 4, got shape {shape}")
    if blocks is None:
        return unknown_size()
    if blocks.shape != (len(shape) - 2,) or (blocks < 1).any():
        raise ModelError(f"blocks {shown(blocks)} for {len(shape) - 2} dimensions")
    return prod(blocks.tolist())


def _framed(shape: Shape, blocks: Array, frame: Array) -> list[tuple[int, int, tuple[int, int]]]:
    """(size, block, (before, after)) of every spatial dimension."""
    if frame.shape != (len(blocks), 2) or (frame < 0).any():
        raise ModelError(f"blocks {shown(blocks)} framed by {shown(frame)}")
    pairs = [(int(before), int(after)) for before, after in frame]
    return list(zip(shape[1:-1], blocks.tolist(), pairs, strict=True))


@rule(Op.SPACE_TO_BATCH_ND)
def space_to_batch_nd(op: OperatorView[Any]) -> Shapes | None:
    """[N * blocks, D / block..., C]."""
    _check_scales(op)
    blocks, paddings = op["block_shape"].data, op["paddings"].data
    return (space_to_batch_shape(op["input"].shape, blocks, paddings),)


@rule(Op.BATCH_TO_SPACE_ND)
def batch_to_space_nd(op: OperatorView[Any]) -> Shapes | None:
    """[N / blocks, D * block..., C], cropped."""
    _check_scales(op)
    return (batch_to_space_shape(op["input"].shape, op["block_shape"].data, op["crops"].data),)


def _check_scales(op: OperatorView[Any]) -> None:
    """TFLite refuses to move codes to an output of another scale here."""
    source, target = op["input"], op.output
    if source.quantization is None or not (source.is_quantized and target.is_quantized):
        return
    if not source.quantization.equals(target.quantization):
        raise ModelError("input and output differ in scale or zero point")
