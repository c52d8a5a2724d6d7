"""TensorFlow's windows over images and volumes: pools, patches, dilation."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import (
    FLOAT,
    FLOATS,
    INTEGERS,
    computed_type,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.shapes.flex.pooling import (
    WindowsAlong,
    channels_of,
    dilation_windows,
    is_channels_first,
    lowest,
    patch_windows,
    pool_windows,
)
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]

_T = TensorType
# MaxPool of ONNX Runtime takes float and double: integers of up to 32 bits are exact in these.
_NARROW = frozenset({_T.INT8, _T.UINT8, _T.INT16, _T.UINT16})
# Each cell of a window takes a Slice.
_MOST_CELLS = 1024
_FAR = 64


def layout_of(op: View) -> Layout:
    """How the input is read so that its channels come before rows and columns."""
    return Layout.LAST if is_channels_first(op) else Layout.FIRST


def padding_of(along: Sequence[WindowsAlong]) -> dict[str, Any]:
    """The attributes of ONNX for padding.

    Raises:
        Untranslatable: a stride is longer than its windows, over a size that is not known.
    """
    if all(each.before is not None and each.after is not None for each in along):
        return {"pads": [each.before for each in along] + [each.after for each in along]}
    if any(each.kernel < each.stride or each.dilation > 1 for each in along):
        raise Untranslatable("windows over an unknown size that ONNX Runtime places elsewhere")
    return {"auto_pad": "SAME_UPPER"}


def windows_of(along: Sequence[WindowsAlong]) -> dict[str, Any]:
    """The attributes that ONNX's convolutions and pools have for windows."""
    return {
        "kernel_shape": [each.kernel for each in along],
        "strides": [each.stride for each in along],
        "dilations": [each.dilation for each in along],
        **padding_of(along),
    }


def with_whole(op: View, g: Graph, value: ir.Value, along: Sequence[WindowsAlong]) -> ir.Value:
    """`value`, channels first, in a graph that fails if no whole window fits in a size that is not
    known: ONNX Runtime pools a part of a window then, or ends the process."""
    if all(is_known(each.size) for each in along) or padding_of(along).get("auto_pad"):
        return value
    least = g.ints([0, 0, *(_reach(each) for each in along)])
    sizes = g.op("Shape", value)
    return g.op("Reshape", value, failing(g, sizes, g.op("Less", sizes, least)), allowzero=1)


def _reach(each: WindowsAlong) -> int:
    """How many cells of the image there are at least."""
    padding = (each.before or 0) + (each.after or 0)
    return max((each.kernel - 1) * each.dilation + 1 - padding, 1)


def _along(op: View) -> list[WindowsAlong]:
    along = pool_windows(op)
    if along is None:
        raise Untranslatable("the sizes of the windows are computed")
    if any(max(each.before or 0, each.after or 0) >= each.kernel for each in along):
        raise Untranslatable("padding as wide as a window")
    return along


@flex_translator("AvgPool", "AvgPool3D")
def average(op: View, g: Graph) -> None:
    """AveragePool over the cells inside the image."""
    along, (x,) = _along(op), op.present_inputs()
    layout = layout_of(op)
    value = with_whole(op, g, read_computed(g, x, FLOAT, layout), along)
    attributes = windows_of(along)
    del attributes["dilations"]
    result = g.op("AveragePool", value, count_include_pad=0, **attributes)
    write_computed(g, op.output, result, layout)


def _wide(g: Graph, op: View, layout: Layout) -> ir.Value:
    """The input in a type that MaxPool takes."""
    x = op.present_inputs()[0]
    if x.type in (_T.INT32, _T.UINT32):
        return g.cast(g.read(x, layout=layout), ir.DataType.DOUBLE)
    value = read_computed(g, x, FLOATS | _NARROW, layout)
    return g.cast(value, ir.DataType.FLOAT) if x.type in _NARROW else value


def _write(g: Graph, tensor: TensorView, value: ir.Value, layout: Layout) -> None:
    if tensor.type in FLOATS:
        wide = np.float64 if tensor.type is _T.FLOAT64 else np.float32
        least = g.constant(lowest(tensor.dtype), wide)  # of infinities alone, as in TensorFlow
        write_computed(g, tensor, g.op("Max", value, least), layout)
    else:
        g.write(tensor, g.cast(value, tensor.dtype), layout=layout)


