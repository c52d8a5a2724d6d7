"""Shapes of what variables and hash tables hold; their operators' first input is what is held."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.shapes.registry import Shapes, rule
from tflite_ort.schema.values.sizes import is_known, unknown_size
from tflite_ort.schema.values.view import OperatorView


@rule(Op.READ_VARIABLE)
def read_variable(op: OperatorView[Any]) -> Shapes | None:
    """That of the variable. A size that is unknown may be another one at the next reading."""
    variable = op["variable"]
    if not variable.ranked:
        return None
    return (tuple(size if is_known(size) else unknown_size() for size in variable.shape),)


@rule(Op.ASSIGN_VARIABLE, Op.HASHTABLE_IMPORT)
def nothing(op: OperatorView[Any]) -> Shapes:
    """There is no output."""
    return ()


@rule(Op.HASHTABLE_FIND)
def hashtable_find(op: OperatorView[Any]) -> Shapes:
    """A value for each key."""
    return (op["keys"].shape,)


@rule(Op.HASHTABLE_SIZE)
def hashtable_size(op: OperatorView[Any]) -> Shapes:
    """[1]."""
    return ((1,),)
