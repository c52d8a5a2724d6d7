"""A PAD with zeros that becomes the padding of the convolution behind it: it needs no node."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import TensorType
from tflite_ort.schema.values.sizes import is_known

# ONNX Runtime computes windows of floats that reach over an edge one by one: a Pad before a
# convolution of 16 cells takes less time than that.
_MOST_EDGES = 3


def without_pad(op: View, g: Graph) -> View:
    """A convolution over what a PAD with zeros padded, else `op`.

    In exports a Pad of floats stays: ONNX Runtime fuses it with the convolution that follows.
    """
    source = over_pad(op, g)
    if source is op or op["input"].is_quantized:
        return source
    return source if g.target.cpu_kernels and _are_of_floats(op, source.edges) else op


def over_pad(op: View, g: Graph) -> View:
    """As `without_pad`, for every PAD of rows and columns with zeros."""
    padded = g.padded(op["input"])
    if padded is None:
        return op
    source, pads = padded
    if source.rank != 4 or not is_known(*source.shape[1:]):
        return op
    if pads[0] != (0, 0) or pads[3] != (0, 0):
        return op
    place = op.names.index("input")
    inputs = (*op.inputs[:place], source, *op.inputs[place + 1 :])
    return replace(op, inputs=inputs, edges=(pads[1], pads[2]))


def _are_of_floats(op: View, edges: Sequence[tuple[int, int]]) -> bool:
    """Whether `op` is a convolution of floats, and few of its windows reach over narrow edges: each
    has cells of the image."""
    filter, options = op["filter"], op.options
    dilations = options.dilation_h_factor, options.dilation_w_factor
    reaches = [size * step for size, step in zip(filter.shape[1:3], dilations, strict=True)]
    pairs = zip(edges, reaches, strict=True)
    inside = all(max(pair) < reach and max(pair) <= _MOST_EDGES for pair, reach in pairs)
    return inside and filter.type is TensorType.FLOAT32
