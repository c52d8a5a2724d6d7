"""Batch rules of variables and hash tables: a variable has a row for each sample.

A variable of shape [a, b] becomes one of shape [N, a, b]. What gives it its first value gives it to
all rows: at once where N is a number; else as one row, which is repeated where it is read.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tflite_ort.batching.elementwise import one_input
from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.batching.plain import PlainGraph
from tflite_ort.batching.registry import rule
from tflite_ort.schema import (
    GatherOptions,
    Op,
    Operator,
    OperatorView,
    SubGraph,
    TensorView,
    Unbatchable,
)

View = OperatorView[Any]

# Their rules are called whatever they read.
ALWAYS = frozenset(
    {
        *(Op.READ_VARIABLE, Op.ASSIGN_VARIABLE, Op.CALL_ONCE),
        *(Op.HASHTABLE_FIND, Op.HASHTABLE_IMPORT, Op.HASHTABLE_SIZE),
    }
)


def _handle(op: View, g: BatchedGraph) -> int:
    """The tensor that names the variable or table, for which the view has what it stands for."""
    place = g.source.operators[op.index].inputs[0]
    if place is None:
        raise Unbatchable("its handle is left out")
    return place


@rule(Op.READ_VARIABLE)
def read_variable(op: View, g: BatchedGraph) -> None:
    """The rows; a single one for all samples is repeated."""
    out, handle = op.output, _handle(op, g)
    if g.size is not None:
        g.copy(op, [handle], [g.result_stacked(out)])
        return
    rows = g.temporary(out, (-1, *out.shape), "rows")
    g.copy(op, [handle], [rows])
    dims = g.dims(out.shape)
    g.emit(Op.BROADCAST_TO, [rows, dims], [g.result_stacked(out)])


@rule(Op.ASSIGN_VARIABLE)
def assign_variable(op: View, g: BatchedGraph) -> None:
    """The rows of the value."""
    value = op.inputs[1]
    if value is None:
        raise Unbatchable("its value is left out")
    g.copy(op, [_handle(op, g), g.stacked(value)], [])


@rule(Op.CALL_ONCE)
def call_once(op: View, g: BatchedGraph) -> None:
    """The same start, in which variables are assigned rows."""
    start = op.options.init_subgraph_index
    source = g.parts.model.subgraphs[start]
    options = replace(op.options, init_subgraph_index=g.parts.add_subgraph(_started(source, g)))
    g.copy(op, [], [], options)


def _started(source: SubGraph, g: BatchedGraph) -> SubGraph:
    """`source` with what it assigns repeated, and of what it reads one row: all are alike."""
    body = PlainGraph(g.parts)
    body.tensors = list(source.tensors)
    for operator in source.operators:
        code = g.parts.model.operator_codes[operator.opcode_index].builtin_code
        if code is Op.ASSIGN_VARIABLE:
            operator = replace(operator, inputs=_repeated(operator, source, body, g))
        if code is Op.READ_VARIABLE:
            _read_one(operator, source, body, g)
        else:
            body.operators.append(operator)
    return replace(source, tensors=tuple(body.tensors), operators=tuple(body.operators))


def _read_one(operator: Operator, source: SubGraph, body: PlainGraph, g: BatchedGraph) -> None:
    (out,) = operator.outputs
    table = source.tensors[out]
    rows = body.like(table, (g.size or 1, *table.shape), "rows")
    body.operators.append(replace(operator, outputs=(rows,)))
    body.emit(Op.GATHER, [rows, body.constant(0)], [out], GatherOptions())


def _repeated(
    operator: Operator, source: SubGraph, body: PlainGraph, g: BatchedGraph
) -> tuple[int | None, ...]:
    handle, value = operator.inputs
    if value is None:
        raise Unbatchable("a first value is left out")
    shape = (g.size or 1, *source.tensors[value].shape)
    rows = body.like(source.tensors[value], shape, "rows")
    body.emit(Op.BROADCAST_TO, [value, body.constant(shape)], [rows])
    return handle, rows


@rule(Op.HASHTABLE_FIND)
def hashtable_find(op: View, g: BatchedGraph) -> None:
    """Keys in the form in which they stand; one table for all samples."""
    _, keys, default = op.inputs
    if keys is None or g.is_batched(default):
        raise Unbatchable("its default differs between the samples")
    places = [_handle(op, g), _key_rows(keys, g), g.same(default)]
    if g.is_batched(keys):
        one_input(op, keys, places, g)
    else:
        g.copy(op, places, [g.result_same(op.output)])


def _key_rows(keys: TensorView, g: BatchedGraph) -> int:
    if not g.is_batched(keys):
        return g.same(keys)
    return g.rows(keys) if g.has_rows(keys) else g.stacked(keys)


@rule(Op.HASHTABLE_IMPORT)
def hashtable_import(op: View, g: BatchedGraph) -> None:
    """One table for all samples."""
    g.copy(op, [_handle(op, g), *g.all_same(op.inputs[1:])], [])


@rule(Op.HASHTABLE_SIZE)
def hashtable_size(op: View, g: BatchedGraph) -> None:
    """One table for all samples."""
    g.copy(op, [_handle(op, g)], [g.result_same(op.output)])
