"""Shape rules of the random operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.shape_rules import Shapes, constant, required, rule
from tflite_ort.schema.view import OperatorView


@rule(Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL)
def random(op: OperatorView[Any]) -> Shapes | None:
    """What the shape input says."""
    shape = constant(op, 0)
    return None if shape is None else (tuple(int(size) for size in shape.reshape(-1)),)


@rule(Op.MULTINOMIAL)
def multinomial(op: OperatorView[Any]) -> Shapes | None:
    """[batch, num_samples]."""
    samples = constant(op, 1)
    return None if samples is None else ((required(op, 0).shape[0], int(samples.reshape(-1)[0])),)
