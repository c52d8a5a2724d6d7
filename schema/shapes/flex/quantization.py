"""Shape rules of TensorFlow's fake quantization."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.values.sizes import differ
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule("FakeQuantWithMinMaxArgs")
def by_attributes(op: View) -> Shapes:
    """The shape of the input."""
    return (op["inputs"].shape,)


@flex_rule("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def by_bounds(op: View) -> Shapes:
    """The shape of the input; the bounds are numbers, or have one for each channel."""
    shape = op["inputs"].shape
    per_channel = op.name == "FlexFakeQuantWithMinMaxVarsPerChannel"
    if per_channel and not shape:
        raise ModelError(f"{op.label}: a scalar has no channels")
    bounds = shape[-1:] if per_channel else ()
    for name in ("min", "max"):
        if len(op[name].shape) != len(bounds) or differ(op[name].shape, bounds):
            raise ModelError(f"{op.label}: {name} of shape {op[name].shape} for {shape}")
    return (shape,)
