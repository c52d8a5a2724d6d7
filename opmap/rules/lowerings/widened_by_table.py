"""QUANTIZE of 16-bit codes to 32 bits as one lookup in a table of all codes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.by_code import by_code, every_code
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType
from tflite_ort.schema.arithmetic.fixed_point import rescale

# Below this a 16-bit code less its zero point, rescaled, has 32 bits with some to spare.
_FITS = 2.0**13


def widened_by_table(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """By 16-bit code, the 32-bit code."""
    input, output = op["input"], op.output
    if (input.type, output.type) != (TensorType.INT16, TensorType.INT32):
        return ()
    source, target = input.quantization, output.quantization
    if source is None or target is None:
        return ()
    multiplier = source.scalar_scale / target.scalar_scale
    if multiplier >= _FITS:
        return ()
    centred = every_code(input.type).astype(np.int32) - source.scalar_zero_point
    wanted = rescale(centred, multiplier) + target.scalar_zero_point
    return [Lowering("table", {}, partial(by_code, op, g, wanted.astype(np.int32)))]
