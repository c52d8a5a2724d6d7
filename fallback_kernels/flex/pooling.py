"""TensorFlow's windows over images and volumes: pools, patches, dilation."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.fallback_kernels.idioms.windows import Span, windows
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.flex.pooling import (
    WindowsAlong,
    dilation_windows,
    is_channels_first,
    lowest,
    patch_windows,
    pool_windows,
)
from tflite_ort.schema.shapes.registry import MOST_CELLS
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


def seen(op: View, inputs: Inputs) -> View:
    """`op` with the shapes of the arrays, and the numbers of those after the first."""
    pairs = list(zip(op.present_inputs(), inputs, strict=True))
    first = replace(pairs[0][0], shape=inputs[0].shape)
    others = (replace(view, shape=array.shape, constant=array) for view, array in pairs[1:])
    return replace(op, inputs=(first, *others))


def channels_last(op: View, x: Array) -> Array:
    """`x` with its channels after rows and columns."""
    return np.moveaxis(x, 1, -1) if is_channels_first(op) else x


def as_said(op: View, result: Array) -> Array:
    """A result with its channels where the node has them."""
    return np.ascontiguousarray(np.moveaxis(result, -1, 1) if is_channels_first(op) else result)


def cut(x: Array, along: Sequence[WindowsAlong], fill: complex = 0) -> Array:
    """[N, sizes..., C] to [N, windows..., C, kernel...]."""
    for axis, each in enumerate(along, start=1):
        assert each.before is not None and each.after is not None
        span = Span(each.count, each.kernel, each.stride, each.dilation, each.before, each.after)
        x = windows(x, axis, span, fill)
    return x


def widened(x: Array) -> Array:
    """Floats of 16 bits in 32."""
    return x.astype(np.float32) if x.dtype.itemsize == 2 and x.dtype.kind not in "iu" else x


def _along(op: View) -> list[WindowsAlong]:
    along = pool_windows(op)
    if along is None:
        raise KernelError("the sizes of the windows are not known")
    return along


@flex_kernel("AvgPool", "AvgPool3D")
def average(op: View, inputs: Inputs, state: State) -> Outputs:
    """The mean of the cells inside the image."""
    op = seen(op, inputs)
    along, x = _along(op), channels_last(op, widened(inputs[0]))
    kernels = tuple(range(-len(along), 0))
    sums = cut(x, along).sum(axis=kernels, dtype=x.dtype)
    cells = cut(np.ones((1, *x.shape[1:-1], 1), x.dtype), along).sum(axis=kernels)
    return (as_said(op, (sums / cells).astype(inputs[0].dtype)),)


@flex_kernel("MaxPool", "MaxPool3D", "MaxPoolV2")
def greatest(op: View, inputs: Inputs, state: State) -> Outputs:
    """The greatest cell inside the image that is a number; at least the lowest finite one."""
    op, x = seen(op, inputs), inputs[0]
    along, least = _along(op), lowest(x.dtype)
    wide = widened(channels_last(op, x))
    cells = cut(wide, along, wide.dtype.type(least))
    found = np.fmax.reduce(cells, axis=tuple(range(-len(along), 0)), initial=least)
    return (as_said(op, found.astype(x.dtype)),)


@flex_kernel("MaxPoolWithArgmax")
def greatest_with_place(op: View, inputs: Inputs, state: State) -> Outputs:
    """The greatest cell, and the place of the first such one in its image, or in all images."""
    op, x = seen(op, inputs), inputs[0]
    along, wide = _along(op), widened(x)
    numbers = np.broadcast_to(np.arange(x[0].size).reshape(1, *x.shape[1:]), (1, *x.shape[1:]))
    cells, places = cut(wide, along, wide.dtype.type(lowest(x.dtype))), cut(numbers, along, -1)
    flat = (*cells.shape[:4], -1)
    cells = cells.reshape(flat)
    inside = np.broadcast_to(places.reshape(1, *places.shape[1:4], -1), cells.shape)
    # A cell of padding is never taken: it comes after all that are as low.
    order = np.where(inside < 0, -1, cells >= cells.max(axis=-1, keepdims=True))
    first = order.argmax(axis=-1)[..., None]
    found = np.take_along_axis(cells, first, -1)[..., 0].astype(x.dtype)
    place = np.take_along_axis(inside, first, -1)[..., 0].astype(np.int64)
    node = node_of(op)
    if node["include_batch_in_index"]:
        place = place + (np.arange(x.shape[0]) * x[0].size).reshape(-1, 1, 1, 1)
    return found, place.astype(node.dtype("Targmax"))


@flex_kernel("Dilation2D")
def dilation(op: View, inputs: Inputs, state: State) -> Outputs:
    """The greatest sum of a cell inside the image and its number of the filter."""
    op, (x, filter) = seen(op, inputs), inputs
    along = dilation_windows(op)
    wide, least = widened(x), lowest(x.dtype)
    inside = cut(np.ones((1, *x.shape[1:3], 1), np.bool_), along, 0)
    sums = cut(wide, along) + widened(filter).transpose(2, 0, 1)
    sums = np.where(inside, sums, wide.dtype.type(least))
    return (np.maximum(sums.max(axis=(-2, -1)), wide.dtype.type(least)).astype(x.dtype),)


@flex_kernel("ExtractImagePatches")
def patches(op: View, inputs: Inputs, state: State) -> Outputs:
    """The cells of each window, with zeros outside of the image."""
    op = seen(op, inputs)
    along = patch_windows(op)
    count = prod(each.count * each.kernel for each in along) * len(inputs[0])
    if count * inputs[0].shape[-1] > MOST_CELLS:
        raise KernelError(f"patches of more than {MOST_CELLS} cells")
    cells = cut(inputs[0], along)
    moved = cells.transpose(0, 1, 2, 4, 5, 3)
    return (np.ascontiguousarray(moved).reshape(*moved.shape[:3], -1),)
