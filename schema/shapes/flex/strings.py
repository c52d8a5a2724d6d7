"""Shape rules of TensorFlow's operators on texts."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule, same_shape
from tflite_ort.schema.values.sizes import unknown_shape
from tflite_ort.schema.values.view import OperatorView

flex_rule("StringToHashBucketFast")(same_shape)


@flex_rule("UnicodeDecodeWithOffsets", "UnicodeEncode")
def of_text(op: OperatorView[Any]) -> Shapes:
    """Lists, of which only the data says how long they are."""
    return tuple(unknown_shape(1) for _ in op.outputs)
