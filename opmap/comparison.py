"""Selection by a condition: SELECT, SELECT_V2."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, TensorType, Untranslatable

View = OperatorView[Any]

_T = TensorType
# Types that ONNX Runtime's Where does not take, and the wider ones that carry them.
_CARRIERS = {
    _T.BOOL: ir.DataType.UINT8,
    _T.INT16: ir.DataType.INT32,
    _T.UINT16: ir.DataType.INT32,
}
_SELECTED = frozenset(
    {_T.FLOAT32, _T.FLOAT16, _T.INT8, _T.UINT8, _T.INT32, _T.UINT32, _T.INT64, *_CARRIERS}
)


@translator(Op.SELECT, versions=(1, 4), inputs=("condition", "x", "y"))
def select(op: View, g: Graph) -> None:
    """Where; a condition of rank 1 picks along the first dimension."""
    condition, x = op["condition"], op["x"]
    if condition.shape == x.shape or condition.rank == 0:
        where(op, g, g.layout(condition, x, op["y"]))
        return
    if condition.shape != x.shape[:1]:
        raise Untranslatable(f"condition {condition.shape} does not fit values {x.shape}")
    shape = g.constant([condition.shape[0]] + [1] * (x.rank - 1), np.int64)
    where(op, g, Layout.LAST, g.op("Reshape", g.read(condition), shape))


@translator(Op.SELECT_V2, versions=(1, 2), inputs=("condition", "x", "y"))
def select_v2(op: View, g: Graph) -> None:
    """Where; condition and values broadcast."""
    where(op, g, g.layout(*op.present_inputs()))


def where(op: View, g: Graph, layout: Layout, condition: ir.Value | None = None) -> None:
    """Where on the numbers as they stand: codes are copied, whatever their scales."""
    x, y, output = op["x"], op["y"], op.output
    if op["condition"].type is not _T.BOOL or x.type is not y.type or x.type not in _SELECTED:
        raise Untranslatable(f"selection from {x.type.name} and {y.type.name}")
    if {x.is_quantized, y.is_quantized, output.is_quantized} == {True, False}:
        raise Untranslatable("only some of the values are quantised")
    rank = output.rank
    if condition is None:
        condition = g.read(op["condition"], layout=layout, rank=rank)
    values = [g.read(t, layout=layout, domain=Domain.STORED, rank=rank) for t in (x, y)]
    carrier = _CARRIERS.get(x.type)
    if carrier is not None:
        values = [g.op("Cast", value, to=carrier) for value in values]
    result = g.op("Where", condition, *values)
    if carrier is not None:
        result = g.op("Cast", result, to=ir.DataType.from_numpy(output.dtype))
    if rank != max(t.rank for t in op.present_inputs()):
        # Single elements keep the rank that the model declares.
        result = g.op("Reshape", result, g.constant(output.shape, np.int64))
    g.write(output, result, layout=layout, domain=Domain.STORED)
