"""The nodes of recurrent cells that were found in a loop: RNN, GRU and LSTM.

T iterations, B batch, K units of the input, N units of the state, G gates.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.cells.directions import stacked_states
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.loops.affine_expressions import Linear
from tflite_ort.opmap.loops.recurrent_cells import Cell
from tflite_ort.opmap.loops.stacked_iterations import Sequences
from tflite_ort.schema import TensorView

Array = npt.NDArray[np.float32]


def run_cell(g: Graph, cell: Cell, sequences: Sequences) -> dict[int, ir.Value]:
    """Make the first state of `cell` known for all iterations; the last states, by their place."""
    state = cell.states[0]
    sources = [sequences.body.tensors[source] for source in cell.sources]
    parts = [sequences.value(source) for source in sources]
    initial = [g.read(each.before) for each in cell.states]
    made = g.op_multi(
        cell.op_type,
        parts[0] if len(parts) == 1 else g.op("Concat", *parts, axis=2),
        *_weights(g, cell, sources),
        None,
        *(stacked_states(g, [each]) for each in initial),
        outputs=1 + len(cell.states),
        hidden_size=state.taken.shape[1],
        activations=list(cell.activations),
        linear_before_reset=int(cell.reset_after) if cell.op_type == "GRU" else None,
    )
    outputs, *last = made
    sequences.set(state.made, g.op("Squeeze", outputs, g.constant([1], np.int64)))
    sequences.follow(state.taken, state.made, initial[0])
    first = g.constant([0], np.int64)
    return {
        each.place: g.op("Squeeze", value, first)
        for each, value in zip(cell.states, last, strict=True)
    }


def _weights(g: Graph, cell: Cell, sources: Sequence[TensorView]) -> list[ir.Value]:
    """[1, G * N, K], [1, G * N, N] and [1, 2 * G * N]: weights, recurrent weights, biases."""
    units = cell.states[0].taken.shape[1]

    def joined(linear: Linear, tensors: Sequence[TensorView]) -> Array:
        blocks = [
            linear.weights.get(t.index, np.zeros((units, t.shape[1]), np.float32)) for t in tensors
        ]
        return np.concatenate(blocks, axis=1)

    def biases(linears: Sequence[Linear]) -> Array:
        return np.concatenate([np.broadcast_to(linear.bias, units) for linear in linears])

    inputs, recurrent = zip(*((gate.input, gate.recurrent) for gate in cell.gates), strict=True)
    own = [cell.states[0].taken]
    return [
        g.constants.add(
            np.concatenate([joined(each, sources) for each in inputs])[None], "weights"
        ),
        g.constants.add(
            np.concatenate([joined(each, own) for each in recurrent])[None], "recurrent_weights"
        ),
        g.constants.add(np.concatenate([biases(inputs), biases(recurrent)])[None], "bias"),
    ]
