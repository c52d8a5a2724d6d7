"""Shape rules of elementwise, activation and quantisation operators."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.errors import ModelError
from tflite_ort.schema.shape_rules import Shape, Shapes, required, rule
from tflite_ort.schema.view import OperatorView


@rule(
    Op.ABS,
    Op.CAST,
    Op.DENSIFY,
    Op.DEQUANTIZE,
    Op.ELU,
    Op.EXP,
    Op.HARD_SWISH,
    Op.LEAKY_RELU,
    Op.LOG,
    Op.LOGISTIC,
    Op.NEG,
    Op.PRELU,
    Op.QUANTIZE,
    Op.RELU,
    Op.RELU6,
    Op.RELU_0_TO_1,
    Op.RELU_N1_TO_1,
    Op.RSQRT,
    Op.SOFTMAX,
    Op.SQRT,
    Op.TANH,
)
def same_shape(op: OperatorView[Any]) -> Shapes:
    """The first input's shape."""
    return (required(op, 0).shape,)


@rule(
    Op.ADD,
    Op.DIV,
    Op.FLOOR_DIV,
    Op.MAXIMUM,
    Op.MINIMUM,
    Op.MUL,
    Op.POW,
    Op.SQUARED_DIFFERENCE,
    Op.SUB,
)
def broadcast_pair(op: OperatorView[Any]) -> Shapes:
    """The two inputs' shapes broadcast as numpy does."""
    return (broadcast(op, required(op, 0).shape, required(op, 1).shape),)


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
