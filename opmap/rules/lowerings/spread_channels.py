"""DEPTH_TO_SPACE of 8-bit codes channels-last, as ONNX Runtime's layers of codes are.

Its DepthToSpace is channels-first, and moves each number by itself. The Transpose that stands here
copies all channels of a cell at once. For floats, which have their channels in blocks, it takes as
long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType
from tflite_ort.schema.values.sizes import is_known


def spread_channels(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """A Transpose of five dimensions."""
    input, output = op["input"], op.output
    if not is_known(*input.shape, *output.shape) or 0 in output.shape:
        return ()
    if not g.transposes_cancel(input) or carried_type(input) is not TensorType.UINT8:
        return ()
    if moved_domain(input, output) is not Domain.STORED:
        return ()
    return [Lowering("rows", {}, partial(_spread, op, g))]


def _spread(op: View, g: Graph) -> None:
    input, output, side = op["input"], op.output, op.options.block_size
    images, rows, columns, channels = input.shape
    codes = g.read(input, domain=Domain.STORED)
    blocks = g.reshape(codes, (images, rows, columns, side, channels // side))
    spread = g.op("Transpose", blocks, perm=[0, 1, 3, 2, 4])
    g.write(output, g.reshape(spread, output.shape), domain=Domain.STORED)
