"""DEPTH_TO_SPACE and SPACE_TO_DEPTH by Transposes, which ONNX Runtime runs faster.

Its DepthToSpace is channels-first, and moves each number by itself. Codes stand channels-last: one
Transpose copies all channels of a cell at once. Floats have their channels in blocks, so they stay
channels-first: one Transpose moves an axis to the end, which ONNX Runtime has a kernel for, and
another one copies rows. One Transpose of both axes takes twice as long as DepthToSpace.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.values.sizes import is_known

# Fewer floats take less time than four more nodes.
_LEAST = 4096


def spread_channels(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A Transpose of five dimensions, or two of fewer."""
    input, output = op["input"], op.output
    if not is_known(*input.shape, *output.shape) or 0 in output.shape:
        return ()
    if moved_domain(input, output) is not Domain.STORED:
        return ()
    if input.type is TensorType.FLOAT32 and prod(output.shape) >= _LEAST:
        first = g.layout(input) is Layout.FIRST
        build = _in_rows if op.op is Op.DEPTH_TO_SPACE else _in_columns
        return [Lowering("twice", {}, partial(build, op, g))] if first else ()
    if op.op is not Op.DEPTH_TO_SPACE or not g.transposes_cancel(input):
        return ()
    if carried_type(input) is not TensorType.UINT8:
        return ()
    return [Lowering("rows", {}, partial(_spread, op, g))]


def _spread(op: View, g: Graph) -> None:
    input, output, side = op["input"], op.output, op.options.block_size
    images, rows, columns, channels = input.shape
    codes = g.read(input, domain=Domain.STORED)
    blocks = g.reshape(codes, (images, rows, columns, side, channels // side))
    spread = g.op("Transpose", blocks, perm=[0, 1, 3, 2, 4])
    g.write(output, g.reshape(spread, output.shape), domain=Domain.STORED)


def _in_rows(op: View, g: Graph) -> None:
    """The columns of a block into the rows, then the rows of a block between them."""
    side, (images, rows, columns, channels) = op.options.block_size, op["input"].shape
    channels //= side * side
    value = g.read(op["input"], layout=Layout.FIRST)
    value = g.reshape(value, (images * side, side, channels * rows * columns))
    value = g.op("Transpose", value, perm=[0, 2, 1])
    value = g.reshape(value, (images, side, channels * rows, columns * side))
    value = g.op("Transpose", value, perm=[0, 2, 1, 3])
    value = g.reshape(value, (images, channels, rows * side, columns * side))
    g.write(op.output, value, layout=Layout.FIRST)


def _in_columns(op: View, g: Graph) -> None:
    """The reverse."""
    side, (images, rows, columns, channels) = op.options.block_size, op.output.shape
    before = channels // (side * side)
    value = g.read(op["input"], layout=Layout.FIRST)
    value = g.reshape(value, (images, before * rows, side, columns * side))
    value = g.op("Transpose", value, perm=[0, 2, 1, 3])
    value = g.reshape(value, (images * side, before * rows * columns, side))
    value = g.op("Transpose", value, perm=[0, 2, 1])
    g.write(op.output, g.reshape(value, (images, channels, rows, columns)), layout=Layout.FIRST)
