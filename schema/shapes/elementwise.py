"""Shape rules of elementwise, activation and quantisation operators."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, required, rule
from tflite_ort.schema.values.sizes import (
    common,
    differ,
    is_known,
    is_one,
    known_product,
    unknown_size,
)
from tflite_ort.schema.values.view import OperatorView


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
    if differ(y, x):
        raise ModelError(f"{op.label}: shapes {y} and {x} differ")
    return (tuple(map(common, y, x)),)


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
    single = is_known(*shape) and known_product(shape) == known_product(declared) == 1
    return (declared if single else shape,)


def broadcast(op: OperatorView[Any], *shapes: Shape) -> Shape:
    """`shapes` broadcast together as numpy does, or a ModelError that names them.

    An unknown size beside a known one above 1 is 1 or that size; two unknown ones give a third.
    """
    columns = list(zip_longest(*(reversed(shape) for shape in shapes), fillvalue=1))
    result = []
    for column in reversed(columns):
        sizes = [size for size in column if not is_one(size)] or [1]
        size, others = common(*sizes), sizes[1:]
        if any(is_known(size, other) and size != other for other in sizes):
            listed = " and ".join(map(str, shapes))
            raise ModelError(f"{op.label}: shapes {listed} do not broadcast")
        alike = is_known(size) or all(other is size for other in others)
        result.append(size if alike else unknown_size())
    return tuple(result)
