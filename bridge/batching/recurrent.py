"""Batch rules of recurrent layers, whose state has a row for each sequence."""

from __future__ import annotations

from typing import Any

from tflite_ort.batching.graph import BatchedGraph
from tflite_ort.batching.registry import rule
from tflite_ort.batching.samples import SEQUENCES
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView, Unbatchable
from tflite_ort.schema.values.sizes import may_differ

View = OperatorView[Any]


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
    found = (op.get(name) for name in op.names if name in SEQUENCES)
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
    """Rows of sequences, of which a model that has time first has a row for each step.

    Raises:
        Unbatchable: LiteRT reads an auxiliary input in strides that depend on the batch.
    """
    if _is_misread(op):
        raise Unbatchable("its auxiliary input is read in strides of the input's width")
    if not op.options.time_major:
        rows = {tensor.index: g.rows(tensor) for tensor in _sequences(op)}
        g.copy(op, _places(op, g, rows), [g.result_rows(out) for out in op.outputs])
        return
    steps = {tensor.index: _of_all(tensor, g) for tensor in _sequences(op)}
    made = [g.temporary(out, _sizes(out, g), "steps") for out in op.outputs]
    g.copy(op, _places(op, g, steps), made)
    for out, place in zip(op.outputs, made, strict=True):
        samples = -1 if g.size is None else g.size
        split = g.reshaped(place, out, out.shape, (out.shape[0], samples, *out.shape[1:]))
        g.reshape_place(g.transposed(split, out, g.stacked_shape(out.shape)), out)


def _is_misread(op: View) -> bool:
    """Whether LiteRT takes an auxiliary input for one of the input's width."""
    if op.op is not Op.BIDIRECTIONAL_SEQUENCE_RNN or op.get("fw_aux_weights") is None:
        return False
    hybrid = op["fw_weights"].type is not TensorType.FLOAT32
    wide = may_differ(op["aux_input"].shape[2:], op["input"].shape[2:])
    return wide and (hybrid or op.options.time_major)


def _sizes(tensor: TensorView, g: BatchedGraph) -> tuple[int, ...]:
    """[T, N * B, I] of sequences [T, B, I]."""
    if tensor.rank != 3:
        raise Unbatchable(f"sequences of rank {tensor.rank}")
    steps, rows, width = tensor.shape
    return (steps, -1 if g.size is None else g.size * rows, width)


def _of_all(tensor: TensorView, g: BatchedGraph) -> int:
    """[T, B, I] of each sample as [T, N * B, I]."""
    sizes, (steps, *others) = _sizes(tensor, g), tensor.shape
    whole = (steps, -1 if g.size is None else g.size, *others)
    turned = g.transposed(g.stacked(tensor), tensor, whole)
    return g.reshaped(turned, tensor, tensor.shape, sizes)
