"""Shape rules of TensorFlow's operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, rule, rule_of, same_shape
from tflite_ort.schema.values.node_def import SAME_AS_BUILTIN, as_builtin
from tflite_ort.schema.values.view import OperatorView

rule("Atan", "ATAN", "Sinh", "FlexErf", "FlexSoftplus")(same_shape)


@rule(*(f"Flex{name}" for name in SAME_AS_BUILTIN))
def same_as_builtin(op: OperatorView[Any]) -> Shapes | None:
    """The shapes of TFLite's own operator."""
    builtin = as_builtin(op)
    found = rule_of(builtin.op)
    return None if found is None else found(builtin)
