"""Gradients of TensorFlow's convolutions, pools and dilations.

Each place in a window is one step for all windows: what they give to, or take from, the cells of
the images that are there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from tflite_ort.base.records import replace
from tflite_ort.fallback_kernels.flex.pooling import as_said, channels_last, widened
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.shapes.flex.convolution import is_depthwise
from tflite_ort.schema.shapes.flex.pooling import (
    WindowsAlong,
    channels_of,
    dilation_windows,
    lowest,
)
from tflite_ort.schema.shapes.flex.window_gradients import (
    gradient_of_convolution,
    gradient_of_pool,
    with_images,
)
from tflite_ort.schema.shapes.registry import shown
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]
Slices = tuple[slice, ...]


def with_arrays(op: View, inputs: Inputs) -> View:
    """`op` with the shapes and the values of the arrays."""
    pairs = zip(op.present_inputs(), inputs, strict=True)
    views = (replace(view, shape=array.shape, constant=array) for view, array in pairs)
    return replace(op, inputs=tuple(views))


def _places(along: Sequence[WindowsAlong]) -> Iterator[tuple[tuple[int, ...], Slices, Slices]]:
    """Each place in a window in the order of rows, the windows that have a cell of the images
    there, and these cells. The slices are of [N, ..., C]."""
    for place in product(*(range(each.kernel) for each in along)):
        pairs = [_there(each, at) for each, at in zip(along, place, strict=True)]
        found = [pair for pair in pairs if pair is not None]
        if len(found) == len(pairs):
            windows, cells = ((slice(None), *each) for each in zip(*found, strict=True))
            yield place, windows, cells


def _there(each: WindowsAlong, at: int) -> tuple[slice, slice] | None:
    """The windows whose cell `at` is inside the images, and these cells; None where there are
    none."""
    assert each.before is not None
    start = at * each.dilation - each.before
    first = max(0, -(start // each.stride))
    last = min(each.count - 1, (each.size - 1 - start) // each.stride)
    if first > last:
        return None
    cells = slice(first * each.stride + start, last * each.stride + start + 1, each.stride)
    return slice(first, last + 1), cells


def _blank(op: View, images: Sequence[int], along: Sequence[WindowsAlong], dtype: Any) -> Array:
    """Zeros for all cells of the images, with their channels last."""
    channels = channels_of(with_images(op, tuple(images)))
    return np.zeros((images[0], *(each.size for each in along), channels), dtype)


# Convolutions -----------------------------------------------------------------------------------


def _groups(op: View, images: Sequence[int], filter: Sequence[int]) -> tuple[int, int, int]:
    """(channels of a group, groups, outputs of a group)."""
    if is_depthwise(op):
        return 1, filter[-2], filter[-1]
    groups = channels_of(with_images(op, tuple(images))) // filter[-2]
    return filter[-2], groups, filter[-1] // groups


@flex_kernel(
    "Conv2DBackpropInput",
    "Conv3DBackpropInput",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNativeBackpropInput",
)
def input_gradient(op: View, inputs: Inputs, state: State) -> Outputs:
    """What each window gives to its cells: its gradients by the numbers of the filter."""
    op, (_, filter, gradient) = with_arrays(op, inputs), inputs
    images, sizes, along = gradient_of_convolution(op)
    depth, groups, outputs = _groups(op, images, sizes)
    weights = widened(filter).reshape(*sizes[:-2], depth, groups, outputs)
    given = channels_last(op, widened(gradient))
    result = _blank(op, images, along, given.dtype)
    for place, windows, cells in _places(along):
        part = given[windows]
        rows = part.reshape(-1, groups, outputs).transpose(1, 0, 2)
        found = (rows @ weights[place].transpose(1, 2, 0)).transpose(1, 0, 2)
        result[cells] += found.reshape(*part.shape[:-1], -1)
    return (as_said(op, result.astype(gradient.dtype)),)


@flex_kernel(
    "Conv2DBackpropFilter",
    "Conv3DBackpropFilter",
    "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropFilter",
)
def filter_gradient(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sums over all windows of their cells by their gradients."""
    op, (x, _, gradient) = with_arrays(op, inputs), inputs
    images, sizes, along = gradient_of_convolution(op)
    depth, groups, outputs = _groups(op, images, sizes)
    x, given = (channels_last(op, widened(array)) for array in (x, gradient))
    result = np.zeros((*sizes[:-2], depth, groups, outputs), given.dtype)
    for place, windows, cells in _places(along):
        rows = given[windows].reshape(-1, groups, outputs).transpose(1, 0, 2)
        columns = x[cells].reshape(-1, groups, depth).transpose(1, 2, 0)
        result[place] = (columns @ rows).transpose(1, 0, 2)
    return (result.reshape(sizes).astype(gradient.dtype),)


# Pools ------------------------------------------------------------------------------------------


