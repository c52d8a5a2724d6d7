"""Shape rules of TensorFlow's operators that read pictures."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule("DecodeBmp", "DecodeJpeg", "DecodePng")
def picture(op: View) -> Shapes:
    """Height, width, and the channels that are asked for."""
    channels = node_of(op)["channels"]
    return ((unknown_size(), unknown_size(), channels or unknown_size()),)


@flex_rule("DecodeGif")
def frames(op: View) -> Shapes:
    """Frames of three channels."""
    return ((*unknown_shape(3), 3),)


@flex_rule("DecodeImage")
def any_picture(op: View) -> Shapes | None:
    """A picture, or the frames of one that moves."""
    return None if node_of(op)["expand_animations"] else picture(op)
