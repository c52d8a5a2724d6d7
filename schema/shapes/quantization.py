"""Shape rules of the operators between real numbers and codes."""

from __future__ import annotations

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.shapes.registry import rule, same_shape

rule(Op.CAST, Op.DENSIFY, Op.DEQUANTIZE, Op.FAKE_QUANT, Op.QUANTIZE)(same_shape)
