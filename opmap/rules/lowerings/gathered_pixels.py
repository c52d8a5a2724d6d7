"""RESIZE_NEAREST_NEIGHBOR of 8-bit codes by Gather, which copies the channels of a cell at once.

ONNX Runtime has codes channels-last between its layers. There its Resize computes the place of each
number, and takes ten times as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.graph.forms import carried_type
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType
from tflite_ort.schema.values.semantics import nearest_indices
from tflite_ort.schema.values.sizes import is_known


def gathered_pixels(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """Rows and columns by one Gather each, channels-last."""
    input, output = op["input"], op.output
    if (
        carried_type(input) is not TensorType.UINT8
        or moved_domain(input, output) is not Domain.STORED
    ):
        return ()
    if not g.transposes_cancel(input) or not is_known(*input.shape[1:3], *output.shape[1:3]):
        return ()
    return [Lowering("gathered", {}, partial(_gathered, op, g))]


def _gathered(op: View, g: Graph) -> None:
    value = g.read(op["input"], domain=Domain.STORED)
    for axis in (2, 1):  # rows last: a whole one is copied at once
        old, new = (tensor.shape[axis] for tensor in (op["input"], op.output))
        picks = nearest_indices(old, new, op.options)
        if not np.array_equal(picks, np.arange(old)):
            value = g.op("Gather", value, g.ints(picks), axis=axis)
    g.write(op.output, value, domain=Domain.STORED)
