"""Shape rules of TensorFlow's operators on what a variable holds."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.flex.movement import check_updates
from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.values.sizes import differ
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule("AssignAddVariableOp", "AssignSubVariableOp")
def sums(op: View) -> Shapes:
    """As the variable, and as what is added."""
    held, value = (tensor.shape for tensor in op.present_inputs())
    if len(held) != len(value) or differ(held, value):
        raise ModelError(f"{op.label}: a variable of shape {held} and a value of shape {value}")
    return (held,)


@flex_rule(
    "ResourceScatterDiv",
    "ResourceScatterMax",
    "ResourceScatterMin",
    "ResourceScatterMul",
    "ResourceScatterUpdate",
)
def rows(op: View) -> Shapes:
    """As the variable; updates are of rows, or one number."""
    held, indices, updates = (tensor.shape for tensor in op.present_inputs())
    expected = (*indices, *held[1:])
    if not held or (updates and (len(updates) != len(expected) or differ(updates, expected))):
        raise ModelError(f"{op.label}: updates {updates} of rows {indices} of {held}")
    return (held,)


@flex_rule("ResourceScatterNdMax", "ResourceScatterNdMin", "ResourceScatterNdUpdate")
def places(op: View) -> Shapes:
    """As the variable."""
    held, indices, updates = (tensor.shape for tensor in op.present_inputs())
    check_updates(held, indices, updates)
    return (held,)


@flex_rule("ResourceStridedSliceAssign")
def slices(op: View) -> Shapes:
    """As the variable."""
    return (op.present_inputs()[0].shape,)
