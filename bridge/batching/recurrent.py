"""Batch rules of recurrent layers, whose state has a row for each sequence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.batching.registry import rule
from tflite_ort.schema import Op, OperatorView, TensorView, Unbatchable

View = OperatorView[Any]

# The inputs that are sequences, besides the first.
_SEQUENCES = frozenset({"aux_input"})


def _places(op: View, g: BatchedGraph, sequence: dict[int, int]) -> list[int | None]:
    """The inputs: sequences as they are given, states in rows, weights as they are."""
    places: list[int | None] = []
    for tensor in op.inputs:
        if tensor is not None and tensor.index in sequence:
            places.append(sequence[tensor.index])
        elif tensor is not None and tensor.is_variable:
            places.append(g.rows(tensor))
        else:
            places += g.all_same([tensor])
    return places


def _sequences(op: View) -> list[TensorView]:
    found = [op.inputs[0]]
    found += [op.get(name) for name in _SEQUENCES if name in op.names]
    return [tensor for tensor in found if tensor is not None]


@rule(Op.LSTM, Op.RNN, Op.SVDF)
def step(op: View, g: BatchedGraph) -> None:
    """A step of each row; the previous results of a basic LSTM are rows too."""
    sequences = {tensor.index: g.rows(tensor) for tensor in op.inputs[:1] if tensor is not None}
    if op.op is Op.LSTM and len(op.inputs) == _BASIC_INPUTS:
        states = (op.inputs[1], op.inputs[4])
        sequences |= {tensor.index: g.rows(tensor) for tensor in states if tensor is not None}
    places = _places(op, g, sequences)
    g.copy(op, places, [g.result_rows(out) for out in op.outputs])


_BASIC_INPUTS = 5


@rule(Op.UNIDIRECTIONAL_SEQUENCE_LSTM, Op.UNIDIRECTIONAL_SEQUENCE_RNN)
@rule(Op.BIDIRECTIONAL_SEQUENCE_LSTM, Op.BIDIRECTIONAL_SEQUENCE_RNN)
def sequence(op: View, g: BatchedGraph) -> None:
    """Rows of sequences; those of a model that has time first are put sequence first."""
    if not op.options.time_major:
        rows = {tensor.index: g.rows(tensor) for tensor in _sequences(op)}
        g.copy(op, _places(op, g, rows), [g.result_rows(out) for out in op.outputs])
        return
    rows = {tensor.index: _sequence_first(tensor, g) for tensor in _sequences(op)}
    places = _places(op, g, rows)
    made = [g.temporary(out, g.rows_shape(_exchanged(out)), "rows") for out in op.outputs]
    g.copy(op, places, made, replace(op.options, time_major=False))
    for out, place in zip(op.outputs, made, strict=True):
        shape = _exchanged(out)
        split = g.reshaped(place, out, shape, g.stacked_shape(shape))
        g.reshape_place(_times_first(split, out, g), out)


def _exchanged(tensor: TensorView) -> tuple[int, ...]:
    if tensor.rank != 3:
        raise Unbatchable(f"sequences of rank {tensor.rank}")
    return (tensor.shape[1], tensor.shape[0], tensor.shape[2])


def _sequence_first(tensor: TensorView, g: BatchedGraph) -> int:
    """[T, B, I] of each sample as rows [N * B, T, I]."""
    shape = _exchanged(tensor)
    turned = g.permuted(g.stacked(tensor), tensor, (0, 2, 1, 3), g.stacked_shape(shape))
    return g.reshaped(turned, tensor, shape, g.rows_shape(shape))


def _times_first(place: int, tensor: TensorView, g: BatchedGraph) -> int:
    """[N, B, T, O] as [N, T, B, O]."""
    return g.permuted(place, tensor, (0, 2, 1, 3), g.stacked_shape(tensor.shape))
