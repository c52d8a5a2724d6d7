"""Shape rules of TensorFlow's arithmetic element by element."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, broadcast, flex_rule, rule, same_shape
from tflite_ort.schema.values.elementwise import FLEX_BINARY, FLEX_UNARY
from tflite_ort.schema.values.sizes import differ, is_known
from tflite_ort.schema.values.view import OperatorView

rule("Atan", "ATAN", "Sinh")(same_shape)
flex_rule(*FLEX_UNARY, "Cast")(same_shape)


@flex_rule(*FLEX_BINARY, "SelectV2")
def broadcasting(op: OperatorView[Any]) -> Shapes:
    """All inputs broadcast."""
    return (broadcast(op, *(tensor.shape for tensor in op.present_inputs())),)


@flex_rule("AddN", "ClipByValue")
def as_first(op: OperatorView[Any]) -> Shapes:
    """The first input's shape; other inputs of ADD_N have the same."""
    first, *others = op.present_inputs()
    for other in others:
        if op.name == "FlexAddN" and differ(first.shape, other.shape):
            raise ModelError(f"{op.label}: shapes {first.shape} and {other.shape} differ")
    return (first.shape,)


@flex_rule("Select")
def select(op: OperatorView[Any]) -> Shapes:
    """The shape of both values."""
    return (op.present_inputs()[1].shape,)


@flex_rule("Bitcast")
def bitcast(op: OperatorView[Any]) -> Shapes:
    """Smaller elements have a dimension of their own; larger ones take up the last one."""
    (x,) = op.present_inputs()
    wide, narrow = x.dtype.itemsize, op.output.dtype.itemsize
    if wide == narrow:
        return (x.shape,)
    if wide > narrow:
        return ((*x.shape, wide // narrow),)
    if not x.shape or (is_known(x.shape[-1]) and x.shape[-1] != narrow // wide):
        raise ModelError(f"{op.label}: {x.shape} elements of {wide} bytes become those of {narrow}")
    return (x.shape[:-1],)
