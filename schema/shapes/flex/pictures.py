"""Shape rules of TensorFlow's operators that read and write pictures."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, flex_rule, listed
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


@flex_rule("DecodeAndCropJpeg")
def part(op: View) -> Shapes:
    """As high and wide as the window, and the channels that are asked for."""
    window = listed(op["crop_window"]) or ()
    height, width = window[2:] if len(window) == 4 else unknown_shape(2)
    return ((height, width, node_of(op)["channels"] or unknown_size()),)


@flex_rule("EncodePng", "EncodeJpeg", "EncodeJpegVariableQuality")
def written(op: View) -> Shapes:
    """A text for each picture."""
    shape = op.present_inputs()[0].shape
    if len(shape) < 3:
        raise ModelError(f"{op.label}: pixels of shape {shape} are no pictures")
    return (shape[:-3],)
