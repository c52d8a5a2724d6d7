"""Shape rules of the random operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, listed, rule
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.schema.values.view import OperatorView


@rule(Op.RANDOM_UNIFORM, Op.RANDOM_STANDARD_NORMAL)
def random(op: OperatorView[Any]) -> Shapes | None:
    """What the shape input says."""
    given = op["shape"]
    if given.rank != 1:
        raise ModelError(f"shape has rank {given.rank}, expected 1")
    shape = listed(op["shape"])
    return None if shape is None else (shape,)


@rule(Op.MULTINOMIAL)
def multinomial(op: OperatorView[Any]) -> Shapes | None:
    """[batch, num_samples]."""
    logits, samples = op["logits"], op["num_samples"]
    if logits.rank != 2 or samples.rank != 0:
        raise ModelError(f"logits {logits.shape} and num_samples {samples.shape} have wrong ranks")
    count = unknown_size() if samples.data is None else int(samples.data)
    return ((logits.shape[0], count),)
