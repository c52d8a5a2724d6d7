"""Shape rules of TensorFlow's optional values."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule("OptionalFromValue", "OptionalNone", "OptionalHasValue")
def scalar(op: View) -> Shapes:
    """A value, or whether there is one."""
    return ((),)


@flex_rule("OptionalGetValue")
def value(op: View) -> Shapes | None:
    """What the node tells."""
    shapes = node_of(op)["output_shapes"]
    if len(shapes) != len(op.outputs) or None in shapes:
        return None
    return tuple(tuple(unknown_size() if n < 0 else n for n in shape) for shape in shapes)
