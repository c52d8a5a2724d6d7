"""MAXIMUM and MINIMUM: the nodes that give LiteRT's answer where an operand is NaN.

LiteRT compares, so a NaN of either operand gives the second one, and Max would give NaN. But
XNNPACK keeps the NaN of a tensor that a single number limits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    ActivationFunctionType,
    Op,
    OperatorView,
    TensorType,
    TensorView,
)
from tflite_ort.schema.values.sizes import may_differ

View = OperatorView[Any]
_T = TensorType


def extreme(op_type: str, op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Max or Min of the numbers as stored: TFLite compares codes, whatever their scales.

    For 64-bit integers it is a comparison and a Where: ONNX Runtime's Max is wrong beyond 32 bits.

    Args:
        op_type: Max or Min.
    """
    type = op.output.type
    if type is _T.INT16:
        wide = (g.cast(value, ir.DataType.INT32) for value in (a, b))
        return g.cast(g.op(op_type, *wide), ir.DataType.INT16)
    if type is _T.FLOAT32:
        return _of_floats(op_type, op, g, a, b)
    if type in (_T.FLOAT16, _T.INT64):
        return chosen(op_type, g, a, b)
    return g.op(op_type, a, b)


def chosen(op_type: str, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    """Max or Min by a comparison and a Where."""
    return g.op("Where", g.op("Greater" if op_type == "Max" else "Less", a, b), a, b)


def _of_floats(op_type: str, op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    first, second = op["input1"], op["input2"]
    for limit, tensor, x in ((first, second, b), (second, first, a)):
        if _limits(limit, tensor, op):
            return _limited(op_type, g, x, limit)
    return chosen(op_type, g, a, b) if _compares_floats(op, g) else g.op(op_type, a, b)


def _compares_floats(op: View, g: Graph) -> bool:
    """Whether floats are compared, since neither Max nor Clip has LiteRT's answer for NaN."""
    first, second = op["input1"], op["input2"]
    hides_nothing = first.data is not None and not np.isnan(first.data).any()
    return not (hides_nothing or _is_multiple(g, first, second) or _is_multiple(g, second, first))


def _limits(limit: TensorView, tensor: TensorView, op: View) -> bool:
    """Whether `limit` is a single number for all of `tensor`."""
    return _is_a_number(limit) and not may_differ(tensor.shape, op.output.shape)


def _is_a_number(tensor: TensorView) -> bool:
    return tensor.data is not None and tensor.data.size == 1 and not np.isnan(tensor.data).any()


def _limited(op_type: str, g: Graph, x: ir.Value, limit: TensorView) -> ir.Value:
    """`x` limited by one number, as a node that ONNX Runtime fuses with a layer before it."""
    assert limit.data is not None
    number = np.float32(limit.data.item())
    beyond = np.float32(np.inf if op_type == "Max" else -np.inf)
    if op_type == "Max" and number == 0:
        return g.op("Relu", x)
    return g.op("Clip", x, *(g.constant(each) for each in sorted((number, beyond))))


def _is_multiple(g: Graph, made: TensorView, other: TensorView) -> bool:
    """Whether `made` is `other` times finite constants other than 0, so that both are NaN at the
    same places: a LEAKY_RELU written out."""
    maker = g.uses.maker(made)
    if maker is None or maker.op is not Op.MUL:
        return False
    if maker.options.fused_activation_function is not ActivationFunctionType.NONE:
        return False
    factors = [each for each in maker.present_inputs() if each.index != other.index]
    if len(factors) != 1 or factors[0].data is None:
        return False
    data = factors[0].data
    return not may_differ(made.shape, other.shape) and bool(np.all(np.isfinite(data) & (data != 0)))
