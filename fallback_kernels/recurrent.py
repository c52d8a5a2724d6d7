"""LSTM, UNIDIRECTIONAL_SEQUENCE_LSTM and BIDIRECTIONAL_SEQUENCE_LSTM: T time, B batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.cells.lstm_basic import basic_lstm
from tflite_ort.fallback_kernels.cells.lstm_float import FloatCell
from tflite_ort.fallback_kernels.cells.lstm_integer import IntegerCell
from tflite_ort.fallback_kernels.cells.lstm_narrow import NarrowCell
from tflite_ort.fallback_kernels.cells.lstm_tensors import (
    CellTensors,
    as_input,
    time_first,
    variables,
)
from tflite_ort.fallback_kernels.cells.lstm_unactivated import UnactivatedCell
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    ActivationFunctionType,
    BidirectionalSequenceLSTMOptions,
    LSTMKernelType,
    LSTMOptions,
    Op,
    OperatorView,
    TensorType,
    UnidirectionalSequenceLSTMOptions,
)
from tflite_ort.schema.values.lstm_inputs import BIDIRECTIONAL_LSTM_INPUTS, LSTM_INPUTS

Array = npt.NDArray[Any]
Cell = FloatCell | IntegerCell | NarrowCell
Cells = dict[str, Cell]  # by the prefix of their tensors


def _cells(op: OperatorView[Any]) -> Cells:
    """Cells whose weights are constants are made once: none at first."""
    return {}


@kernel(Op.LSTM, versions=(1, 4), inputs=LSTM_INPUTS, state=_cells)
def lstm(op: OperatorView[LSTMOptions], inputs: Inputs, state: State) -> Outputs:
    """One step: input [B, I], output [B, O]."""
    if op.options.kernel_type == LSTMKernelType.BASIC:
        return basic_lstm(op, inputs)
    outputs, states = _run(CellTensors(op, inputs), inputs[0][np.newaxis], None, state)
    return (outputs[0], *variables(op, inputs, states))


@kernel(Op.UNIDIRECTIONAL_SEQUENCE_LSTM, versions=(1, 4), inputs=LSTM_INPUTS, state=_cells)
def unidirectional_sequence_lstm(
    op: OperatorView[UnidirectionalSequenceLSTMOptions], inputs: Inputs, state: State
) -> Outputs:
    """Input [T, B, I] or [B, T, I], output alike."""
    cell = CellTensors(op, inputs)
    outputs, states = _run(cell, time_first(op, inputs[0]), None, state)
    return (as_input(op, outputs), *variables(op, inputs, states))


@kernel(
    Op.BIDIRECTIONAL_SEQUENCE_LSTM,
    versions=(1, 3),
    inputs=BIDIRECTIONAL_LSTM_INPUTS,
    state=_cells,
)
def bidirectional_sequence_lstm(
    op: OperatorView[BidirectionalSequenceLSTMOptions], inputs: Inputs, state: State
) -> Outputs:
    """A forward and a backward cell; an auxiliary input without weights of its own is what the
    backward one reads."""
    forward, backward = CellTensors(op, inputs, "fw_"), CellTensors(op, inputs, "bw_")
    given = inputs[op.names.index("aux_input")]
    x, aux = time_first(op, inputs[0]), None if given is None else time_first(op, given)
    source = x
    if aux is not None and forward.tensor("aux_input_to_forget_weights") is None:
        source, aux = aux, None
    there, forward_states = _run(forward, x, aux, state)
    aux = None if aux is None else aux[::-1]
    back, backward_states = _run(backward, source[::-1], aux, state)
    results = [as_input(op, there), as_input(op, back[::-1])]
    if op.options.merge_outputs:
        results = [np.concatenate(results, axis=-1)]
    return (*results, *variables(op, inputs, {**forward_states, **backward_states}))


def _run(
    tensors: CellTensors, x: Array, aux: Array | None, made: Cells
) -> tuple[Array, dict[int, Array]]:
    """The outputs [T, B, O] of a cell, and its states by their places among the inputs."""
    names = ("output_state", "cell_state")
    kept = [tensors.required(name) for name in names]
    h, c = (a.reshape(x.shape[1], n) for a, n in zip(kept, tensors.sizes, strict=True))
    cell = made.get(tensors.prefix)
    if cell is None:
        cell = _kind(tensors.op).of(tensors)
        if tensors.constant:
            made[tensors.prefix] = cell
    outputs, states = cell.run(x, aux, (h, c))
    return outputs, {
        tensors.place(name): state.reshape(before.shape)
        for name, state, before in zip(names, states, kept, strict=True)
    }


def _kind(op: OperatorView[Any]) -> type[Cell]:
    if op["input"].type is not TensorType.INT8:
        function = op.options.fused_activation_function
        return UnactivatedCell if function == ActivationFunctionType.NONE else FloatCell
    return NarrowCell if len(op.intermediates) == 12 else IntegerCell
