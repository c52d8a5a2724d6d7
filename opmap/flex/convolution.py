"""TensorFlow's convolutions of images and volumes."""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.flex.elementwise import FLOAT, read_computed, write_computed
from tflite_ort.opmap.flex.pooling import layout_of, windows_of
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.shapes.flex.convolution import convolution_windows, is_depthwise
from tflite_ort.schema.shapes.flex.pooling import channels_of
from tflite_ort.schema.values.sizes import is_known


@flex_translator("Conv2D", "Conv3D", "DepthwiseConv2dNative")
def convolution(op: OperatorView[Any], g: Graph) -> None:
    """Conv with the filter as [outputs, C / groups, sizes...]."""
    along, filter, layout = convolution_windows(op), op["filter"], layout_of(op)
    channels, spatial = channels_of(op), range(filter.rank - 2)
    if not is_known(channels):
        raise Untranslatable("a number of channels that is not known")
    weights = read_computed(g, filter, FLOAT, Layout.LAST)
    if is_depthwise(op):
        weights = g.op("Transpose", weights, perm=[2, 3, 0, 1])
        outputs = filter.shape[2] * filter.shape[3]
        weights, groups = g.reshape(weights, (outputs, 1, *filter.shape[:2])), channels
    else:
        perm = [filter.rank - 1, filter.rank - 2, *spatial]
        weights, groups = g.op("Transpose", weights, perm=perm), channels // filter.shape[-2]
    x = read_computed(g, op["input"], FLOAT, layout)
    write_computed(
        g, op.output, g.op("Conv", x, weights, group=groups, **windows_of(along)), layout
    )
