"""Shape rules of normalisation."""

from __future__ import annotations

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.shapes.registry import rule, same_shape

rule(Op.L2_NORMALIZATION, Op.LOCAL_RESPONSE_NORMALIZATION)(same_shape)
