"""The RNN, GRU and LSTM nodes of recurrent cells in a WHILE.

T iterations, B batch, K units of the input, N units of the state, G gates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.cells.directions import recurrent_node, stacked_states
from tflite_ort.opmap.graph import Graph, ir
from tflite_ort.opmap.loops.affine_expressions import Affine
from tflite_ort.opmap.loops.recurrent_cells import Cell
from tflite_ort.opmap.loops.stacked_iterations import Sequences
from tflite_ort.schema import TensorView

Array = npt.NDArray[np.float32]


def run_cell(g: Graph, cell: Cell, sequences: Sequences) -> dict[int, ir.Value]:
    """Add the node of `cell`: its output in all iterations becomes known. Returns the final values
    of its states, by their place among the inputs of WHILE."""
    output = cell.states[0]
    sources = [sequences.body.tensors[source] for source in cell.sources]
    parts = [sequences.value(source) for source in sources]
    initial = [g.read(state.initial) for state in cell.states]
    joined = parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=2)
    sizes = (*output.argument.shape, sum(source.shape[1] for source in sources))
    outputs, *finals = recurrent_node(
        g,
        cell.op_type,
        joined,
        _weights(g, cell, sources),
        [stacked_states(g, [value], sizes[:2]) for value in initial],
        sizes=sizes,
        hidden_size=output.argument.shape[1],
        activations=list(cell.activations),
        linear_before_reset=int(cell.reset_after) if cell.op_type == "GRU" else None,
    )
    sequences.set(output.result, g.op("Squeeze", outputs, g.ints([1])))
    sequences.delay(output.argument, output.result, initial[0])
    first = g.ints([0])
    return {
        state.place: g.op("Squeeze", value, first)
        for state, value in zip(cell.states, finals, strict=True)
    }


def _weights(g: Graph, cell: Cell, sources: Sequence[TensorView]) -> list[ir.Value]:
    """[1, G * N, K], [1, G * N, N] and [1, 2 * G * N]: weights, recurrent weights, biases."""
    units = cell.states[0].argument.shape[1]

    def joined(affine: Affine, tensors: Sequence[TensorView]) -> Array:
        blocks = [
            affine.weights.get(t.index, np.zeros((units, t.shape[1]), np.float32)) for t in tensors
        ]
        return np.concatenate(blocks, axis=1)

    def biases(terms: Sequence[Affine]) -> Array:
        return np.concatenate([np.broadcast_to(affine.bias, units) for affine in terms])

    inputs, recurrent = zip(*((gate.input, gate.recurrent) for gate in cell.gates), strict=True)
    own = [cell.states[0].argument]
    return [
        g.constants.add(
            np.concatenate([joined(term, sources) for term in inputs])[None], "weights"
        ),
        g.constants.add(
            np.concatenate([joined(term, own) for term in recurrent])[None], "recurrent_weights"
        ),
        g.constants.add(np.concatenate([biases(inputs), biases(recurrent)])[None], "bias"),
    ]
