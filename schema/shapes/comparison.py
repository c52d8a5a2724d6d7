"""Shape rules of comparisons and selections."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.shapes.registry import (
    Shape,
    Shapes,
    broadcast,
    broadcast_pair,
    rule,
    same_shape,
)
from tflite_ort.schema.values.sizes import (
    is_known,
    known_product,
)
from tflite_ort.schema.values.view import OperatorView

rule(Op.LOGICAL_NOT)(same_shape)

rule(Op.EQUAL, Op.GREATER, Op.GREATER_EQUAL, Op.LESS, Op.LESS_EQUAL, Op.NOT_EQUAL)(broadcast_pair)


@rule(Op.SELECT)
def select(op: OperatorView[Any]) -> Shapes:
    """The shape of the values; the condition has it too, or their first dimension, or none."""
    return _selected(op, op["x"].shape)


@rule(Op.SELECT_V2)
def select_v2(op: OperatorView[Any]) -> Shapes:
    """Condition and values broadcast together."""
    return _selected(op, broadcast(op, *(op[name].shape for name in op.names)))


def _selected(op: OperatorView[Any], shape: Shape) -> Shapes:
    """`shape`; but single elements keep the rank that the file declares, as in TFLite."""
    declared = op.output.shape
    single = is_known(*shape) and known_product(shape) == known_product(declared) == 1
    return (declared if single else shape,)
