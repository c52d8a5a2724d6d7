"""The windows of a convolution along an axis, and the padding that a PAD before it gives them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from tflite_ort.opmap.graph import Graph
from tflite_ort.records import record, replace
from tflite_ort.schema import OperatorView, Padding, TensorType
from tflite_ort.schema.values.semantics import explicit_padding
from tflite_ort.schema.values.sizes import is_known

Edges = tuple[tuple[int, int], tuple[int, int]]

NO_EDGES: Edges = ((0, 0), (0, 0))
# ONNX Runtime computes windows of floats that reach over an edge one by one: a Pad before a
# convolution of 16 cells takes less time than that.
_MOST_EDGES = 3


@record
class WindowAxis:
    """The windows of a convolution along one axis.

    Args:
        cells: of the input, without padding.
        before, after: cells of padding.
    """

    cells: int
    kernel: int
    stride: int
    dilation: int
    before: int
    after: int

    @property
    def count(self) -> int:
        """How many windows there are."""
        reach = (self.kernel - 1) * self.dilation + 1
        return (self.cells + self.before + self.after - reach) // self.stride + 1


def without_pad(op: OperatorView[Any], g: Graph) -> tuple[OperatorView[Any], Edges]:
    """`op` over what a PAD with zeros padded, and the rows and columns that it padded.

    A convolution pads with zeros itself, so the PAD needs no node. In exports a Pad of floats
    stays: ONNX Runtime fuses it with the convolution that follows.
    """
    source, edges = over_pad(op, g)
    if source is op:
        return op, NO_EDGES
    if not source["input"].is_quantized and not (
        g.target.cpu_kernels and _are_of_floats(op, edges)
    ):
        return op, NO_EDGES
    return source, edges


def over_pad(op: OperatorView[Any], g: Graph) -> tuple[OperatorView[Any], Edges]:
    """As `without_pad`, for every PAD of rows and columns with zeros."""
    padded = g.padded(op["input"])
    if padded is None:
        return op, NO_EDGES
    source, pads = padded
    if source.rank != 4 or not is_known(*source.shape[1:]):
        return op, NO_EDGES
    if pads[0] != (0, 0) or pads[3] != (0, 0):
        return op, NO_EDGES
    place = op.names.index("input")
    inputs = (*op.inputs[:place], source, *op.inputs[place + 1 :])
    return replace(op, inputs=inputs), (pads[1], pads[2])


def _are_of_floats(op: OperatorView[Any], edges: Sequence[tuple[int, int]]) -> bool:
    """Whether `op` is a convolution of floats, and few of its windows reach over narrow edges: each
    has cells of the image."""
    filter, options = op["filter"], op.options
    dilations = options.dilation_h_factor, options.dilation_w_factor
    reaches = [size * step for size, step in zip(filter.shape[1:3], dilations, strict=True)]
    pairs = zip(edges, reaches, strict=True)
    inside = all(max(pair) < reach and max(pair) <= _MOST_EDGES for pair, reach in pairs)
    return inside and filter.type is TensorType.FLOAT32


def image_windows(
    op: OperatorView[Any], kernel: Sequence[int], edges: Edges
) -> tuple[WindowAxis, WindowAxis] | None:
    """The windows along rows and columns of an image [N, H, W, C]; None where a size is unknown.

    Args:
        edges: what `without_pad` found.
    """
    sizes, options = op["input"].shape[1:3], op.options
    if not is_known(*sizes):
        return None
    rows = sizes[0], kernel[0], options.stride_h, options.dilation_h_factor, edges[0]
    columns = sizes[1], kernel[1], options.stride_w, options.dilation_w_factor, edges[1]
    return _windows(options.padding, *rows), _windows(options.padding, *columns)


@lru_cache(maxsize=256)  # they are asked for several times, and many layers have the same
def _windows(
    padding: Padding, size: int, kernel: int, stride: int, dilation: int, edge: tuple[int, int]
) -> WindowAxis:
    before, after = explicit_padding(padding, size + sum(edge), kernel, stride, dilation)
    return WindowAxis(size, kernel, stride, dilation, before + edge[0], after + edge[1])
