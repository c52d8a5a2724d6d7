"""TANH of 8-bit codes as a sigmoid of twice the input.

tanh x = 2 sigmoid 2x - 1. TFLite's codes are 1/128 apart, so they are those of a sigmoid in steps
of 1/256. ONNX Runtime has a table for a sigmoid of codes, and none for a tanh.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.movement import code_constant
from tflite_ort.opmap.idioms.rescaled_codes import Codes
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType
from tflite_ort.schema.values.semantics import quantized_range

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
# How far off ONNX Runtime's sigmoid is at most, in codes.
_ERROR = 2.0**-10


def tanh_by_sigmoid(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """One node of codes, if none of them is near a half."""
    input, output = op["input"], op.output
    if not (input.type in _BYTES and output.type is input.type):
        return ()
    if not (input.is_quantized and output.is_quantized):
        return ()
    zero = _zero_point(Codes.of(input), Codes.of(output))
    return () if zero is None else [Lowering("sigmoid", {}, partial(_write, op, g, zero))]


@lru_cache(maxsize=256)
def _zero_point(source: Codes, target: Codes) -> int | None:
    """That of the sigmoid's codes; None if it is no code, or floats may give other results."""
    zero = target.zero_point - 1 / target.scale
    low, high = quantized_range(target.type)
    if not (zero.is_integer() and low <= zero <= high):
        return None
    exact = np.tanh(source.steps().astype(np.float64) * source.scale) / target.scale
    is_clear = np.abs(exact - np.floor(exact) - 0.5) > _ERROR
    return int(zero) if is_clear.all() else None


def _write(op: View, g: Graph, zero: int) -> None:
    input, output, layout = op["input"], op.output, g.layout(op["input"], rows=True)
    source, target = Codes.of(input), Codes.of(output)
    twice = g.read_steps(input, 2 * source.scale, layout=layout)
    unit = g.constant(target.scale / 2, np.float32)
    code = code_constant(g, zero, output, Domain.STORED)
    codes = g.op("QuantizeLinear", g.op("Sigmoid", twice), unit, code)
    g.write(output, codes, layout=layout, domain=Domain.STORED)
