"""MAXIMUM and MINIMUM of many floats without Where, which takes 4 to 7 ns an element."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np

from tflite_ort.opmap.elementwise import Binary
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.extremes import compares_floats
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.values.sizes import is_known

# For fewer elements the nodes that avoid Where take longer.
_MANY = 1 << 12
_FLOATS = frozenset({TensorType.FLOAT32})


def many_extremes(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """Max or Min, which give NaN where either operand is NaN, of a first operand without NaN."""
    if any(each.type not in _FLOATS for each in (op["input1"], op["input2"], op.output)):
        return ()
    few = is_known(*op.output.shape) and prod(op.output.shape) < _MANY
    if few or not compares_floats(op, g):
        return ()
    row = Binary(op.op, (op.version, op.version), _extreme, _FLOATS, domain=Domain.STORED)
    return [Lowering("without NaN", {}, partial(row.translate, op, g))]


def _extreme(op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    op_type = "Max" if op.op is Op.MAXIMUM else "Min"
    return g.op(op_type, _without_nan(op_type, g, a), b)


def _without_nan(op_type: str, g: Graph, x: ir.Value) -> ir.Value:
    """`x`, but the infinity that no number is beyond for NaN.

    ThresholdedRelu gives 0 for NaN and for that infinity. What the comparison finds becomes 1 or 0,
    and 1 - 1 / of it 0 or an infinity.
    """
    one, infinity = g.constant(1, np.float32), np.float32(np.inf)
    positive = x if op_type == "Max" else g.op("Neg", x)
    within = g.op("Greater", positive, g.constant(-infinity))
    found = g.op("Reciprocal", g.cast(within, ir.DataType.FLOAT))
    number = g.op("ThresholdedRelu", positive, alpha=float(-infinity))
    if op_type == "Max":
        return g.op("Add", number, g.op("Sub", one, found))
    return g.op("Sub", g.op("Sub", found, one), number)
