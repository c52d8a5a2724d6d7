"""Gradients of TensorFlow's convolutions and pools."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import (
    FLOAT,
    FLOATS,
    computed_type,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.flex.pooling import layout_of, windows_of
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.shapes.flex.convolution import is_depthwise
from tflite_ort.schema.shapes.flex.pooling import WindowsAlong, channels_of
from tflite_ort.schema.shapes.flex.window_gradients import (
    gradient_of_convolution,
    gradient_of_pool,
    with_images,
)
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]


def _transposed(along: Sequence[WindowsAlong]) -> dict[str, Any]:
    """The attributes of a ConvTranspose that gives images of the sizes of `along`."""
    if not all(is_known(each.size, each.count) for each in along):
        raise Untranslatable("windows over an unknown size")
    reach = [(each.kernel - 1) * each.dilation + 1 for each in along]
    attributes, padding = windows_of(along), [max(e.before or 0, e.after or 0) for e in along]
    if any(cells >= wide for cells, wide in zip(padding, reach, strict=True)):
        raise Untranslatable("padding as wide as a window")
    rest = []
    for each, wide in zip(along, reach, strict=True):
        made = (each.count - 1) * each.stride + wide - (each.before or 0) - (each.after or 0)
        rest.append(each.size - made)
    return {**attributes, "output_padding": rest}


@flex_translator(
    "Conv2DBackpropInput",
    "Conv3DBackpropInput",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNativeBackpropInput",
)
def input_gradient(op: View, g: Graph) -> None:
    """ConvTranspose with the filter as [outputs, C / groups, sizes...]."""
    images, sizes, along = gradient_of_convolution(op)
    channels, spatial, layout = channels_of(with_images(op, images)), len(along), layout_of(op)
    if not is_known(channels):
        raise Untranslatable("a number of channels that is not known")
    weights = read_computed(g, op["filter"], FLOAT, Layout.LAST)
    if is_depthwise(op):
        weights = g.op("Transpose", weights, perm=[2, 3, 0, 1])
        weights, groups = g.reshape(weights, (sizes[2] * sizes[3], 1, *sizes[:2])), channels
    else:
        perm = [spatial + 1, spatial, *range(spatial)]
        weights, groups = g.op("Transpose", weights, perm=perm), channels // sizes[-2]
    given = read_computed(g, op["out_backprop"], FLOAT, layout)
    result = g.op("ConvTranspose", given, weights, group=groups, **_transposed(along))
    write_computed(g, op.output, result, layout)


@flex_translator(
    "Conv2DBackpropFilter",
    "Conv3DBackpropFilter",
    "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropFilter",
)
def filter_gradient(op: View, g: Graph) -> None:
    """Conv of the images [channels of a group, groups * N, sizes...] with the gradients [outputs,
    N, windows...]: strides are dilations there, and dilations strides."""
    images, sizes, along = gradient_of_convolution(op)
    channels, layout = channels_of(with_images(op, images)), layout_of(op)
    if not is_known(channels, *(n for each in along for n in (each.size, each.count))):
        raise Untranslatable("windows over an unknown size")
    depth = 1 if is_depthwise(op) else sizes[-2]
    groups, axes = channels // depth, range(len(along))
    x = read_computed(g, op["input"], FLOAT, layout)
    given = read_computed(g, op["out_backprop"], FLOAT, layout)
    x, after = _cropped(g, x, along)
    cells = [each.size + min(more, 0) for each, more in zip(along, after, strict=True)]
    if groups > 1:
        x = g.op("Reshape", x, g.ints([-1, groups, depth, *cells]))
        x = g.op("Transpose", x, perm=[2, 1, 0, *(3 + axis for axis in axes)])
        x = g.op("Reshape", x, g.op("Concat", g.ints([depth, -1]), g.ints(cells), axis=0))
    else:
        x = g.op("Transpose", x, perm=[1, 0, *(2 + axis for axis in axes)])
    given = g.op("Transpose", given, perm=[1, 0, *(2 + axis for axis in axes)])
    result = g.op(
        "Conv",
        x,
        given,
        group=groups,
        strides=[each.dilation for each in along],
        dilations=[each.stride for each in along],
        pads=[each.before or 0 for each in along] + [max(more, 0) for more in after],
    )  # [channels of a group, outputs, taps...]
    result = g.op("Transpose", result, perm=[*(2 + axis for axis in axes), 0, 1])
    write_computed(g, op.output, g.reshape(result, sizes), Layout.LAST)


def _cropped(g: Graph, x: ir.Value, along: Sequence[WindowsAlong]) -> tuple[ir.Value, list[int]]:
    """`x` without the cells that no window reaches, and how many cells of padding come after it;
    below 0 is what was cut off."""
    after = [
        (each.kernel - 1) * each.dilation
        + (each.count - 1) * each.stride
        + 1
        - each.size
        - (each.before or 0)
        for each in along
    ]
    for axis, more in enumerate(after, start=2):
        if more < 0:
            x = g.op("Slice", x, *(g.ints([bound]) for bound in (0, more, axis)))
    return x, after


@flex_translator("AvgPoolGrad", "AvgPool3DGrad")
def average_gradient(op: View, g: Graph) -> None:
    """ConvTranspose with ones of the shares of cells."""
    seen, along = gradient_of_pool(op)
    channels, layout, attributes = channels_of(seen), layout_of(op), _transposed(along)
    if not is_known(channels):
        raise Untranslatable("a number of channels that is not known")
    counts = np.ones([1] * (2 + len(along)), np.float32)
    for axis, each in enumerate(along, start=2):
        shape = [-1 if place == axis else 1 for place in range(counts.ndim)]
        counts = counts * _inside(each).reshape(shape)
    given = g.op("Div", read_computed(g, op["grad"], FLOAT, layout), g.constant(counts))
    ones = np.ones((channels, 1, *(each.kernel for each in along)), np.float32)
    result = g.op("ConvTranspose", given, g.constant(ones), group=channels, **attributes)
    write_computed(g, op.output, result, layout)


def _inside(each: WindowsAlong) -> np.ndarray[Any, np.dtype[np.float32]]:
    """How many cells of each window are inside the images."""
    starts = np.arange(each.count) * each.stride - (each.before or 0)
    ends = np.minimum(starts + each.kernel, each.size)
    return (ends - np.maximum(starts, 0)).astype(np.float32)


def _greatest(op: View, g: Graph, name: str) -> tuple[ir.Value, ir.Value, ir.Value, Layout]:
    """The images, the gradients, and where among all cells of the images the greatest ones are."""
    _, along = gradient_of_pool(op)
    layout = layout_of(op)
    if any(max(each.before or 0, each.after or 0) >= each.kernel for each in along):
        raise Untranslatable("padding as wide as a window")
    x = read_computed(g, op[name], FLOATS, layout)
    _, places = g.op_multi("MaxPool", x, outputs=2, **windows_of(along))
    return x, read_computed(g, op["grad"], FLOATS, layout), places, layout


@flex_translator("MaxPoolGrad", "MaxPoolGradV2")
def greatest_gradient(op: View, g: Graph) -> None:
    """ScatterElements (add) at the places that MaxPool tells."""
    x, given, places, layout = _greatest(op, g, "orig_input")
    flat = (g.op("Reshape", each, g.ints([-1])) for each in (places, given))
    result = g.op("ScatterElements", _zeros(g, op, x), *flat, axis=0, reduction="add")
    write_computed(g, op.output, g.op("Reshape", result, g.op("Shape", x)), layout)


def _zeros(g: Graph, op: View, x: ir.Value) -> ir.Value:
    """Zeros for gradients, as many as `x` has elements."""
    count = g.op("ReduceProd", g.op("Shape", x), keepdims=1)
    return g.op("Expand", g.constant(0, computed_type(op["grad"].type)), count)


@flex_translator("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def second_gradient(op: View, g: Graph) -> None:
    """Gather from the places that MaxPool tells."""
    _, given, places, layout = _greatest(op, g, "orig_input")
    result = g.op("Gather", g.op("Reshape", given, g.ints([-1])), places, axis=0)
    write_computed(g, op.output, result, layout)


@flex_translator("MaxPoolGradWithArgmax")
def gradient_at(op: View, g: Graph) -> None:
    """ScatterElements (add) at the places that are told."""
    gradient_of_pool(op)
    images = op["input"].shape
    if not is_known(*images[1:]):
        raise Untranslatable("places in an image of an unknown size")
    places = g.whole(op["argmax"])
    x = read_computed(g, op["input"], FLOATS, Layout.LAST)
    if not node_of(op)["include_batch_in_index"]:
        count = g.reshape(g.size(images[0]), ())
        first = g.op("Mul", g.op("Range", g.ints(0), count, g.ints(1)), g.ints(prod(images[1:])))
        places = g.op("Add", places, g.op("Reshape", first, g.ints([-1, 1, 1, 1])))
    given = read_computed(g, op["grad"], FLOATS, Layout.LAST)
    flat = (g.op("Reshape", each, g.ints([-1])) for each in (places, given))
    result = g.op("ScatterElements", _zeros(g, op, x), *flat, axis=0, reduction="add")
    write_computed(g, op.output, g.op("Reshape", result, g.op("Shape", x)), Layout.LAST)
