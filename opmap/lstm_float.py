"""LSTM cells in floats: the ONNX LSTM where it says the same, a Scan of the step where not.

B batch, T time, I input, C cells, O outputs. TFLite clips the cell state, the ONNX LSTM does not
(its `clip` is of the gates' sums). Where a clip is given, the LSTM is taken if nothing came near
it, which its own outputs show: an output is the output gate times the tanh of the state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.directions import (
    ONNX_ACTIVATIONS,
    direction,
    per_direction,
    stacked_states,
)
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.lstm_cell import Cell
from tflite_ort.opmap.lstm_step import OUTPUT, LstmStep, clipped, times
from tflite_ort.opmap.scan import scan
from tflite_ort.schema import ActivationFunctionType

Array = npt.NDArray[Any]
Result = tuple[ir.Value, ir.Value, ir.Value]  # outputs [T, B, O], last output and cell state

# TFLite's gates and peepholes in the order of ONNX's.
_ONNX_GATES = [0, 3, 1, 2]
_ONNX_PEEPHOLES = [0, 2, 1]
# What the recomputed output gate may be wrong by; tanh(6.1) is as near to 1.
_MARGIN = 1e-5


@dataclass(frozen=True, slots=True)
class Run:
    """A cell and what it is run on.

    Args:
        x: [T, B, I].
        output_state: [B, O].
        cell_state: [B, C].
        single: T is 1.
    """

    cell: Cell
    x: ir.Value
    output_state: ir.Value
    cell_state: ir.Value
    single: bool
    reverse: bool = False


def run_cells(g: Graph, runs: Sequence[Run]) -> list[Result]:
    """Each of `runs`; two directions over the same input are one node if nothing forbids it."""
    cells = [run.cell for run in runs]
    together = len({(run.x.name, run.cell.size, run.cell.activation) for run in runs}) == 1
    peepholes = {cell.peephole is None for cell in cells}
    if together and len(peepholes) == 1 and all(c.is_plain and not c.cell_clip for c in cells):
        return _lstm(g, runs)
    return [_run(g, run) for run in runs]


def _run(g: Graph, run: Run) -> Result:
    cell = run.cell
    if not cell.is_plain:
        return _scanned(g, run)
    if not cell.cell_clip:
        return _lstm(g, [run])[0]
    if cell.activation is not ActivationFunctionType.TANH or cell.peephole is not None:
        return _scanned(g, run)
    if not run.single:
        return _guarded(g, run)
    if np.tanh(np.float32(cell.cell_clip)) < 1:
        return _scanned(g, run)
    y, h, c = _lstm(g, [run])[0]  # the tanh is 1 where the clip acts
    return y, h, clipped(g, c, cell.cell_clip)


def _lstm(g: Graph, runs: Sequence[Run]) -> list[Result]:
    """LSTM of one direction or of two."""
    cells = [run.cell for run in runs]
    first = cells[0]
    zeros = np.zeros(4 * first.size, np.float32)
    biases = [np.concatenate([c.bias[_ONNX_GATES].reshape(-1), zeros]) for c in cells]
    activation = ONNX_ACTIVATIONS[first.activation]
    activations = None if activation == "Tanh" else ["Sigmoid", activation, activation] * len(runs)
    made = g.op_multi(
        "LSTM",
        runs[0].x,
        _onnx_weights(g, [c.input_weights for c in cells], "input_weights"),
        _onnx_weights(g, [c.recurrent_weights for c in cells], "recurrent_weights"),
        g.constants.add(np.stack(biases), "bias"),
        None,
        stacked_states(g, [run.output_state for run in runs]),
        stacked_states(g, [run.cell_state for run in runs]),
        _onnx_peepholes(g, cells),
        outputs=3,
        hidden_size=first.size,
        direction=direction(runs),
        activations=activations,
    )
    return [(y, h, c) for y, h, c in per_direction(g, runs, made)]


def _onnx_weights(g: Graph, arrays: Sequence[Array], name: str) -> ir.Value:
    """[directions, 4 * C, columns], the gates in ONNX's order."""
    rows = [array[_ONNX_GATES].reshape(-1, array.shape[2]) for array in arrays]
    return g.constants.add(np.stack(rows), name)


def _onnx_peepholes(g: Graph, cells: Sequence[Cell]) -> ir.Value | None:
    arrays = [c.peephole[_ONNX_PEEPHOLES].reshape(-1) for c in cells if c.peephole is not None]
    return g.constants.add(np.stack(arrays), "peephole") if arrays else None


def _guarded(g: Graph, run: Run) -> Result:
    """The LSTM's results where the cell state stayed inside its clip, else those of the Scan."""
    results = _lstm(g, [run])[0]
    y, h, c = g.op_multi(
        "If",
        _stayed_inside(g, run, results[0]),
        outputs=3,
        then_branch=g.body([], lambda _: [g.op("Identity", value) for value in results]),
        else_branch=g.body([], lambda _: _scanned(g, run)),
    )
    return y, h, c


def _stayed_inside(g: Graph, run: Run, y: ir.Value) -> ir.Value:
    """Whether |y| = output gate * tanh|c| is below output gate * tanh(clip) everywhere."""
    cell = run.cell
    first = g.op("Unsqueeze", run.output_state, g.constant([0], np.int64))
    start, end = (1, np.iinfo(np.int64).max) if run.reverse else (0, -1)
    bounds = (g.constant([bound], np.int64) for bound in (start, end, 0))
    others = g.op("Slice", y, *bounds)
    before = g.op("Concat", *((others, first) if run.reverse else (first, others)), axis=0)
    sums = g.op("Add", times(g, run.x, cell.input_weights[OUTPUT]), g.constant(cell.bias[OUTPUT]))
    sums = g.op("Add", sums, times(g, before, cell.recurrent_weights[OUTPUT]))
    limit = np.float32(math.tanh(cell.cell_clip) - _MARGIN)
    most = g.op("Mul", g.op("Sigmoid", sums), g.constant(limit))
    excess = g.op("ReduceMax", g.op("Sub", g.op("Abs", y), most), keepdims=0)
    return g.op("Less", excess, g.constant(np.float32(-_MARGIN / 10)))


def _scanned(g: Graph, run: Run) -> Result:
    """Scan of the step; what the input adds to the gates' sums is computed beforehand."""
    cell = run.cell
    sums = times(g, run.x, cell.input_weights.reshape(4 * cell.size, -1))
    if cell.norm is None:
        sums = g.op("Add", sums, g.constant(cell.bias.reshape(-1)))
    step = LstmStep(g, cell)
    states = (run.output_state, run.cell_state)
    (h, c), (y,) = scan(g, step, states, (sums,), single=run.single, reverse=run.reverse)
    return y, h, c
