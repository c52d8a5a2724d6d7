"""LSTM cells in floats: an LSTM of ONNX where it computes the same, otherwise a Scan of the step.

B batch, T time, I input, C cells, O outputs. TFLite can clip the cell state. The ONNX LSTM cannot:
its `clip` is for the sums of the gates. With a clip, an If takes the results of the LSTM as long as
the state stayed within the clip. The outputs show that, since an output is the output gate times
the tanh of the state. Where they are too near to 1 to show it, the states are computed once more,
with the clip.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.cells.directions import (
    ONNX_ACTIVATIONS,
    direction,
    per_direction,
    recurrent_node,
    stacked_states,
)
from tflite_ort.opmap.cells.lstm_float_step import OUTPUT, FloatStep
from tflite_ort.opmap.cells.lstm_float_weights import FloatWeights
from tflite_ort.opmap.graph import Graph, ir
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.hybrid_products import WeightMatrix, keeps_codes, sum_of_products
from tflite_ort.opmap.idioms.scan import scan
from tflite_ort.records import record
from tflite_ort.schema import ActivationFunctionType
from tflite_ort.schema.values.sizes import has_zero, is_known, is_one

Array = npt.NDArray[Any]
Result = tuple[ir.Value, ir.Value, ir.Value]  # outputs [T, B, O], last output and cell state

# TFLite's gates and peepholes in the order of ONNX's.
_ONNX_GATES = [0, 3, 1, 2]
_ONNX_PEEPHOLES = [0, 2, 1]
# The error of a recomputed output gate is less; tanh(6.1) is as near to 1.
_MARGIN = 1e-5
# Outputs as near as this lead to the same gates.
_SAME = 5e-6
# Up to this a clip would cut gates.
_NARROWEST_CLIP = 1


@record
class Run:
    """A cell with its inputs and its states.

    Args:
        x: the inputs of the cell, [T, B, I], or [B, I] for one step.
        output_state: [B, O].
        cell_state: [B, C].
        single: there is one step, whose output is [B, O].
        batch: B.
        steps: T.
        reverse: from the last step to the first.
    """

    cell: FloatWeights
    x: Sequence[ir.Value]
    output_state: ir.Value
    cell_state: ir.Value
    single: bool
    batch: int
    steps: int = 1
    reverse: bool = False

    @property
    def single_row(self) -> bool:
        """Whether B is known to be 1."""
        return is_one(self.batch)


def cell_lowerings(
    g: Graph, runs: Sequence[Run], write: Callable[[Sequence[Result]], None]
) -> list[Lowering]:
    """The cells as LSTM of ONNX, and as Scan of the step, where both compute the same.

    Args:
        write: takes the results of all runs.
    """

    def build(*, in_steps: bool) -> None:
        write(_run_cells(g, runs, in_steps=in_steps))

    first = runs[0]
    in_steps = any(_is_in_steps(g, run) for run in runs)
    if in_steps or not (g.target.cpu_kernels and is_known(first.steps, first.batch)):
        return [Lowering("steps" if in_steps else "lstm", {}, partial(build, in_steps=in_steps))]
    steps = float(first.steps * len(runs))
    weights = 4 * first.cell.size * sum(matrix.codes.shape[1] for matrix in _matrices(first.cell))
    scan = {"Scan": 1.0, "Scan steps": steps, "Scan products": steps * weights}
    scan["Scan cells"] = steps * first.cell.size
    lstm = {what.replace("Scan", "LSTM"): amount for what, amount in scan.items()}
    if any(run.cell.cell_clip for run in runs):
        lstm = {what.replace("LSTM", "Clipped LSTM"): amount for what, amount in lstm.items()}
    return [
        Lowering("lstm", lstm, partial(build, in_steps=False)),
        Lowering("steps", scan, partial(build, in_steps=True)),
    ]


def _run_cells(g: Graph, runs: Sequence[Run], *, in_steps: bool) -> list[Result]:
    """Run the cells; one node runs two directions over the same input where that is possible."""
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
    if in_steps or _is_in_steps(g, run):
        return _scanned(g, run)
    if not cell.cell_clip or has_zero(run.batch):
        return _lstm(g, [run])[0]
    is_usual = cell.activation is ActivationFunctionType.TANH and cell.peephole is None
    if is_usual and cell.cell_clip >= _NARROWEST_CLIP:
        return _guarded(g, run)
    return _scanned(g, run)


def _is_in_steps(g: Graph, run: Run) -> bool:
    """Whether the ONNX LSTM computes something else, or takes longer for all shapes.

    One step is less work without it. And it reads weights as floats, which are faster in 8 bits.
    """
    cell = run.cell
    if run.single or not cell.is_plain:
        return True
    return keeps_codes(g, cell.recurrent_weights, None, single_row=run.single_row, repeated=True)


def _lstm(g: Graph, runs: Sequence[Run]) -> list[Result]:
    """An LSTM node of one direction or of two."""
    cells = [run.cell for run in runs]
    first = cells[0]
    zeros = np.zeros(4 * first.size, np.float32)
    biases = [np.concatenate([c.bias[_ONNX_GATES].reshape(-1), zeros]) for c in cells]
    activation = ONNX_ACTIVATIONS[first.activation]
    activations = None if activation == "Tanh" else ["Sigmoid", activation, activation] * len(runs)
    x, *others = runs[0].x
    x = g.op("Concat", x, *others, axis=2) if others else x
    recurrent_weights = [c.recurrent_weights.reals for c in cells]
    made = recurrent_node(
        g,
        "LSTM",
        x,
        [
            _onnx_weights(g, [_joined(c.input_weights) for c in cells], "input_weights"),
            _onnx_weights(g, recurrent_weights, "recurrent_weights"),
            g.constants.add(np.stack(biases), "bias"),
        ],
        [
            stacked_states(g, [run.output_state for run in runs]),
            stacked_states(g, [run.cell_state for run in runs]),
        ],
        _onnx_peepholes(g, cells),
        sizes=(runs[0].batch, first.size),
        hidden_size=first.size,
        direction=direction(runs),
        activations=activations,
    )
    return [(y, h, c) for y, h, c in per_direction(g, runs, made)]


def _onnx_weights(g: Graph, arrays: Sequence[Array], name: str) -> ir.Value:
    """Weights [directions, 4 * C, columns], the gates in the order of ONNX."""
    gates = [array.reshape(len(_ONNX_GATES), -1, array.shape[1])[_ONNX_GATES] for array in arrays]
    rows = [array.reshape(-1, array.shape[2]) for array in gates]
    return g.constants.add(np.stack(rows), name)


def _joined(parts: Sequence[WeightMatrix]) -> Array:
    """[rows, columns of all parts]."""
    return np.concatenate([part.reals for part in parts], axis=1)


def _onnx_peepholes(g: Graph, cells: Sequence[FloatWeights]) -> ir.Value | None:
    arrays = [c.peephole[_ONNX_PEEPHOLES].reshape(-1) for c in cells if c.peephole is not None]
    return g.constants.add(np.stack(arrays), "peephole") if arrays else None


def _guarded(g: Graph, run: Run) -> Result:
    """The results of the LSTM if the cell state stayed within its clip; else the same outputs with
    clipped states, if these give the same outputs; else those of the Scan."""
    results = _lstm(g, [run])[0]

    def recomputed() -> Sequence[ir.Value]:
        clipped, is_same = _clipped(g, run, results[0])
        return _either(g, is_same, clipped, lambda: _scanned(g, run))

    y, h, c = _either(g, _outputs_stay_inside(g, run, results[0]), results, recomputed)
    return y, h, c


def _either(
    g: Graph, inside: ir.Value, results: Result, other: Callable[[], Sequence[ir.Value]]
) -> Sequence[ir.Value]:
    return g.op_multi(
        "If",
        inside,
        outputs=len(results),
        then_branch=g.body([], lambda _: [g.op("Identity", value) for value in results]),
        else_branch=g.body([], lambda _: other()),
    )


def _outputs_stay_inside(g: Graph, run: Run, y: ir.Value) -> ir.Value:
    """Whether |y| = output gate * tanh|c| is below output gate * tanh(clip) everywhere."""
    cell = run.cell
    rows = [WeightMatrix(matrix.reals[OUTPUT * cell.size :]) for matrix in _matrices(cell)]
    sums = sum_of_products(g, list(zip((*run.x, _before(g, run, y)), rows, strict=True)))
    sums = g.op("Add", sums, g.constant(cell.bias[OUTPUT]))
    limit = np.float32(math.tanh(cell.cell_clip) - _MARGIN)
    most = g.op("Mul", g.op("Sigmoid", sums), g.constant(limit))
    excess = g.op("ReduceMax", g.op("Sub", g.op("Abs", y), most), keepdims=0)
    return g.op("Less", excess, g.constant(np.float32(-_MARGIN / 10)))


def _clipped(g: Graph, run: Run, y: ir.Value) -> tuple[Result, ir.Value]:
    """The results for the gates that the outputs `y` lead to, and whether the outputs are the same.

    The gates of a step see the output of the step before, and no cell state. So where the clipped
    states give the outputs again, step by step, these are the ones that the Scan would find.
    """
    cell = run.cell
    rows = [WeightMatrix(matrix.reals) for matrix in _matrices(cell)]
    sums = sum_of_products(g, list(zip((*run.x, _before(g, run, y)), rows, strict=True)))
    sums = g.op("Add", sums, g.constant(cell.bias.reshape(-1)))
    admit, forget, update, shown = g.op_multi("Split", sums, outputs=4, axis=2, num_outputs=4)
    added = g.op("Mul", g.op("Sigmoid", admit), g.op("Tanh", update))
    states, last = _clipped_states(g, run, g.op("Sigmoid", forget), added)
    again = g.op("Mul", g.op("Sigmoid", shown), g.op("Tanh", states))
    most = g.op("ReduceMax", g.op("Abs", g.op("Sub", again, y)), keepdims=0)
    is_same = g.op("Less", most, g.constant(np.float32(_SAME)))
    end = g.ints(0 if run.reverse else -1)
    return (again, g.op("Gather", again, end, axis=0), last), is_same


def _clipped_states(
    g: Graph, run: Run, forget: ir.Value, added: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """All states c = clip(forget * c + added), [T, B, C], and the last one [B, C]: by a GRU.

    A GRU makes (1 - z) * n + z * c, with n the activation of reset * c @ R and what it is given.
    Here z is 0, R the identity, `reset` is `forget` as it is, and no activation is left but that
    the sum is clipped. The clip is for the gates too, which are at most 1.
    """
    size = run.cell.size
    one, nothing = np.eye(size, dtype=np.float32), np.zeros((size, size), np.float32)
    given = np.block([[nothing, nothing], [one, nothing], [nothing, one]])[np.newaxis]
    recurrent = np.concatenate([nothing, nothing, one])[np.newaxis]
    made = recurrent_node(
        g,
        "GRU",
        g.op("Concat", forget, added, axis=2),
        [g.constants.add(given, "pass"), g.constants.add(recurrent, "keep"), None],
        [stacked_states(g, [run.cell_state])],
        sizes=(run.batch, size, 2 * size),
        hidden_size=size,
        direction=direction([run]),
        clip=float(run.cell.cell_clip),
        activations=["Affine", "Affine"],
        activation_alpha=[1.0, 1.0],
        activation_beta=[0.0, 0.0],
    )
    ((states, last),) = per_direction(g, [run], made)
    return states, last


def _matrices(cell: FloatWeights) -> Sequence[WeightMatrix]:
    return (*cell.input_weights, cell.recurrent_weights)


def _before(g: Graph, run: Run, y: ir.Value) -> ir.Value:
    """The output [T, B, O] that each step begins with."""
    first = g.op("Unsqueeze", run.output_state, g.ints([0]))
    start, end = (1, np.iinfo(np.int64).max) if run.reverse else (0, -1)
    bounds = (g.ints([bound]) for bound in (start, end, 0))
    others = g.op("Slice", y, *bounds)
    return g.op("Concat", *((others, first) if run.reverse else (first, others)), axis=0)


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