@flex_kernel("AvgPoolGrad", "AvgPool3DGrad")
def average_gradient(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each window gives its cells inside the images equal shares."""
    op, gradient = with_arrays(op, inputs), inputs[1]
    seen, along = gradient_of_pool(op)
    given, images = channels_last(op, widened(gradient)), seen.present_inputs()[0].shape
    counts = np.zeros((1, *given.shape[1:-1], 1), given.dtype)
    for _, windows, _ in _places(along):
        counts[windows] += 1
    result, shares = _blank(op, images, along, given.dtype), given / np.maximum(counts, 1)
    for _, windows, cells in _places(along):
        result[cells] += shares[windows]
    return (as_said(op, result.astype(gradient.dtype)),)


def greatest_places(x: Array, along: Sequence[WindowsAlong]) -> Array:
    """[N, windows..., C]: the number of the place of the first greatest cell of each window."""
    shape = (len(x), *(each.count for each in along), x.shape[-1])
    best, found = np.zeros(shape, x.dtype), np.full(shape, -1, np.int64)
    for number, (_, windows, cells) in enumerate(_places(along)):
        better = (found[windows] < 0) | (x[cells] > best[windows])
        best[windows] = np.where(better, x[cells], best[windows])
        found[windows] = np.where(better, number, found[windows])
    return found


@flex_kernel("MaxPoolGrad", "MaxPoolGradV2")
def greatest_gradient(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each window gives its gradient to its first greatest cell."""
    op, (x, _, gradient) = with_arrays(op, inputs), inputs[:3]
    _, along = gradient_of_pool(op)
    given, wide = (channels_last(op, widened(array)) for array in (gradient, x))
    found, result = greatest_places(wide, along), np.zeros(wide.shape, given.dtype)
    for number, (_, windows, cells) in enumerate(_places(along)):
        chosen = found[windows] == number
        result[cells] += np.where(chosen, given[windows], given.dtype.type(0))
    return (as_said(op, result.astype(gradient.dtype)),)


@flex_kernel("MaxPool3DGrad")
def greatest_gradient_of_volumes(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each window gives its gradient to all of its cells that are as great as its result."""
    op, (x, result_of_pool, gradient) = with_arrays(op, inputs), inputs
    _, along = gradient_of_pool(op)
    given, wide, greatest = (
        channels_last(op, widened(array)) for array in (gradient, x, result_of_pool)
    )
    result = np.zeros(wide.shape, given.dtype)
    for _, windows, cells in _places(along):
        chosen = wide[cells] == greatest[windows]
        result[cells] += np.where(chosen, given[windows], given.dtype.type(0))
    return (as_said(op, result.astype(gradient.dtype)),)


@flex_kernel("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def second_gradient(op: View, inputs: Inputs, state: State) -> Outputs:
    """For each window the gradient of its first cell that is as great as its result."""
    op, (x, result_of_pool, gradient) = with_arrays(op, inputs), inputs[:3]
    _, along = gradient_of_pool(op)
    given, wide, greatest = (
        channels_last(op, widened(array)) for array in (gradient, x, result_of_pool)
    )
    result, missing = np.zeros(greatest.shape, given.dtype), np.ones(greatest.shape, np.bool_)
    for _, windows, cells in _places(along):
        chosen = missing[windows] & (wide[cells] == greatest[windows])
        result[windows] = np.where(chosen, given[cells], result[windows])
        missing[windows] &= ~chosen
    return (as_said(op, result.astype(gradient.dtype)),)


@flex_kernel("MaxPoolGradWithArgmax")
def gradient_at(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each window gives its gradient to the cell of its image, or of all images, that is named."""
    x, gradient, argmax = inputs
    gradient_of_pool(with_arrays(op, inputs))
    places, cells = argmax.reshape(len(x), -1).astype(np.int64), prod(x.shape[1:])
    if not node_of(op)["include_batch_in_index"]:
        places = places + (np.arange(len(x)) * cells)[:, None]
    if places.size and not (places.min() >= 0 and places.max() < x.size):
        raise KernelError(f"cells {shown(argmax)} of images {x.shape}")
    given = widened(gradient)
    result = np.zeros(x.size, given.dtype)
    np.add.at(result, places.reshape(-1), given.reshape(-1))
    return (result.reshape(x.shape).astype(gradient.dtype),)


# Dilations --------------------------------------------------------------------------------------


def _dilated_places(x: Array, filter: Array, along: Sequence[WindowsAlong]) -> Array:
    """[N, windows..., C]: the number of the place of the first greatest sum of a cell and its
    number of the filter, above the lowest number; of none, the first place inside the image."""
    shape = (len(x), *(each.count for each in along), x.shape[-1])
    best, found = np.full(shape, lowest(x.dtype), x.dtype), np.full(shape, -1, np.int64)
    for number, (place, windows, cells) in enumerate(_places(along)):
        sums = x[cells] + filter[place]
        better, first = sums > best[windows], found[windows] < 0
        best[windows] = np.where(better, sums, best[windows])
        found[windows] = np.where(better | first, number, found[windows])
    return found


@flex_kernel("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def dilation_gradient(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each window gives its gradient to the cell, or to the number of the filter, of its greatest
    sum."""
    op, (x, filter, gradient) = with_arrays(op, inputs), inputs
    along = dilation_windows(op)
    x, filter, given = (widened(array) for array in (x, filter, gradient))
    found, of_input = _dilated_places(x, filter, along), str(op.name).endswith("Input")
    result = np.zeros(x.shape if of_input else filter.shape, given.dtype)
    for number, (place, windows, cells) in enumerate(_places(along)):
        chosen = np.where(found[windows] == number, given[windows], given.dtype.type(0))
        if of_input:
            result[cells] += chosen
        else:
            result[place] = chosen.sum(axis=(0, 1, 2), dtype=given.dtype)
    return (result.astype(gradient.dtype),)
