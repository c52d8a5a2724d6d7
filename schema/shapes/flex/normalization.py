"""Shape rules of tf.text's operators that change texts."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule, same_shape
from tflite_ort.schema.shapes.tokenizers import lists
from tflite_ort.schema.values.view import OperatorView

flex_rule("CaseFoldUTF8", "NormalizeUTF8")(same_shape)
flex_rule("FastBertNormalize")(lists)


@flex_rule("NormalizeUTF8WithOffsetsMap")
def with_map(op: OperatorView[Any]) -> Shapes:
    """Two tensors of the shape of the texts."""
    return op["input"].shape, op["input"].shape
