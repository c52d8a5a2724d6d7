"""Shape rules of the StableHLO operators."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.stablehlo_options import StablehloGatherOptions, StablehloPadOptions
from tflite_ort.schema.shapes.reduction import reduced_windows
from tflite_ort.schema.shapes.registry import Shape, Shapes, rule
from tflite_ort.schema.values.regions import WindowAttributes
from tflite_ort.schema.values.view import OperatorView


@rule(
    Op.STABLEHLO_ADD,
    Op.STABLEHLO_MULTIPLY,
    Op.STABLEHLO_MAXIMUM,
    Op.STABLEHLO_MINIMUM,
    Op.STABLEHLO_AND,
    Op.STABLEHLO_SHIFT_LEFT,
)
def elementwise(op: OperatorView[Any]) -> Shapes:
    """The shape of both: nothing is broadcast."""
    one, other = op["lhs"], op["rhs"]
    if one.shape != other.shape:
        raise ModelError(f"shapes {one.shape} and {other.shape} differ")
    if one.type is not other.type:
        raise ModelError(f"types {one.type.name} and {other.type.name} differ")
    return (one.shape,)


def pad_sizes(shape: Shape, options: StablehloPadOptions) -> list[tuple[int, int, int]]:
    """(low, high, interior) of each axis."""
    lists = [
        edges or ()
        for edges in (
            options.edge_padding_low,
            options.edge_padding_high,
            options.interior_padding,
        )
    ]
    if any(len(edges) != len(shape) for edges in lists):
        raise ModelError(f"paddings {lists} do not have the rank of shape {shape}")
    if min(lists[2], default=0) < 0:
        raise ModelError(f"interior padding {lists[2]} is negative")
    return list(zip(*lists, strict=True))


def padded_shape(shape: Shape, options: StablehloPadOptions) -> Shape:
    """All zeros, as in TFLite, when one axis is cut away."""
    sizes = tuple(
        size + max(0, size - 1) * interior + low + high
        for size, (low, high, interior) in zip(shape, pad_sizes(shape, options), strict=True)
    )
    return sizes if min(sizes, default=1) > 0 else (0,) * len(sizes)


@rule(Op.STABLEHLO_PAD)
def pad(op: OperatorView[Any]) -> Shapes:
    """Each size with low, high and interior padding."""
    input, value = op["input"], op["value"]
    if value.type is not input.type or math.prod(value.shape) != 1:
        expected = f"one {input.type.name}"
        raise ModelError(f"value is {value.type.name} {value.shape}, expected {expected}")
    return (padded_shape(input.shape, op.options),)


def slice_sizes(shape: Shape, options: StablehloGatherOptions) -> Shape:
    """The size of the slices of STABLEHLO_GATHER along each axis of `shape`."""
    sizes = tuple(options.slice_sizes or ())
    fits = len(sizes) == len(shape) and all(
        0 <= size <= whole for size, whole in zip(sizes, shape, strict=True)
    )
    lists = options.collapsed_slice_dims or (), options.start_index_map or ()
    axes = {axis for each in lists for axis in each}
    if any(len({*each}) != len(each) for each in lists):
        raise ModelError("a dimension of the operand is named twice: {} or {}".format(*lists))
    if not fits or not axes <= set(range(len(shape))):
        raise ModelError(f"slices of {sizes} over axes {sorted(axes)} do not fit shape {shape}")
    return sizes


def kept_axes(rank: int, options: StablehloGatherOptions) -> list[int]:
    """The axes of the operand that the result has, too."""
    return [axis for axis in range(rank) if axis not in (options.collapsed_slice_dims or ())]


def offset_axes(rank: int, batches: int, options: StablehloGatherOptions) -> list[int]:
    """Where in the result the axes kept of an operand of `rank` stand."""
    offsets, kept = sorted(options.offset_dims or ()), kept_axes(rank, options)
    count = batches + len(kept)
    if len(offsets) != len(kept) or not set(offsets) <= set(range(count)):
        raise ModelError(f"offset_dims {offsets} are not {len(kept)} of {count} dimensions")
    return offsets


def batch_shape(indices: Shape, options: StablehloGatherOptions) -> Shape:
    """The shape of the start indices without the axis that runs over one index."""
    vector, mapped = options.index_vector_dim, len(options.start_index_map or ())
    if not 0 <= vector <= len(indices):
        raise ModelError(f"index_vector_dim is {vector}, the indices have rank {len(indices)}")
    if mapped != (indices[vector] if vector < len(indices) else 1):
        raise ModelError(f"indices of shape {indices} do not hold {mapped} along axis {vector}")
    return indices[:vector] + indices[vector + 1 :]


@rule(Op.STABLEHLO_GATHER)
def gather(op: OperatorView[Any]) -> Shapes:
    """The batches of the start indices around the kept axes of a slice."""
    shape, options = op["operand"].shape, op.options
    sizes, batches = slice_sizes(shape, options), batch_shape(op["start_indices"].shape, options)
    kept = [sizes[axis] for axis in kept_axes(len(shape), options)]
    offsets = offset_axes(len(shape), len(batches), options)
    return (interleaved(batches, kept, offsets),)


def interleaved(batches: Sequence[int], kept: Sequence[int], offsets: Sequence[int]) -> Shape:
    """`kept` at the places `offsets`, `batches` at the others."""
    count = len(batches) + len(kept)
    if sum(axis in offsets for axis in range(count)) != len(kept):
        raise ModelError(f"offset dimensions {list(offsets)} of {count} for slices {list(kept)}")
    one, other = iter(batches), iter(kept)
    return tuple(next(other) if axis in offsets else next(one) for axis in range(count))


def slice_grid(
    shape: Shape, options: StablehloGatherOptions
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """[..., depth]: what is added to the start of a slice, for each of its elements.

    Only the first `depth` axes are indexed: those after them are whole in every slice.
    """
    sizes, kept = slice_sizes(shape, options), kept_axes(len(shape), options)
    mapped = options.start_index_map or ()
    indexed = (
        axis
        for axis in range(len(shape))
        if axis in mapped or axis not in kept or sizes[axis] != shape[axis]
    )
    depth = 1 + max(indexed, default=0)
    grid = np.indices([sizes[axis] if axis in kept else 1 for axis in range(depth)])
    inside = [size if axis in kept else None for axis, size in enumerate(grid.shape[1:])]
    return np.moveaxis(grid, 0, -1).reshape(*(s for s in inside if s is not None), depth)


@rule(Op.STABLEHLO_RNG_BIT_GENERATOR)
def rng_bit_generator(op: OperatorView[Any]) -> Shapes:
    """How many bits are wanted is said by the output's shape alone."""
    return op["state"].shape, op.outputs[1].shape


@rule(Op.STABLEHLO_REDUCE_WINDOW)
def reduce_window(op: OperatorView[Any]) -> Shapes:
    """How many windows there are along each axis of the padded input."""
    input = op["input"]
    if op["init"].type is not input.type:
        raise ModelError(f"windows of {input.type.name} start from {op['init'].type.name}")
    each = WindowAttributes.of(op.options, input.rank)
    rows = reduced_windows(padded_input(op), each.window, each.strides, each.dilations)
    return (tuple(count for count, *_ in rows),)


def padded_input(op: OperatorView[Any]) -> Shape:
    """The shape of the input of windows, or of STABLEHLO_PAD, once it is spread and padded, before
    negative edges are cut off."""
    input = op["input"]
    if op.op is Op.STABLEHLO_PAD:
        rows = zip(input.shape, pad_sizes(input.shape, op.options), strict=True)
        return tuple(n * (1 + each) + max(low, 0) + max(high, 0) for n, (low, high, each) in rows)
    return WindowAttributes.of(op.options, input.rank).padded(input.shape)


@rule(Op.STABLEHLO_SCATTER)
def scatter(op: OperatorView[Any]) -> Shapes:
    """The operand's shape."""
    return (op["operand"].shape,)
