"""Shape rules of elementwise, activation and quantisation operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, required, rule
from tflite_ort.schema.view import OperatorView


@rule(
    Op.ABS,
    Op.ADD_N,
    Op.BUCKETIZE,
    Op.CAST,
    Op.CEIL,
    Op.COS,
    Op.CUMSUM,
    Op.DENSIFY,
    Op.DEQUANTIZE,
    Op.ELU,
    Op.EXP,
    Op.FAKE_QUANT,
    Op.FLOOR,
    Op.GELU,
    Op.HARD_SWISH,
    Op.L2_NORMALIZATION,
    Op.LEAKY_RELU,
    Op.LOCAL_RESPONSE_NORMALIZATION,
    Op.LOG,
    Op.LOGICAL_NOT,
    Op.LOGISTIC,
    Op.LOG_SOFTMAX,
    Op.NEG,
    Op.PRELU,
    Op.QUANTIZE,
    Op.RELU,
    Op.RELU6,
    Op.RELU_0_TO_1,
    Op.RELU_N1_TO_1,
    Op.ROUND,
    Op.RSQRT,
    Op.SIGN,
    Op.SIN,
    Op.SOFTMAX,
    Op.SQRT,
    Op.SQUARE,
    Op.TANH,
    Op.ZEROS_LIKE,
)
def same_shape(op: OperatorView[Any]) -> Shapes:
    """The first input's shape."""
    return (required(op, 0).shape,)


@rule(
    Op.ADD,
    Op.BITWISE_XOR,
    Op.DIV,
    Op.EQUAL,
    Op.FLOOR_DIV,
    Op.FLOOR_MOD,
    Op.GREATER,
    Op.GREATER_EQUAL,
    Op.LESS,
    Op.LESS_EQUAL,
    Op.LOGICAL_AND,
    Op.LOGICAL_OR,
    Op.MAXIMUM,
    Op.MINIMUM,
    Op.MUL,
    Op.NOT_EQUAL,
    Op.POW,
    Op.RIGHT_SHIFT,
    Op.SQUARED_DIFFERENCE,
    Op.SUB,
)
def broadcast_pair(op: OperatorView[Any]) -> Shapes:
    """The two inputs' shapes broadcast as numpy does."""
    return (broadcast(op, required(op, 0).shape, required(op, 1).shape),)


@rule(Op.ATAN2)
def same_shapes(op: OperatorView[Any]) -> Shapes:
    """The two inputs have one shape: ATAN2 does not broadcast."""
    y, x = required(op, 0).shape, required(op, 1).shape
    if y != x:
        raise ModelError(f"{op.label}: shapes {y} and {x} differ")
    return (y,)


@rule(Op.SELECT)
def select(op: OperatorView[Any]) -> Shapes:
    """The shape of the values; the condition has it too, or their first dimension, or none."""
    return _selected(op, required(op, 1).shape)


@rule(Op.SELECT_V2)
def select_v2(op: OperatorView[Any]) -> Shapes:
    """Condition and values broadcast together."""
    return _selected(op, broadcast(op, *(required(op, position).shape for position in range(3))))


def _selected(op: OperatorView[Any], shape: Shape) -> Shapes:
    """`shape`; but single elements keep the rank that the file declares, as in TFLite."""
    declared = op.output.shape
    return (declared if math.prod(shape) == math.prod(declared) == 1 else shape,)


def broadcast(op: OperatorView[Any], *shapes: Shape) -> Shape:
    """`shapes` broadcast together, or a ModelError that names them."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        listed = " and ".join(map(str, shapes))
        raise ModelError(f"{op.label}: shapes {listed} do not broadcast") from error
