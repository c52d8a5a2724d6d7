"""LSTM, RNN, UNIDIRECTIONAL_SEQUENCE_LSTM and _RNN, BIDIRECTIONAL_SEQUENCE_LSTM and _RNN, SVDF.

B batch, T time, I input, A auxiliary input, C cells, O outputs; F filters over M steps of memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.cells.lstm_basic import basic_lstm
from tflite_ort.fallback_kernels.cells.lstm_float import FloatCell, Weights, activated, sigmoid
from tflite_ort.fallback_kernels.cells.lstm_integer import IntegerCell
from tflite_ort.fallback_kernels.cells.lstm_narrow import NarrowCell
from tflite_ort.fallback_kernels.cells.lstm_tensors import (
    CellTensors,
    States,
    as_input,
    run_steps,
    time_first,
    variables,
)
from tflite_ort.fallback_kernels.idioms.operands import scale, zero_point
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    ActivationFunctionType,
    BidirectionalSequenceLSTMOptions,
    BidirectionalSequenceRNNOptions,
    KernelError,
    LSTMKernelType,
    LSTMOptions,
    Op,
    OperatorView,
    RNNOptions,
    SequenceRNNOptions,
    SVDFOptions,
    UnidirectionalSequenceLSTMOptions,
)
from tflite_ort.schema.arithmetic.fixed_point import rescale, saturate
from tflite_ort.schema.values.lstm import LstmKind

# LSTM cells in floats whose activation is NONE, as LiteRT's kernel runs them.
#
# LiteRT's activation functions write from one buffer to another, and NONE writes nothing. So the
# buffer that should get the activated cell state still has the update, and the output gate
# multiplies that. The update itself is a sum of products with float weights, which LiteRT builds in
# two buffers in turn. The cell reads the first buffer: it has the whole sum after an even number of
# products, and the sum without the last product after an odd number. A product with an input of
# zeros is skipped.


class UnactivatedCell(FloatCell):
    """A cell that multiplies its output gate with the update, not with the cell state."""

    __slots__ = ()

    def run(self, x: Array, aux: Array | None, states: States) -> tuple[Array, States]:
        """[T, B, O] and the states after it."""
        given = self.given(x, aux)
        steps = list(zip(given, self._whole(x, aux), strict=True))
        return run_steps(self._step, steps, states)

    def _whole(self, x: Array, aux: Array | None) -> npt.NDArray[np.bool_]:
        """[T, B, 1]: whether the update of a row is its whole sum."""
        if self.input.scales is not None:
            return np.ones((*x.shape[:2], 1), np.bool_)
        products = self._met(x) + (0 if aux is None else self._met(aux))
        return np.asarray(products == 0 if self._diagonal_update else products % 2 == 1)

    def _met(self, x: Array) -> npt.NDArray[np.int_]:
        """[T, B, 1]: 1 where LiteRT multiplies an input by its weights, 0 where it skips it.

        It skips a step of zeros in all rows of a time-major input, and a row of zeros in others.
        """
        together = getattr(self.options, "time_major", True)
        found = x.any(axis=(1, 2) if together else 2, keepdims=True)
        return np.broadcast_to(found, (*x.shape[:2], 1)).astype(np.int_)

    @property
    def _diagonal_update(self) -> bool:
        return self.diagonal is not None and bool(self.diagonal[-2].any())

    def _step(self, step: tuple[Array, Array], h: Array, c: Array) -> States:
        given, whole = step
        sums = self.sums(given, h)
        early = self.gates(sums, slice(None, -1), c)
        update = np.where(whole, early[:, -1], self._partial(given))
        c = self.updated(early, update, c)
        output = sigmoid(self.gates(sums, slice(-1, None), c)[:, 0])
        return self.projected(output * update), c

    def _partial(self, given: Array) -> Array:
        """The content of the first buffer without the last product."""
        if not self._diagonal_update:
            return given[:, -2]
        return np.zeros_like(self.bias[-2]) if self.norm is not None else self.bias[-2]


# One recurrent cell: B batch, T time, I input, A auxiliary input, C cells.


@record
class RnnCell:
    """h = f(W x + A a + R h + b).

    Args:
        weights, auxiliary, recurrent: [1, C, I], [1, C, A] and [1, C, C].
        state: [B, C] before the sequence.
    """

    weights: Weights
    auxiliary: Weights | None
    recurrent: Weights
    bias: Array
    state: Array
    activation: ActivationFunctionType

    @classmethod
    def of(cls, cell: CellTensors) -> RnnCell:
        """The cell of an RNN operator, with an auxiliary input where there are weights for one."""
        auxiliary = cell.tensor("aux_weights") is not None
        return cls(
            Weights.single(cell, "weights"),
            Weights.single(cell, "aux_weights") if auxiliary else None,
            Weights.single(cell, "recurrent_weights"),
            cell.required("bias"),
            cell.required("hidden_state"),
            cell.op.options.fused_activation_function,
        )

    def run(self, x: Array, aux: Array | None, h: Array) -> tuple[Array, Array]:
        """[T, B, C] and the last of it; x [T, B, I], aux [T, B, A]."""
        sums = self.bias + self.weights.times(x)[..., 0, :]
        if aux is not None and self.auxiliary is not None:
            sums = sums + self.auxiliary.times(aux)[..., 0, :]
        outputs = np.empty_like(sums)
        for step, output in zip(sums, outputs, strict=True):
            output[...] = h = activated(step + self.recurrent.times(h)[..., 0, :], self.activation)
        return outputs, h


Array = npt.NDArray[Any]
Cell = FloatCell | IntegerCell | NarrowCell
Cells = dict[str, Cell]  # by the prefix of their tensors


def _cells(op: OperatorView[Any]) -> Cells:
    """Cells whose weights are constants are made once: none at first."""
    return {}


@kernel(Op.LSTM, versions=(1, 4), state=_cells)
def lstm(op: OperatorView[LSTMOptions], inputs: Inputs, state: State) -> Outputs:
    """One step: input [B, I], output [B, O]."""
    if op.options.kernel_type == LSTMKernelType.BASIC:
        return basic_lstm(op, inputs)
    outputs, states = _run(CellTensors(op, inputs), inputs[0][np.newaxis], None, state)
    return (outputs[0], *variables(op, inputs, states))


@kernel(Op.UNIDIRECTIONAL_SEQUENCE_LSTM, versions=(1, 4), state=_cells)
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
    state=_cells,
)
def bidirectional_sequence_lstm(
    op: OperatorView[BidirectionalSequenceLSTMOptions], inputs: Inputs, state: State
) -> Outputs:
    """A forward and a backward cell.

    The backward cell reads an auxiliary input without weights in place of the input.
    """
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
    kind = LstmKind.of(op)
    if kind is LstmKind.FLOAT:
        function = op.options.fused_activation_function
        return UnactivatedCell if function == ActivationFunctionType.NONE else FloatCell
    return NarrowCell if kind is LstmKind.NARROW else IntegerCell


@kernel(Op.RNN, versions=(1, 3))
def rnn(op: OperatorView[RNNOptions], inputs: Inputs, state: State) -> Outputs:
    """One step on a whole batch: [B, I] to [B, C]."""
    cell = RnnCell.of(CellTensors(op, inputs))
    outputs, h = cell.run(inputs[0][np.newaxis], None, cell.state)
    return outputs[0], h


@kernel(Op.UNIDIRECTIONAL_SEQUENCE_RNN, versions=(1, 3))
def unidirectional_sequence_rnn(
    op: OperatorView[SequenceRNNOptions], inputs: Inputs, state: State
) -> Outputs:
    """[T, B, I] or [B, T, I], output alike."""
    cell = RnnCell.of(CellTensors(op, inputs))
    outputs, h = cell.run(time_first(op, inputs[0]), None, cell.state)
    return as_input(op, outputs), h


@kernel(Op.BIDIRECTIONAL_SEQUENCE_RNN, versions=(1, 3))
def bidirectional_sequence_rnn(
    op: OperatorView[BidirectionalSequenceRNNOptions], inputs: Inputs, state: State
) -> Outputs:
    """A forward and a backward cell.

    An auxiliary input without weights is the input of the backward cell if time-major, else unread.
    LiteRT runs a time-major hybrid sequence as often as it has steps, and keeps the state between.
    """
    cells = [RnnCell.of(CellTensors(op, inputs, prefix)) for prefix in ("fw_", "bw_")]
    x, aux = time_first(op, inputs[0]), inputs[op.names.index("aux_input")]
    sources, hybrid = [x, x], cells[0].weights.scales is not None
    if aux is not None and cells[0].auxiliary is None:
        sources, aux = [x, aux if op.options.time_major else x], None
    elif aux is not None:
        aux = _auxiliary(op, aux, x.shape, hybrid)
    results, states = [], []
    for cell, source, way in zip(cells, sources, (1, -1), strict=True):
        h = cell.state
        for _ in range(max(len(x), 1) if hybrid and op.options.time_major else 1):
            outputs, h = cell.run(source[::way], None if aux is None else aux[::way], h)
        results.append(as_input(op, outputs[::way]))
        states.append(h)
    if op.options.merge_outputs:
        results = [np.concatenate(results, axis=-1)]
    return (*results, *states)


def _auxiliary(op: OperatorView[Any], aux: Array, shape: tuple[int, ...], hybrid: bool) -> Array:
    """The auxiliary input [T, B, A] as LiteRT reads it, mostly in strides of the input's width.

    Args:
        shape: of the input, [T, B, I].
    """
    (steps, batch, width), own = shape, aux.shape[2]
    step, row = np.arange(steps)[:, np.newaxis], np.arange(batch)
    if op.options.time_major:
        start = step * width * batch + row * own
    else:
        start = (row * steps + step) * (width if hybrid else own)
    places = start[..., np.newaxis] + np.arange(own)
    if places.max(initial=0) >= aux.size:
        raise KernelError(f"LiteRT reads an auxiliary input of width {own} as of width {width}")
    return np.asarray(aux.reshape(-1)[places])


@kernel(Op.SVDF, versions=(1, 4))
def svdf(op: OperatorView[SVDFOptions], inputs: Inputs, state: State) -> Outputs:
    """out[u] = f(bias[u] + the sum over the filters of u of their weights in time times their
    last M outputs); a filter's newest output stands last in its row of the state [B, F, M]."""
    x, _, time, bias, memory = inputs
    rows = memory.reshape(len(x), *time.shape)
    if x.dtype != np.float32:
        return _svdf_of_codes(op, inputs, rows)
    cell = CellTensors(op, inputs)
    made = Weights.single(cell, "weights_feature").times(x)[..., 0, :, np.newaxis]
    rows = np.concatenate([rows[..., 1:], made.astype(np.float32)], axis=2)
    if time.dtype != np.float32:
        time = time.view(np.int8) * cell.scale("weights_time")
    sums = _unit_sums(op, (time * rows).sum(axis=2))
    sums = sums if bias is None else sums + bias
    return activated(sums, op.options.fused_activation_function), rows.reshape(memory.shape)


