"""LSTM cells in floats: an LSTM of ONNX where it computes the same, otherwise a Scan of the step.

D directions, B batch, T time, I input, C cells, O outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap.cells.directions import (
    ONNX_ACTIVATIONS,
    direction,
    per_direction,
    recurrent_node,
    stacked_states,
)
from tflite_ort.opmap.cells.lstm_clipped import guarded
from tflite_ort.opmap.cells.lstm_float_run import Result, Run
from tflite_ort.opmap.cells.lstm_float_step import ONNX_GATES, FloatStep
from tflite_ort.opmap.cells.lstm_float_weights import FloatWeights
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.hybrid_products import joined_reals, keeps_codes, sum_of_products
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import ActivationFunctionType
from tflite_ort.schema.values.sizes import has_zero

Array = npt.NDArray[Any]
# TFLite's peepholes in the order of ONNX's.
_ONNX_PEEPHOLES = [0, 2, 1]
# Up to this a clip would cut gates.
_NARROWEST_CLIP = 1


def run_cells(g: Graph, runs: Sequence[Run]) -> list[Result]:
    """Run the cells; one node runs two directions over the same input where that is possible."""
    in_steps = any(_is_in_steps(g, run) for run in runs)
    kinds = {
        (tuple(x.name for x in run.x), cell.size, cell.activation, cell.peephole is None)
        for run, cell in ((run, run.cell) for run in runs)
    }
    if len(kinds) == 1 and not in_steps and not any(run.cell.cell_clip for run in runs):
        return _lstm(g, runs)
    return [_run(g, run, in_steps=in_steps) for run in runs]


def _run(g: Graph, run: Run, *, in_steps: bool) -> Result:
    cell = run.cell
    if run.single:
        return _stepped(g, run)
    if in_steps:
        return _scanned(g, run)
    if not cell.cell_clip or has_zero(run.batch):
        return _lstm(g, [run])[0]
    is_usual = cell.activation is ActivationFunctionType.TANH and cell.peephole is None
    guards = is_usual and not g.target.usual_activations
    if guards and cell.cell_clip >= _NARROWEST_CLIP:
        return _guarded(g, run)
    return _scanned(g, run)


def _is_in_steps(g: Graph, run: Run) -> bool:
    """Whether the ONNX LSTM computes something else, or takes longer for all shapes.

    It reads weights as floats, which are faster in 8 bits. And one step is less work without it.
    """
    if run.single or not run.cell.is_plain:
        return True
    weights = run.cell.recurrent_weights
    return keeps_codes(g, weights, None, single_row=run.single_row, repeated=True)


def _lstm(g: Graph, runs: Sequence[Run]) -> list[Result]:
    """An LSTM node of one direction or of two."""
    sizes = runs[0].batch, runs[0].cell.size
    states = [[run.output_state for run in runs], [run.cell_state for run in runs]]
    stacked = [_stacked(g, values, sizes) for values in states]
    made = _lstm_node(g, runs, _node_weights(g, runs), *stacked)
    return [(y, h, c) for y, h, c in per_direction(g, runs, made)]


def _stacked(g: Graph, states: Sequence[ir.Value], sizes: Sequence[int]) -> ir.Value | None:
    """The states [B, C] of all directions as one; None for zeros, from which a node starts."""
    arrays = [None if each.const_value is None else each.const_value.array for each in states]
    if not has_zero(*sizes) and not any(array is None or array.any() for array in arrays):
        return None
    return stacked_states(g, states, sizes)


def _node_weights(g: Graph, runs: Sequence[Run]) -> Values:
    """Input weights, recurrent weights and biases of an LSTM node."""
    cells = [run.cell for run in runs]
    zeros = np.zeros(4 * cells[0].size, np.float32)
    biases = [np.concatenate([c.bias[ONNX_GATES].reshape(-1), zeros]) for c in cells]
    return [
        _onnx_weights(g, [joined_reals(c.input_weights) for c in cells], "input_weights"),
        _onnx_weights(g, [c.recurrent_weights.reals for c in cells], "recurrent_weights"),
        g.constants.add(np.stack(biases), "bias"),
    ]


def _lstm_node(
    g: Graph, runs: Sequence[Run], weights: Values, h: ir.Value | None, c: ir.Value | None
) -> Values:
    """All outputs [T, D, B, C] and the last ones [D, B, C], from those before."""
    cells = [run.cell for run in runs]
    first = cells[0]
    activation = ONNX_ACTIVATIONS[first.activation]
    activations = None if activation == "Tanh" else ["Sigmoid", activation, activation] * len(runs)
    return recurrent_node(
        g,
        "LSTM",
        _joined(g, runs[0].x),
        weights,
        [h, c],
        _onnx_peepholes(g, cells),
        sizes=(runs[0].batch, first.size),
        hidden_size=first.size,
        direction=direction(runs),
        activations=activations,
    )


def _joined(g: Graph, inputs: Values) -> ir.Value:
    """The inputs [T, B, I] of a cell as one."""
    x, *others = inputs
    return g.op("Concat", x, *others, axis=2) if others else x


def _onnx_weights(g: Graph, arrays: Sequence[Array], name: str) -> ir.Value:
    """Weights [directions, 4 * C, columns], the gates in the order of ONNX."""
    gates = [array.reshape(len(ONNX_GATES), -1, array.shape[1])[ONNX_GATES] for array in arrays]
    rows = [array.reshape(-1, array.shape[2]) for array in gates]
    return g.constants.add(np.stack(rows), name)


def _onnx_peepholes(g: Graph, cells: Sequence[FloatWeights]) -> ir.Value | None:
    arrays = [c.peephole[_ONNX_PEEPHOLES].reshape(-1) for c in cells if c.peephole is not None]
    return g.constants.add(np.stack(arrays), "peephole") if arrays else None


def _guarded(g: Graph, run: Run) -> Result:
    weights = _node_weights(g, [run])

    def scanned(h: ir.Value, c: ir.Value) -> Result:
        started = replace(run, output_state=h, cell_state=c)
        return _scanned(g, started) if g.target.only_runs else _scanned_with(g, started, weights)

    return guarded(g, run, partial(_lstm_node, g, [run], weights), scanned)


def _scanned_with(g: Graph, run: Run, weights: Values) -> Result:
    """As `_scanned`, of the weights of an LSTM node: they are in the file once."""
    cell, (columns, recurrent, _) = run.cell, weights
    products = g.op("MatMul", _joined(g, run.x), g.op("Transpose", columns, perm=[0, 2, 1]))
    sums = g.op("Add", products, g.constant(cell.bias[ONNX_GATES].reshape(-1)))
    step = FloatStep(g, cell, (), single_row=run.single_row, recurrent=recurrent)
    states = run.output_state, run.cell_state
    (h, c), (y,) = scan(g, step, states, (sums,), single=False, reverse=run.reverse)
    return y, h, c


def _scanned(g: Graph, run: Run) -> Result:
    """A Scan of the step; the products with the inputs of all steps are computed before it."""
    cell, states = run.cell, (run.output_state, run.cell_state)
    terms = list(zip(run.x, cell.input_weights, strict=True))
    sums, bias = sum_of_products(g, terms, rounding=cell.rounding), cell.added(g)
    sums = sums if bias is None else g.op("Add", sums, bias)
    step = FloatStep(g, cell, (), single_row=run.single_row)
    (h, c), (y,) = scan(g, step, states, (sums,), single=False, reverse=run.reverse)
    return y, h, c


def _stepped(g: Graph, run: Run) -> Result:
    """One step, without a Scan."""
    step = FloatStep(g, run.cell, run.cell.input_weights, single_row=run.single_row)
    (h, c), (y,) = step((run.output_state, run.cell_state), run.x)
    return y, h, c
