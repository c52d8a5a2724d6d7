"""Batch rules of the operators that compute element by element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.batching.registry import rule
from tflite_ort.schema import Op, OperatorView, SelectV2Options, TensorView, Unbatchable
from tflite_ort.schema.values.elementwise import BROADCASTING, UNARY
from tflite_ort.schema.values.sizes import is_one, may_differ

View = OperatorView[Any]

# Their operands have one shape.
ALIKE = (
    *(Op.ADD_N, Op.STABLEHLO_ADD, Op.STABLEHLO_MULTIPLY, Op.STABLEHLO_MAXIMUM),
    *(Op.STABLEHLO_MINIMUM, Op.STABLEHLO_AND, Op.STABLEHLO_SHIFT_LEFT),
)


@rule(*BROADCASTING)
def broadcasting(op: View, g: BatchedGraph) -> None:
    """Operands that broadcast: in rows where all agree on the first axis, else stacked."""
    inputs, out = op.present_inputs(), op.output
    if _in_rows(inputs, out, g):
        places = [g.rows(t) if g.is_batched(t) else g.same(t) for t in inputs]
        g.copy(op, places, [g.result_rows(out)])
        return
    places = [g.stacked(t, out.rank) if g.is_batched(t) else g.same(t) for t in inputs]
    g.copy(op, places, [g.result_stacked(out)])


def _in_rows(inputs: Sequence[TensorView], out: TensorView, g: BatchedGraph) -> bool:
    """Whether the operands can be taken in rows, and one stands so."""
    if not out.rank:
        return False
    for tensor in inputs:
        if g.is_batched(tensor):
            if tensor.rank != out.rank or may_differ(tensor.shape[:1], out.shape[:1]):
                return False
        elif tensor.rank > out.rank or (tensor.rank == out.rank and not is_one(tensor.shape[0])):
            return False
    return any(g.has_rows(tensor) for tensor in inputs)


@rule(*UNARY, Op.CAST, Op.FAKE_QUANT)
def unary(op: View, g: BatchedGraph) -> None:
    """One operand, in the form in which it stands."""
    (source,) = op.present_inputs()
    one_input(op, source, [g.rows(source) if g.has_rows(source) else g.stacked(source)], g)


def one_input(op: View, source: TensorView, places: Sequence[int | None], g: BatchedGraph) -> None:
    """`op` over `places`, with results in the form of `source`."""
    result = g.result_rows if g.has_rows(source) else g.result_stacked
    g.copy(op, places, [result(out) for out in op.outputs])


@rule(Op.QUANTIZE, Op.DEQUANTIZE)
def quantize(op: View, g: BatchedGraph) -> None:
    """As any other of one operand, if there is one scale."""
    for tensor in (*op.present_inputs(), *op.outputs):
        if tensor.quantization is not None and tensor.quantization.per_channel:
            raise Unbatchable("its scales go along an axis")
    unary(op, g)


@rule(*ALIKE)
def alike(op: View, g: BatchedGraph) -> None:
    """Operands of one shape: what is the same for all samples is repeated."""
    inputs = op.present_inputs()
    if op.output.rank and any(g.has_rows(tensor) for tensor in inputs):
        g.copy(op, [g.rows(tensor) for tensor in inputs], [g.result_rows(op.output)])
    else:
        g.copy(op, [g.stacked(tensor) for tensor in inputs], [g.result_stacked(op.output)])


@rule(Op.SELECT)
def select(op: View, g: BatchedGraph) -> None:
    """SELECT of operands of one shape as SELECT_V2, whose operands broadcast."""
    inputs, out = op.present_inputs(), op.output
    if any(may_differ(tensor.shape, out.shape) for tensor in inputs):
        raise Unbatchable("its condition chooses rows")
    places = [g.stacked(t) if g.is_batched(t) else g.same(t) for t in inputs]
    g.emit(Op.SELECT_V2, places, [g.result_stacked(out)], SelectV2Options())
