"""TensorFlow's operators on what a variable holds."""

from __future__ import annotations

from typing import Any

from tflite_ort.opmap.flex.elementwise import FLOATS, INTEGERS, operands, write_computed
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.values.sizes import may_differ

View = OperatorView[Any]


@flex_translator("AssignAddVariableOp", "AssignSubVariableOp")
def sums(op: View, g: Graph) -> None:
    """Add or Sub."""
    held, value = op.present_inputs()
    if may_differ(held.shape, value.shape):
        raise Untranslatable("a variable whose shape is not known")
    values, layout = operands(op, g, FLOATS | INTEGERS)
    op_type = "Add" if op.name == "FlexAssignAddVariableOp" else "Sub"
    write_computed(g, op.output, g.op(op_type, *values), layout)
