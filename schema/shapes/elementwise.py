"""Shape rules of elementwise, activation and quantization operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import (
    Shapes,
    broadcast_pair,
    rule,
    same_shape,
)
from tflite_ort.schema.values.sizes import (
    common,
    differ,
)
from tflite_ort.schema.values.view import OperatorView

rule(
    Op.ABS,
    Op.ADD_N,
    Op.BUCKETIZE,
    Op.CEIL,
    Op.COS,
    Op.EXP,
    Op.FLOOR,
    Op.LOG,
    Op.NEG,
    Op.ROUND,
    Op.RSQRT,
    Op.SIGN,
    Op.SIN,
    Op.SQRT,
    Op.SQUARE,
    Op.ZEROS_LIKE,
)(same_shape)

rule(
    Op.ADD,
    Op.BITWISE_XOR,
    Op.DIV,
    Op.FLOOR_DIV,
    Op.FLOOR_MOD,
    Op.LOGICAL_AND,
    Op.LOGICAL_OR,
    Op.MAXIMUM,
    Op.MINIMUM,
    Op.MUL,
    Op.POW,
    Op.RIGHT_SHIFT,
    Op.SQUARED_DIFFERENCE,
    Op.SUB,
)(broadcast_pair)


@rule(Op.ATAN2)
def same_shapes(op: OperatorView[Any]) -> Shapes:
    """The two inputs have one shape: ATAN2 does not broadcast."""
    y, x = op["input1"].shape, op["input2"].shape
    if differ(y, x):
        raise ModelError(f"{op.label}: shapes {y} and {x} differ")
    return (tuple(map(common, y, x)),)
