"""Shape rules of activation functions."""

from __future__ import annotations

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.shapes.registry import rule, same_shape

rule(
    Op.ELU,
    Op.GELU,
    Op.HARD_SWISH,
    Op.LEAKY_RELU,
    Op.LOGISTIC,
    Op.LOG_SOFTMAX,
    Op.PRELU,
    Op.RELU,
    Op.RELU6,
    Op.RELU_0_TO_1,
    Op.RELU_N1_TO_1,
    Op.SOFTMAX,
    Op.TANH,
)(same_shape)
