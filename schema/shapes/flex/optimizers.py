"""Shape rules of TensorFlow's optimizers."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, flex_rule
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.optimizers import DENSE, SPARSE
from tflite_ort.schema.values.sizes import differ
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


@flex_rule(*DENSE, *SPARSE)
def step(op: View) -> Shapes:
    """As the variables, which have one shape; the gradients are of it, or of some of its rows."""
    count = len(op.outputs)
    shapes = [tensor.shape for tensor in op.present_inputs()[:count]]
    gradient = op["delta" if "delta" in op.names else "grad"].shape
    expected = shapes[0] if "indices" not in op.names else (*op["indices"].shape, *shapes[0][1:])
    for each, wanted in [(each, shapes[0]) for each in shapes[1:]] + [(gradient, expected)]:
        if len(each) != len(wanted) or differ(each, wanted):
            raise ModelError(f"{op.label}: shapes {each} and {wanted} differ")
    given = zip(op.names, op.present_inputs(), node_of(op).operator.inputs, strict=True)
    for name, tensor, argument in given:
        single = argument.type != "resource" and name not in ("grad", "delta", "indices")
        if single and tensor.shape:
            raise ModelError(f"{op.label}: {name} has shape {tensor.shape}, expected a scalar")
    return tuple(shapes)
