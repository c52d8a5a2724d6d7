"""Shape rules of TensorFlow's operators that check, print or do nothing."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, flex_rule, same_shape
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]

flex_rule("CheckNumerics", "CheckNumericsV2", "Print")(same_shape)


@flex_rule("Assert", "NoOp", "PrintV2")
def nothing(op: View) -> Shapes:
    """There is no output."""
    return ()


@flex_rule("EnsureShape")
def ensure_shape(op: View) -> Shapes:
    """The input's shape, with the sizes that the node tells."""
    shape, told = op["input"].shape, node_of(op)["shape"]
    if told is None:
        return (shape,)
    if len(told) != len(shape) or any(
        size >= 0 and is_known(mine) and size != mine
        for size, mine in zip(told, shape, strict=True)
    ):
        raise ModelError(f"{op.label}: shape {shape}, expected {told}")
    return (tuple(a if a >= 0 else b for a, b in zip(told, shape, strict=True)),)


@flex_rule("Timestamp")
def timestamp(op: View) -> Shapes:
    """A scalar."""
    return ((),)
