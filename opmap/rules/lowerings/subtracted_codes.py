"""SUB of 8-bit codes as QLinearAdd of a and b, which has a scale below 0: ONNX Runtime has no fused
Sub."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.exact_arithmetic import adds_codes, units_of_codes
from tflite_ort.opmap.idioms.long_runs import read_operand
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})


def subtracted_codes(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """SUB of codes of one type, few of whose differences are next to a half: TFLite rounds these
    up, QLinearAdd to even."""
    tensors = (op["input1"], op["input2"], op.output)
    if {each.type for each in tensors} - _BYTES or len({each.type for each in tensors}) > 1:
        return ()
    if not all(each.is_quantized for each in tensors) or not adds_codes(*units_of_codes(op)):
        return ()
    return [Lowering("sum", {}, partial(_sum, op, g))]


def _sum(op: View, g: Graph) -> None:
    a, b, output = op["input1"], op["input2"], op.output
    assert b.quantization is not None
    layout = g.layout(a, b)
    first = read_operand(g, a, b, layout, Domain.REAL, output.rank)
    codes = read_operand(g, b, a, layout, Domain.STORED, output.rank)
    step = g.constant(np.float32(-b.quantization.scalar_scale))
    second = g.op("DequantizeLinear", codes, step, g.zero_code(b))
    activation = op.options.fused_activation_function
    g.write(output, g.op("Add", first, second), layout=layout, activation=activation)
