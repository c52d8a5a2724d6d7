"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM: T time, B batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.lstm_basic import basic_lstm
from tflite_ort.fallback_kernels.lstm_float import FloatCell
from tflite_ort.fallback_kernels.lstm_integer import IntegerCell
from tflite_ort.fallback_kernels.lstm_narrow import NarrowCell
from tflite_ort.fallback_kernels.lstm_tensors import CellTensors
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    BidirectionalSequenceLSTMOptions,
    LSTMKernelType,
    LSTMOptions,
    Op,
    OperatorView,
    TensorType,
    UnidirectionalSequenceLSTMOptions,
)
from tflite_ort.schema.lstm_inputs import BIDIRECTIONAL_LSTM_INPUTS, LSTM_INPUTS

Array = npt.NDArray[Any]


@kernel(Op.LSTM, versions=(1, 4), inputs=LSTM_INPUTS)
def lstm(op: OperatorView[LSTMOptions], inputs: Inputs, state: State) -> Outputs:
    """One step: input [B, I], output [B, O]."""
    if op.options.kernel_type == LSTMKernelType.BASIC:
        return basic_lstm(op, inputs)
    cell = CellTensors(op, inputs)
    outputs, states = _run(cell, inputs[0][np.newaxis], None)
    return (outputs[0], *states)


@kernel(Op.UNIDIRECTIONAL_SEQUENCE_LSTM, versions=(1, 4), inputs=LSTM_INPUTS)
def unidirectional_sequence_lstm(
    op: OperatorView[UnidirectionalSequenceLSTMOptions], inputs: Inputs, state: State
) -> Outputs:
    """Input [T, B, I] or [B, T, I], output alike."""
    outputs, states = _run(CellTensors(op, inputs), _time_first(op, inputs[0]), None)
    return (_as_input(op, outputs), *states)


@kernel(Op.BIDIRECTIONAL_SEQUENCE_LSTM, versions=(1, 3), inputs=BIDIRECTIONAL_LSTM_INPUTS)
def bidirectional_sequence_lstm(
    op: OperatorView[BidirectionalSequenceLSTMOptions], inputs: Inputs, state: State
) -> Outputs:
    """A forward and a backward cell; an auxiliary input without weights of its own is what the
    backward one reads."""
    forward, backward = CellTensors(op, inputs, "fw_"), CellTensors(op, inputs, "bw_")
    given = inputs[op.names.index("aux_input")]
    x, aux = _time_first(op, inputs[0]), None if given is None else _time_first(op, given)
    source = x
    if aux is not None and forward.tensor("aux_input_to_forget_weights") is None:
        source, aux = aux, None
    there, forward_states = _run(forward, x, aux)
    back, backward_states = _run(backward, source[::-1], None if aux is None else aux[::-1])
    results = [_as_input(op, there), _as_input(op, back[::-1])]
    if op.options.merge_outputs:
        results = [np.concatenate(results, axis=-1)]
    return (*results, *forward_states, *backward_states)


def _time_first(op: OperatorView[Any], x: Array) -> Array:
    """[T, B, ...]."""
    return x if op.options.time_major else np.swapaxes(x, 0, 1)


def _as_input(op: OperatorView[Any], outputs: Array) -> Array:
    """[T, B, O] in the order of the input's axes."""
    return outputs if op.options.time_major else np.ascontiguousarray(np.swapaxes(outputs, 0, 1))


def _run(cell: CellTensors, x: Array, aux: Array | None) -> tuple[Array, list[Array]]:
    """The outputs [T, B, O] of a cell, and its states in the shapes they are kept in."""
    kind: type[FloatCell | IntegerCell | NarrowCell] = FloatCell
    if cell.op["input"].type is TensorType.INT8:
        kind = NarrowCell if len(cell.op.intermediates) == 12 else IntegerCell
    kept = [cell.required("output_state"), cell.required("cell_state")]
    h, c = (state.reshape(x.shape[1], -1) for state in kept)
    outputs, states = kind.of(cell).run(x, aux, (h, c))
    shaped = zip(states, kept, strict=True)
    return outputs, [state.reshape(before.shape) for state, before in shaped]
