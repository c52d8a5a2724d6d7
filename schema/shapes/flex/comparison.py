"""Shape rules of TensorFlow's comparisons, logic and bits."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, broadcast, flex_rule, same_shape
from tflite_ort.schema.values.view import OperatorView

flex_rule("Invert", "IsFinite", "IsNan", "LogicalNot", "PopulationCount", "ApproximateEqual")(
    same_shape
)


@flex_rule(
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Equal",
    "Greater",
    "GreaterEqual",
    "LeftShift",
    "Less",
    "LessEqual",
    "LogicalAnd",
    "LogicalOr",
    "NotEqual",
    "RightShift",
)
def broadcasting(op: OperatorView[Any]) -> Shapes:
    """Both operands broadcast."""
    return (broadcast(op, *(tensor.shape for tensor in op.present_inputs())),)
