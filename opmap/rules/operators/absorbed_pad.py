"""A PAD with zeros that becomes the padding of what reads it: it needs no node."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.base.records import replace
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.rules.rule import View
from tflite_ort.schema import Op, Padding, TensorType
from tflite_ort.schema.values.semantics import quantized_range
from tflite_ort.schema.values.sizes import is_known

_PADS = (Op.PAD, Op.PADV2)
_BYTES = (TensorType.INT8, TensorType.UINT8)

# ONNX Runtime computes windows of floats that reach over an edge one by one: a Pad before a
# convolution of 16 cells takes less time than that.
_MOST_EDGES = 3


def without_pad(op: View, g: Graph) -> View:
    """A convolution over what a PAD with zeros padded, else `op`.

    In exports this is what ONNX Runtime's own fusion gives too, and others have none.
    """
    source = over_pad(op, g)
    if source is op or op["input"].is_quantized:
        return source
    most = _MOST_EDGES if g.target.cpu_kernels else None
    return source if _are_of_floats(op, source.edges, most) else op


def over_pad(op: View, g: Graph) -> View:
    """As `without_pad`, for every PAD of rows and columns with zeros."""
    maker = g.operator_of(op["input"])
    pads = None if maker is None else _edges_of_zeros(maker)
    if maker is None or pads is None:
        return op
    source = maker["input"]
    if source.is_variable or source.rank != 4 or not is_known(*source.shape[1:]):
        return op
    if pads[0] != (0, 0) or pads[3] != (0, 0):
        return op
    place = op.names.index("input")
    inputs = (*op.inputs[:place], source, *op.inputs[place + 1 :])
    return replace(op, inputs=inputs, edges=(pads[1], pads[2]))


def _are_of_floats(op: View, edges: Sequence[tuple[int, int]], most: int | None) -> bool:
    """Whether `op` is a convolution of floats, and each of its windows has cells of the image.

    Args:
        most: so wide the edges may be; None: as wide as that allows.
    """
    filter, options = op["filter"], op.options
    dilations = options.dilation_h_factor, options.dilation_w_factor
    reaches = [size * step for size, step in zip(filter.shape[1:3], dilations, strict=True)]
    pairs = zip(edges, reaches, strict=True)
    inside = all(max(pair) < reach and max(pair) <= (most or reach) for pair, reach in pairs)
    return inside and filter.type is TensorType.FLOAT32


def into_pool(op: View, g: Graph) -> View:
    """MAX_POOL_2D over what a PAD with the lowest code padded, else `op`."""
    input, options = op["input"], op.options
    if input.type not in _BYTES or not input.is_quantized or options.padding != Padding.VALID:
        return op
    source = over_pad(op, g)
    kernel = options.filter_height, options.filter_width
    reach = all(max(pair) < size for pair, size in zip(source.edges, kernel, strict=True))
    return source if reach and quantized_range(input.type)[0] == input.zero else op


def _edges_of_zeros(op: View) -> Sequence[tuple[int, int]] | None:
    """How many zeros a PAD puts before and after each axis of codes or floats; None where it does
    not, or that is computed."""
    if op.op not in _PADS:
        return None
    paddings, given, input = op["paddings"].data, op.get("value"), op["input"]
    if paddings is None or input.type is not op.output.type:
        return None
    if input.is_quantized:
        codes = input.quantization
        if codes is None or not codes.equals(op.output.quantization):
            return None
    elif input.type is not TensorType.FLOAT32:
        return None
    same = given is None or (given.data is not None and bool((given.data == op.output.zero).all()))
    if not same or paddings.min(initial=0) < 0:
        return None
    return [(before, after) for before, after in paddings.tolist()]
