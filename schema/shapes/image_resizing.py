"""Shape rules of the image resizers."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import LONGEST_SIDE, Shapes, listed, rule, shown
from tflite_ort.schema.values.sizes import unknown_shape
from tflite_ort.schema.values.view import OperatorView


@rule(Op.RESIZE_BILINEAR, Op.RESIZE_NEAREST_NEIGHBOR)
def resize(op: OperatorView[Any]) -> Shapes | None:
    """[N, height, width, C]."""
    shape, size = op["input"].shape, op["size"].data
    if len(shape) != 4 or (size is not None and (size.shape != (2,) or (size <= 0).any())):
        wanted = "computed" if size is None else shown(size)
        raise ModelError(f"size {wanted} does not resize an image of shape {shape}")
    height, width = listed(op["size"]) or unknown_shape(2)
    if size is not None and max(height, width) > LONGEST_SIDE:
        raise ModelError(f"size {shown(size)}, expected at most {LONGEST_SIDE} rows and columns")
    return ((shape[0], height, width, shape[3]),)
