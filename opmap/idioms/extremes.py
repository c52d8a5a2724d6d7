"""MAXIMUM and MINIMUM: the nodes that give LiteRT's answer where an operand is NaN.

LiteRT compares, so a NaN of either operand gives the second one, and Max would give NaN. But
XNNPACK keeps the NaN of a tensor that a single number limits.
"""

from __future__ import annotations

from math import prod
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
from tflite_ort.schema.values.sizes import is_known, may_differ

View = OperatorView[Any]
_T = TensorType

# Where takes ONNX Runtime 4 to 7 ns an element; below so many the nodes that avoid it take longer.
_MANY = 1 << 12


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
        return _chosen(op_type, g, a, b)
    return g.op(op_type, a, b)


def _chosen(op_type: str, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    return g.op("Where", g.op("Greater" if op_type == "Max" else "Less", a, b), a, b)


def _of_floats(op_type: str, op: View, g: Graph, a: ir.Value, b: ir.Value) -> ir.Value:
    first, second = op["input1"], op["input2"]
    for limit, tensor, x in ((first, second, b), (second, first, a)):
        if _is_a_number(limit) and not may_differ(tensor.shape, op.output.shape):
            return _limited(op_type, g, x, limit)
    hides_nothing = first.data is not None and not np.isnan(first.data).any()
    if hides_nothing or _is_multiple(g, first, second) or _is_multiple(g, second, first):
        return g.op(op_type, a, b)
    few = is_known(*op.output.shape) and prod(op.output.shape) < _MANY
    if few or not g.target.cpu_kernels:
        return _chosen(op_type, g, a, b)
    return g.op(op_type, _without_nan(op_type, g, a), b)


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
    maker = g.maker(made)
    if maker is None or maker.op is not Op.MUL:
        return False
    if maker.options.fused_activation_function is not ActivationFunctionType.NONE:
        return False
    factors = [each for each in maker.present_inputs() if each.index != other.index]
    if len(factors) != 1 or factors[0].data is None:
        return False
    data = factors[0].data
    return not may_differ(made.shape, other.shape) and bool(np.all(np.isfinite(data) & (data != 0)))


def _without_nan(op_type: str, g: Graph, x: ir.Value) -> ir.Value:
    """`x`, but the infinity that no number is beyond for NaN.

    ThresholdedRelu gives 0 for NaN and for that infinity. What the comparison finds becomes 1 or 0,
    and 1 - 1 / of it 0 or an infinity.
    """
    one, infinity = g.constant(1, np.float32), np.float32(np.inf)
    positive = x if op_type == "Max" else g.op("Neg", x)
    within = g.op("Greater", positive, g.constant(-infinity))
    found = g.op("Reciprocal", g.cast(within, ir.DataType.FLOAT))
    number = g.op("ThresholdedRelu", positive, alpha=float(-infinity))
    if op_type == "Max":
        return g.op("Add", number, g.op("Sub", one, found))
    return g.op("Sub", g.op("Sub", found, one), number)
