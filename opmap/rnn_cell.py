"""RNN cells in floats: h = f(W x + R h + b), the ONNX RNN or a Scan of the step.

B batch, T time, I input, C cells.
"""

from __future__ import annotations

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
from tflite_ort.opmap.hybrid import Rounding
from tflite_ort.opmap.recurrent_activation import activated
from tflite_ort.opmap.scan import Values, scan
from tflite_ort.schema import ActivationFunctionType

Array = npt.NDArray[Any]
Result = tuple[ir.Value, ir.Value]  # all outputs [T, B, C] and the last one [B, C]


@dataclass(frozen=True, slots=True)
class RnnRun:
    """An RNN cell and what it is run on.

    Args:
        x: [T, B, I].
        state: [B, C].
        weights: [C, I]; the columns of an auxiliary input stand behind.
        recurrent_weights: [C, C].
        bias: [C].
        single: T is 1.
        rounding: of the state, before it meets the weights; None for none.
    """

    x: ir.Value
    state: ir.Value
    weights: Array
    recurrent_weights: Array
    bias: Array
    activation: ActivationFunctionType
    single: bool
    reverse: bool = False
    rounding: Rounding | None = None

    @property
    def is_plain(self) -> bool:
        """Whether the ONNX RNN says the same; one step is less work without it."""
        return self.activation in ONNX_ACTIVATIONS and not self.single and self.rounding is None


def run_rnns(g: Graph, runs: Sequence[RnnRun]) -> list[Result]:
    """Each of `runs`; two directions over the same input are one node if nothing forbids it."""
    together = len({(run.x.name, len(run.bias), run.activation) for run in runs}) == 1
    if together and all(run.is_plain for run in runs):
        return _rnn(g, runs)
    return [_rnn(g, [run])[0] if run.is_plain else _scanned(g, run) for run in runs]


def _scanned(g: Graph, run: RnnRun) -> Result:
    sums = g.op("MatMul", run.x, g.constants.add(run.weights.T, "weights"))
    sums = g.op("Add", sums, g.constant(run.bias))
    recurrent_weights = g.constants.add(run.recurrent_weights.T, "recurrent_weights")

    def step(states: Values, slices: Values) -> tuple[Values, Values]:
        (h,) = states if run.rounding is None else map(run.rounding, states)
        h = g.op("Gemm", h, recurrent_weights, *slices)
        h = activated(g, h, run.activation)
        return (h,), (h,)

    (h,), (y,) = scan(g, step, (run.state,), (sums,), single=run.single, reverse=run.reverse)
    return y, h


def _rnn(g: Graph, runs: Sequence[RnnRun]) -> list[Result]:
    """RNN of one direction or of two."""
    biases = [np.concatenate([run.bias, np.zeros_like(run.bias)]) for run in runs]
    recurrent_weights = np.stack([run.recurrent_weights for run in runs])
    made = g.op_multi(
        "RNN",
        runs[0].x,
        g.constants.add(np.stack([run.weights for run in runs]), "weights"),
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
