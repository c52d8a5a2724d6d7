"""Shape rules of activation functions."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, broadcast, rule, same_shape
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import OperatorView

rule(
    Op.ELU,
    Op.GELU,
    Op.HARD_SWISH,
    Op.LEAKY_RELU,
    Op.LOGISTIC,
    Op.LOG_SOFTMAX,
    Op.RELU,
    Op.RELU6,
    Op.RELU_0_TO_1,
    Op.RELU_N1_TO_1,
    Op.SOFTMAX,
    Op.TANH,
)(same_shape)


@rule(Op.PRELU)
def prelu(op: OperatorView[Any]) -> Shapes:
    """The input's shape, into which the slopes have to broadcast."""
    shape, slopes = op["input"].shape, op["alpha"].shape
    known = is_known(*shape, *slopes)
    if len(slopes) > len(shape) or (known and broadcast(op, shape, slopes) != shape):
        raise ModelError(f"{op.label}: alpha {slopes} does not broadcast into {shape}")
    return (shape,)