def _unit_sums(op: OperatorView[SVDFOptions], filters: Array) -> Array:
    """[B, F / rank]: neighbouring filters added up."""
    batch, count = filters.shape
    sums = filters.reshape(batch, count // op.options.rank, op.options.rank).sum(axis=2)
    return np.asarray(sums, filters.dtype)


def _svdf_of_codes(op: OperatorView[SVDFOptions], inputs: Inputs, rows: Array) -> Outputs:
    """The same in integers; scales are multiplied and divided in float32."""
    x, feature, time, bias, memory = inputs
    if op.options.fused_activation_function != ActivationFunctionType.RELU:
        name = op.options.fused_activation_function.name
        raise KernelError(f"activation {name} of integers, expected RELU")
    state_zero = zero_point(op, op["state"])
    made = (x.astype(np.int64) - zero_point(op, op["input"])) @ feature.astype(np.int64).T
    unit = scale(op, op["state"])
    made = rescale(made, scale(op, op["input"]) * scale(op, op["weights_feature"]) / unit)
    made = saturate(made, rows.dtype).astype(np.int64) + state_zero
    newest = saturate(made, rows.dtype)[..., np.newaxis]
    rows = np.concatenate([rows[..., 1:], newest], axis=2)
    products = time.astype(np.int64) * (rows.astype(np.int64) - state_zero)
    sums = _unit_sums(op, products.sum(axis=2))
    sums = (sums if bias is None else sums + bias).astype(np.int32)
    multiplier = unit * scale(op, op["weights_time"]) / scale(op, op.output)
    codes = rescale(sums, multiplier) + zero_point(op, op.output)
    return saturate(codes, op.output.dtype), rows.reshape(memory.shape)
