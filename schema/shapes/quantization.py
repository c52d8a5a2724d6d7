"""Shape rules of the operators between real numbers and codes."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, rule, same_shape
from tflite_ort.schema.values.sizes import differ
from tflite_ort.schema.values.view import OperatorView

rule(Op.CAST, Op.DENSIFY, Op.FAKE_QUANT)(same_shape)


@rule(Op.DEQUANTIZE, Op.QUANTIZE)
def scaled(op: OperatorView[Any]) -> Shapes:
    """The shape of the input; where scales are several, there is one for each place along their
    axis. LiteRT takes any size, and reads beyond the scales."""
    shape = op["input"].shape
    for tensor in (op["input"], op.output):
        found = tensor.quantization
        if found is None or not found.per_channel or found.axis >= len(shape):
            continue
        if differ(shape[found.axis : found.axis + 1], found.scale.shape):
            raise ModelError(f"{op.label}: {found.scale.size} scales along a size of {shape}")
    return (shape,)
