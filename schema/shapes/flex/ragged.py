"""Shape rules of TensorFlow's operators on ragged tensors."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.values.sizes import unknown_shape
from tflite_ort.schema.values.view import OperatorView


@flex_rule("RaggedRange")
def ragged_range(op: OperatorView[Any]) -> Shapes:
    """The splits and the values, of which only the data says how many."""
    return unknown_shape(1), unknown_shape(1)