@flex_translator("MaxPool", "MaxPool3D", "MaxPoolV2")
def greatest(op: View, g: Graph) -> None:
    """MaxPool."""
    along, layout = _along(op), layout_of(op)
    value = with_whole(op, g, _wide(g, op, layout), along)
    _write(g, op.output, g.op("MaxPool", value, **windows_of(along)), layout)


@flex_translator("MaxPoolWithArgmax")
def greatest_with_place(op: View, g: Graph) -> None:
    """MaxPool with its second result, which counts rows and columns within each channel."""
    along, x = _along(op), op.present_inputs()[0]
    if not is_known(*x.shape[1:]):
        raise Untranslatable("places in an image of an unknown size")
    value = _wide(g, op, Layout.FIRST)
    result, order = g.op_multi("MaxPool", value, outputs=2, **windows_of(along))
    batch, height, width, channels = x.shape
    cell = g.op("Mod", order, g.ints(height * width))
    place = g.op("Mul", cell, g.ints(channels))
    place = g.op("Add", place, g.ints(np.arange(channels).reshape(channels, 1, 1)))
    if node_of(op)["include_batch_in_index"]:
        count = g.reshape(g.size(batch), ())
        images = g.op("Range", g.ints(0), count, g.ints(1))
        first = g.op("Mul", images, g.ints(height * width * channels))
        place = g.op("Add", place, g.op("Reshape", first, g.ints([-1, 1, 1, 1])))
    found, argmax = op.outputs
    _write(g, found, result, Layout.FIRST)
    g.write(argmax, g.cast(place, argmax.dtype), layout=Layout.FIRST)


def _cells(
    g: Graph, value: ir.Value, along: Sequence[WindowsAlong], fill: ir.Value
) -> list[ir.Value]:
    """For each place in a window the cells [N, rows, columns, C] there, in the order of rows."""
    if not all(is_known(each.size) for each in along):
        raise Untranslatable("windows over an unknown size")
    if np.prod([each.kernel for each in along]) > _MOST_CELLS:
        raise Untranslatable(f"windows of more than {_MOST_CELLS} cells")
    if any((each.before or 0) + (each.after or 0) > 4 * each.size + _FAR for each in along):
        raise Untranslatable("windows that reach far beyond the input")
    if any(each.is_padded for each in along):
        before = [0, *(each.before or 0 for each in along), 0]
        after = [0, *(each.after or 0 for each in along), 0]
        value = g.op("Pad", value, g.ints(before + after), fill)
    found = []
    for place in product(*(range(each.kernel) for each in along)):
        starts = [at * each.dilation for at, each in zip(place, along, strict=True)]
        ends = [
            start + (each.count - 1) * each.stride + 1
            for start, each in zip(starts, along, strict=True)
        ]
        steps, axes = g.ints([each.stride for each in along]), g.ints([1, 2])
        found.append(g.op("Slice", value, g.ints(starts), g.ints(ends), axes, steps))
    return found


@flex_translator("Dilation2D")
def dilation(op: View, g: Graph) -> None:
    """The greatest of sums, one for each place in a window."""
    along, types = dilation_windows(op), FLOATS
    x, filter = (read_computed(g, op[name], types, Layout.LAST) for name in ("input", "filter"))
    double = op["input"].type is _T.FLOAT64
    never = g.constant(-np.inf, np.float64 if double else np.float32)
    sums = []
    rows, columns = (each.kernel for each in along)
    weights = g.op("Reshape", filter, g.ints([rows * columns, channels_of(op)]))
    for place, cells in enumerate(_cells(g, x, along, never)):
        sums.append(g.op("Add", cells, g.op("Gather", weights, g.ints(place), axis=0)))
    write_computed(g, op.output, g.op("Max", *sums), Layout.LAST)


@flex_translator("ExtractImagePatches")
def patches(op: View, g: Graph) -> None:
    """Concat of a Slice for each place in a window."""
    (x,) = op.present_inputs()
    value = read_computed(g, x, FLOATS | INTEGERS | {_T.BOOL}, Layout.LAST)
    zero = g.constant(0, computed_type(x.type))
    cells = _cells(g, value, patch_windows(op), zero)
    write_computed(g, op.output, g.op("Concat", *cells, axis=3), Layout.LAST)
