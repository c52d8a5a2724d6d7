"""The RNN, GRU and LSTM nodes of recurrent cells.

T iterations, B batch, K units of the input, N units of the state, G gates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.cells.directions import recurrent_node, stacked_states
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.loops.affine_expressions import Affine
from tflite_ort.opmap.loops.loop_carried import LoopCarried
from tflite_ort.opmap.loops.recurrent_cells import Cell
from tflite_ort.opmap.loops.stacked_iterations import Sequences
from tflite_ort.opmap.onnx_graph import ir

Array = npt.NDArray[np.float32]


def run_cell(g: Graph, cell: Cell, sequences: Sequences) -> dict[int, ir.Value]:
    """Add the node of `cell`: its output in all iterations becomes known. Returns the final values
    of its states, by their place among the inputs of WHILE."""
    output, *_ = states = [state for state in cell.states if isinstance(state, LoopCarried)]
    batch, units = output.argument.shape
    sources = [sequences.body.tensors[source] for source in cell.sources]
    parts = [
        sequences.value(source)
        if source.rank == 2
        else g.reshape(sequences.value(source), (-1, batch, source.shape[-1]))
        for source in sources
    ]
    joined = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=2)
    initial = [g.read(state.initial) for state in states]
    stacked = [
        None if all(map(_are_zeros, initial)) else stacked_states(g, [value], (batch, units))
        for value in initial
    ]
    outputs, *finals = cell_node(g, cell, joined, stacked, batch, steps=sequences.loop.trip_count)
    first = g.ints([0])
    last = {
        state.place: g.op("Squeeze", value, first)
        for state, value in zip(states, finals, strict=True)
    }
    sequences.set(output.result, g.op("Squeeze", outputs, g.ints([1])), last[output.place])
    sequences.delay(output.argument, output.result, initial[0])
    return last


def _are_zeros(value: ir.Value) -> bool:
    """Whether a state begins with zeros: a node has these where it is given none."""
    while (maker := value.producer()) is not None and maker.op_type == "Expand":
        if maker.inputs[0] is None:
            break
        value = maker.inputs[0]
    constant = value.const_value
    return constant is not None and not constant.array.any()


def cell_node(
    g: Graph,
    cell: Cell,
    x: ir.Value,
    initial: Sequence[ir.Value | None],
    batch: int,
    direction: str | None = None,
    *,
    steps: int | None = None,
) -> Sequence[ir.Value]:
    """All outputs [T, 1, B, N] of `cell` and the last of each state [1, B, N].

    Args:
        x: the sequences of its sources side by side, [T, B, K].
        initial: of each state, [1, B, N]; None for zeros.
        direction: that of the node; None for forward.
        steps: T, where it is known.
    """
    weights = _weights(cell)
    units, columns = cell.states[0].argument.shape[-1], weights[0].shape[2]
    return recurrent_node(
        g,
        cell.op_type,
        x,
        [g.constants.add(each, name) for each, name in zip(weights, _NAMES, strict=True)],
        initial,
        sizes=(batch, units, columns),
        sequence=() if steps is None else (steps, columns),
        hidden_size=units,
        activations=list(cell.activations),
        activation_alpha=_parameters(cell, _SLOPES),
        activation_beta=_parameters(cell, _OFFSETS),
        linear_before_reset=1 if cell.op_type == "GRU" and cell.reset_after else None,
        direction=direction,
    )


_NAMES = ("weights", "recurrent_weights", "bias")
# Of activations that have them: ONNX Runtime has no default for Affine.
_SLOPES = {"HardSigmoid": 0.2, "Affine": 1.0}
_OFFSETS = {"HardSigmoid": 0.5, "Affine": 0.0}


def _parameters(cell: Cell, values: Mapping[str, float]) -> list[float] | None:
    """The parameters of a cell's activations; None if all are the defaults."""
    if "Affine" not in cell.activations:
        return None
    return [values[each] for each in cell.activations if each in values]


def _weights(cell: Cell) -> Sequence[Array]:
    """[1, G * N, K], [1, G * N, N] and [1, 2 * G * N]: weights, recurrent weights, biases."""
    own = cell.states[0].argument
    units = own.shape[-1]
    widths = {
        source: matrix.shape[1]
        for gate in cell.gates
        for source, matrix in gate.input.weights.items()
    }

    def joined(affine: Affine, widths: Mapping[int, int]) -> Array:
        blocks = [
            affine.weights.get(source, np.zeros((units, width), np.float32))
            for source, width in widths.items()
        ]
        return np.concatenate(blocks, axis=1)

    def biases(terms: Sequence[Affine]) -> Array:
        return np.concatenate([np.broadcast_to(affine.bias, units) for affine in terms])

    inputs, recurrent = zip(*((gate.input, gate.recurrent) for gate in cell.gates), strict=True)
    return (
        np.concatenate([joined(term, widths) for term in inputs])[None],
        np.concatenate([joined(term, {own.index: units}) for term in recurrent])[None],
        np.concatenate([biases(inputs), biases(recurrent)])[None],
    )
