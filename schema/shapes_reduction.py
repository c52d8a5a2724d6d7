"""Shape rules of the reductions."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.enums import BuiltinOperator as Op
from tflite_ort.schema.semantics import normalized_axes, normalized_axis
from tflite_ort.schema.shape_rules import Shapes, constant, required, rule
from tflite_ort.schema.view import OperatorView


@rule(
    Op.MEAN,
    Op.SUM,
    Op.REDUCE_PROD,
    Op.REDUCE_MAX,
    Op.REDUCE_MIN,
    Op.REDUCE_ANY,
    Op.REDUCE_ALL,
)
def reduce(op: OperatorView[Any]) -> Shapes | None:
    shape, listed = required(op, 0).shape, constant(op, 1)
    if listed is None:
        return None
    axes = normalized_axes(listed, len(shape))
    if op.options.keep_dims:
        return (tuple(1 if axis in axes else size for axis, size in enumerate(shape)),)
    return (tuple(size for axis, size in enumerate(shape) if axis not in axes),)


@rule(Op.ARG_MAX, Op.ARG_MIN)
def arg_extremum(op: OperatorView[Any]) -> Shapes | None:
    shape, where = required(op, 0).shape, constant(op, 1)
    if where is None:
        return None
    axis = normalized_axis(int(where.reshape(-1)[0]), len(shape))
    return (shape[:axis] + shape[axis + 1 :],)
