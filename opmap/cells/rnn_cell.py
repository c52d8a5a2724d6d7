"""RNN cells in floats, h = f(W x + R h + b): an RNN of ONNX, or a Scan of the step.

B batch, T time, I input, C cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.cells.directions import (
    ONNX_ACTIVATIONS,
    direction,
    per_direction,
    stacked_states,
)
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.float_activation import activated
from tflite_ort.opmap.idioms.hybrid import Rounding
from tflite_ort.opmap.idioms.hybrid_products import Term, WeightMatrix, keeps_codes, sum_of_products
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import ActivationFunctionType

Array = npt.NDArray[Any]
Result = tuple[ir.Value, ir.Value]  # all outputs [T, B, C] and the last one [B, C]


@record
class RnnRun:
    """An RNN cell with its inputs and its state.

    Args:
        x: the input and an auxiliary input, [T, B, I], or [B, I] for one step.
        state: [B, C].
        weights: [C, I], of every input.
        recurrent_weights: [C, C].
        bias: [C].
        single: there is one step, whose output is [B, C].
        single_row: B is 1.
        reverse: from the last step to the first.
        rounding: of the rows that meet the weights; None for none.
    """

    x: Sequence[ir.Value]
    state: ir.Value
    weights: Sequence[WeightMatrix]
    recurrent_weights: WeightMatrix
    bias: Array
    activation: ActivationFunctionType
    single: bool
    single_row: bool
    reverse: bool = False
    rounding: Rounding | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the ONNX RNN computes the same."""
        return self.activation in ONNX_ACTIVATIONS and self.rounding is None


def run_rnns(g: Graph, runs: Sequence[RnnRun]) -> list[Result]:
    """Run the cells; one node runs two directions over the same input where that is possible."""
    kinds = {(tuple(x.name for x in run.x), len(run.bias), run.activation) for run in runs}
    if len(kinds) == 1 and not any(_is_in_steps(g, run) for run in runs):
        return _rnn(g, runs)
    return [_run(g, run) for run in runs]


def _run(g: Graph, run: RnnRun) -> Result:
    if run.single:
        return _stepped(g, run)
    return _scanned(g, run) if _is_in_steps(g, run) else _rnn(g, [run])[0]


def _is_in_steps(g: Graph, run: RnnRun) -> bool:
    """Whether the ONNX RNN computes something else, or takes longer."""
    if run.single or not run.is_plain:
        return True
    return keeps_codes(g, run.recurrent_weights, None, single_row=run.single_row, repeated=True)


def _stepped(g: Graph, run: RnnRun) -> Result:
    terms = [*zip(run.x, run.weights, strict=True), (run.state, run.recurrent_weights)]
    h = _new_state(g, run, terms, g.constant(run.bias))
    return h, h


def _scanned(g: Graph, run: RnnRun) -> Result:
    terms = list(zip(run.x, run.weights, strict=True))
    sums = g.op("Add", sum_of_products(g, terms, rounding=run.rounding), g.constant(run.bias))

    def step(states: Values, slices: Values) -> tuple[Values, Values]:
        h = _new_state(g, run, [(states[0], run.recurrent_weights)], slices[0])
        return (h,), (h,)

    (h,), (y,) = scan(g, step, (run.state,), (sums,), single=False, reverse=run.reverse)
    return y, h


def _new_state(g: Graph, run: RnnRun, terms: Sequence[Term], added: ir.Value) -> ir.Value:
    rounding, single_row = run.rounding, run.single_row
    sums = sum_of_products(g, terms, rounding=rounding, single_row=single_row, added=added)
    return activated(g, sums, run.activation)


def _rnn(g: Graph, runs: Sequence[RnnRun]) -> list[Result]:
    """An RNN node of one direction or of two."""
    biases = [np.concatenate([run.bias, np.zeros_like(run.bias)]) for run in runs]
    recurrent_weights = np.stack([run.recurrent_weights.reals for run in runs])
    weights = [np.concatenate([each.reals for each in run.weights], axis=1) for run in runs]
    x, *others = runs[0].x
    made = g.op_multi(
        "RNN",
        g.op("Concat", x, *others, axis=2) if others else x,
        g.constants.add(np.stack(weights), "weights"),
        g.constants.add(recurrent_weights, "recurrent_weights"),
        g.constants.add(np.stack(biases), "bias"),
        None,
        stacked_states(g, [run.state for run in runs]),
        outputs=2,
        hidden_size=len(runs[0].bias),
        direction=direction(runs),
        activations=[ONNX_ACTIVATIONS[run.activation] for run in runs],
    )
    return [(y, h) for y, h in per_direction(g, runs, made)]
