"""Shape rules of TensorFlow's text operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, rule, same_shape
from tflite_ort.schema.values.sizes import unknown_shape
from tflite_ort.schema.values.view import OperatorView

rule("FlexStringToHashBucketFast")(same_shape)


@rule("FlexUnicodeDecodeWithOffsets", "FlexWhitespaceTokenizeWithOffsets", "FlexUnicodeEncode")
def of_text(op: OperatorView[Any]) -> Shapes:
    """Lists, of which only the data says how long they are."""
    return tuple(unknown_shape(1) for _ in op.outputs)


@rule("FlexRaggedRange")
def ragged_range(op: OperatorView[Any]) -> Shapes:
    """The splits and the values, of which only the data says how many."""
    return unknown_shape(1), unknown_shape(1)
