"""TANH of 8-bit codes as a sigmoid of twice the input.

tanh x = 2 sigmoid 2x - 1. TFLite's codes are 1/128 apart, so they are those of a sigmoid in steps
of 1/256. ONNX Runtime has a table for a sigmoid of codes, and none for a tanh. A slightly larger or
smaller unit of the input moves what is next to a half to the side on which TFLite has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.function_codes import UNITS, rounded_table
from tflite_ort.opmap.idioms.movement import code_constant
from tflite_ort.opmap.idioms.rescaled_codes import Codes
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType
from tflite_ort.schema.values.semantics import quantized_range

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
# How far off ONNX Runtime's sigmoid is, in codes: five times what 3 million numbers show at most.
_ERROR = 2.0**-12


def tanh_by_sigmoid(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """One node of codes, if none of them is near a half."""
    input, output = op["input"], op.output
    if not (input.type in _BYTES and output.type is input.type):
        return ()
    if not (input.is_quantized and output.is_quantized):
        return ()
    source, target = Codes.of(input), Codes.of(output)
    zero = _zero_point(target)
    unit = None if zero is None else _clear_unit(source, target)
    if zero is None or unit is None:
        return ()
    return [Lowering("sigmoid", {}, partial(_write, op, g, zero, unit))]


def _zero_point(target: Codes) -> int | None:
    """That of the sigmoid's codes; None if it is no code."""
    zero = target.zero_point - 1 / target.scale
    low, high = quantized_range(target.type)
    return int(zero) if zero.is_integer() and low <= zero <= high else None


@lru_cache(maxsize=256)
def _clear_unit(source: Codes, target: Codes) -> float | None:
    """By what the unit of the input is multiplied, so that floats give TFLite's codes."""
    wanted = rounded_table(source, target, np.tanh).astype(np.float64) - target.zero_point
    _, high = quantized_range(target.type)
    for unit in UNITS:
        exact = np.tanh(source.steps().astype(np.float64) * source.scale * unit) / target.scale
        is_highest = (wanted == high - target.zero_point) & (exact > wanted)
        if np.all((np.abs(exact - wanted) < 0.5 - _ERROR) | is_highest):
            return unit
    return None


def _write(op: View, g: Graph, zero: int, unit: float) -> None:
    input, output, layout = op["input"], op.output, g.layout(op["input"], rows=True)
    source, target = Codes.of(input), Codes.of(output)
    twice = g.read_steps(input, 2 * source.scale * unit, layout=layout)
    step = g.constant(target.scale / 2, np.float32)
    code = code_constant(g, zero, output, Domain.STORED)
    codes = g.op("QuantizeLinear", g.op("Sigmoid", twice), step, code)
    g.write(output, codes, layout=layout, domain=Domain.STORED)
