"""Shape rules of the image resizers."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, constant, required, rule
from tflite_ort.schema.view import OperatorView


@rule(Op.RESIZE_BILINEAR, Op.RESIZE_NEAREST_NEIGHBOR)
def resize(op: OperatorView[Any]) -> Shapes | None:
    shape, size = required(op, 0).shape, constant(op, 1)
    if size is None:
        return None
    if len(shape) != 4 or size.shape != (2,) or (size <= 0).any():
        raise ModelError(f"size {size.tolist()} does not resize an image of shape {shape}")
    return ((shape[0], int(size[0]), int(size[1]), shape[3]),)
