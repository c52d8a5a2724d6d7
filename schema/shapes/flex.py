"""Shape rules of TensorFlow's operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import RULES, Shapes, required, rule
from tflite_ort.schema.values.node_def import SAME_AS_BUILTIN, as_builtin
from tflite_ort.schema.values.sizes import unknown_shape
from tflite_ort.schema.values.view import OperatorView


@rule("Atan", "ATAN", "Sinh", "FlexErf", "FlexSoftplus")
def unary(op: OperatorView[Any]) -> Shapes:
    return (required(op, 0).shape,)


@rule(*(f"Flex{name}" for name in SAME_AS_BUILTIN))
def same_as_builtin(op: OperatorView[Any]) -> Shapes | None:
    builtin = as_builtin(op)
    return RULES[builtin.op](builtin)


@rule("FlexStringToHashBucketFast")
def hashed(op: OperatorView[Any]) -> Shapes:
    return (required(op, 0).shape,)


@rule("FlexUnicodeDecodeWithOffsets", "FlexWhitespaceTokenizeWithOffsets", "FlexUnicodeEncode")
def of_text(op: OperatorView[Any]) -> Shapes:
    """Lists, of which only the data says how long they are."""
    return tuple(unknown_shape(1) for _ in op.outputs)


@rule("FlexRaggedRange")
def ragged_range(op: OperatorView[Any]) -> Shapes:
    return unknown_shape(1), unknown_shape(1)
