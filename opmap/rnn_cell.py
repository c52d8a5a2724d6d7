"""RNN cells in floats: h = f(W x + R h + b), the ONNX RNN or a Scan of the step.

B batch, T time, I input, C cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.hybrid import Rounding
from tflite_ort.opmap.recurrent_activation import ONNX_ACTIVATIONS, activated
from tflite_ort.opmap.scan import Values, scan
from tflite_ort.schema import ActivationFunctionType

Array = npt.NDArray[Any]


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


def run_rnn(g: Graph, run: RnnRun) -> tuple[ir.Value, ir.Value]:
    """All outputs [T, B, C] and the last one [B, C]."""
    if run.activation in ONNX_ACTIVATIONS and not run.single and run.rounding is None:
        return _rnn(g, run)
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


def _rnn(g: Graph, run: RnnRun) -> tuple[ir.Value, ir.Value]:
    bias = np.concatenate([run.bias, np.zeros_like(run.bias)])
    first = g.constant([0], np.int64)
    y, h = g.op_multi(
        "RNN",
        run.x,
        g.constants.add(run.weights[np.newaxis], "weights"),
        g.constants.add(run.recurrent_weights[np.newaxis], "recurrent_weights"),
        g.constants.add(bias[np.newaxis], "bias"),
        None,
        g.op("Unsqueeze", run.state, first),
        outputs=2,
        hidden_size=len(run.bias),
        direction="reverse" if run.reverse else None,
        activations=[ONNX_ACTIVATIONS[run.activation]],
    )
    return g.op("Squeeze", y, g.constant([1], np.int64)), g.op("Squeeze", h, first)
