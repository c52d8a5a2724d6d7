"""Output shapes from input shapes, for models whose inputs are resized: a rule per operator."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.shapes.registry import Shapes, rule_of
from tflite_ort.schema.values.operators import INPUTS, key_of
from tflite_ort.schema.values.view import OperatorView


def output_shapes(op: OperatorView[Any]) -> Shapes | None:
    """One shape per output; None without a rule, or when the shapes depend on data."""
    key = key_of(op)
    found = rule_of(key)
    return None if found is None else found(INPUTS[key].named(op))


__all__ = ["output_shapes"]
