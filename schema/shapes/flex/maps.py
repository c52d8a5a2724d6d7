"""Shape rules of TensorFlow's maps, whose keys and values have any shape."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.values.sizes import unknown_shape
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule("TensorMapErase", "TensorMapHasKey", "TensorMapInsert", "TensorMapSize")
def scalar(op: View) -> Shapes:
    """A map, a number or a bool."""
    return ((),)


@flex_rule("TensorMapLookup", "TensorMapStackKeys")
def any_shape(op: View) -> Shapes | None:
    """What the map has, of the rank that the file declares, if it does."""
    return (unknown_shape(op.output.rank),) if op.output.rank else None
