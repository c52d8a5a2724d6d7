"""Shape rules of recurrent operators: B batch, T time, I input, C cells, O outputs, A auxiliary."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import LSTMKernelType
from tflite_ort.schema.shapes.registry import Shapes, rule
from tflite_ort.schema.values.lstm import (
    BASIC_LSTM_INPUTS,
    GATES,
    LstmKind,
    named,
)
from tflite_ort.schema.values.lstm_check import (
    CellCheck,
    is_variable,
    matrix,
    of_shape,
    of_type,
    present,
    require,
)
from tflite_ort.schema.values.sizes import Shape
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


def _input(op: View, rank: int) -> Shape:
    shape = op["input"].shape
    require(len(shape) == rank, op, f"input has rank {len(shape)}, expected {rank}")
    return shape


def _counts(op: View, inputs: tuple[int, ...], outputs: int) -> None:
    found, expected = len(op.inputs), " or ".join(map(str, inputs))
    require(found in inputs, op, f"{found} inputs, expected {expected}")
    found = len(op.outputs)
    require(found == outputs, op, f"{found} outputs, expected {outputs}")


@rule(Op.LSTM)
def lstm(op: View) -> Shapes:
    """[B, O], or the four outputs of the basic kernel."""
    if op.options.kernel_type == LSTMKernelType.BASIC:
        return _basic_lstm(named(op, BASIC_LSTM_INPUTS))
    _counts(op, (20, 24), 1)
    batch, features = _input(op, 2)
    cell = CellCheck(op)
    cell.everything(batch, features)
    cell.intermediates(LstmKind.INTEGER, LstmKind.NARROW)
    return ((batch, cell.sizes["O"]),)


def _basic_lstm(op: View) -> Shapes:
    """Output [B, C], state [B, C], input beside output [B, I + C], gates [B, 4 * C]."""
    _counts(op, (5,), 4)
    batch, features = _input(op, 2)
    _, cells = matrix(op, "previous_output")
    of_shape(op, "previous_output", (batch, cells))
    of_shape(op, "weights", (4 * cells, features + cells))
    of_shape(op, "bias", (4 * cells,))
    of_shape(op, "previous_state", (batch, cells))
    return (batch, cells), (batch, cells), (batch, features + cells), (batch, 4 * cells)


def _batch(op: View, shape: Shape) -> int:
    return shape[1 if op.options.time_major else 0]


@rule(Op.UNIDIRECTIONAL_SEQUENCE_LSTM)
def unidirectional_sequence_lstm(op: View) -> Shapes:
    """[T, B, O] or [B, T, O], as the input."""
    _counts(op, (20, 24), 1)
    shape, cell = _input(op, 3), CellCheck(op, diagonal=True)
    cell.everything(_batch(op, shape), shape[2])
    cell.intermediates(LstmKind.INTEGER)
    return ((*shape[:2], cell.sizes["O"]),)


@rule(Op.BIDIRECTIONAL_SEQUENCE_LSTM)
def bidirectional_sequence_lstm(op: View) -> Shapes:
    """One output per direction, or one with the forward direction's first."""
    _counts(op, (48,), 1 if op.options.merge_outputs else 2)
    shape = _input(op, 3)
    of_type(op, "input", TensorType.FLOAT32)
    cells = [CellCheck(op, prefix) for prefix in ("fw_", "bw_")]
    for cell in cells:
        cell.everything(_batch(op, shape), shape[2])
    forward, backward = (cell.sizes for cell in cells)
    require(forward == backward, op, f"directions of sizes {forward} and {backward}")
    _auxiliary_lstm(op, shape, forward["C"])
    return _directions(op, shape, forward["O"], backward["O"])


def _directions(op: View, shape: Shape, forward: int, backward: int) -> Shapes:
    if op.options.merge_outputs:
        return ((*shape[:2], forward + backward),)
    return (*shape[:2], forward), (*shape[:2], backward)


def _auxiliary_lstm(op: View, shape: Shape, cells: int) -> None:
    """Auxiliary weights for all gates of both directions or for none; without them the backward
    direction reads the auxiliary input in place of the input."""
    kinds = [
        [op.get(f"{prefix}aux_input_to_{gate}_weights") for gate in GATES]
        for prefix in ("fw_", "bw_")
    ]
    found = sum(tensor is not None for weights in kinds for tensor in weights[1:])
    require(found in (0, 6), op, f"{found} auxiliary weights, expected 0 or 6")
    of_type(op, "aux_input", TensorType.FLOAT32)
    if not found:
        of_shape(op, "aux_input", shape)
        return
    width = _auxiliary(op, shape)
    weights = op["fw_input_to_output_weights"].type
    for prefix in ("fw_", "bw_"):
        if op.get(f"{prefix}input_to_input_weights") is not None:
            present(op, f"{prefix}aux_input_to_input_weights")
        for gate in GATES:
            of_shape(op, f"{prefix}aux_input_to_{gate}_weights", (cells, width))
            of_type(op, f"{prefix}aux_input_to_{gate}_weights", weights)


def _auxiliary(op: View, shape: Shape) -> int:
    """A, of an auxiliary input as long as the input of `shape`."""
    auxiliary = present(op, "aux_input").shape
    of_shape(op, "aux_input", (*shape[:2], *auxiliary[2:3]))
    return auxiliary[2]


def _rnn_cell(op: View, prefix: str, batch: int, features: int) -> int:
    """The units of one RNN: weights [C, I], recurrent weights [C, C], bias [C], state [B, C]."""
    units, _ = matrix(op, f"{prefix}weights")
    for name in ("recurrent_weights", "bias"):
        present(op, prefix + name)
    of_shape(op, f"{prefix}weights", (units, features))
    of_shape(op, f"{prefix}recurrent_weights", (units, units))
    of_type(op, f"{prefix}recurrent_weights", op[f"{prefix}weights"].type)
    of_shape(op, f"{prefix}bias", (units,))
    is_variable(op, f"{prefix}hidden_state", batch * units)
    of_shape(op, f"{prefix}hidden_state", (batch, units))
    return units


@rule(Op.RNN, Op.UNIDIRECTIONAL_SEQUENCE_RNN)
def rnn(op: View) -> Shapes:
    """[B, C], or [T, B, C] or [B, T, C] as the input."""
    sequence = op.op is not Op.RNN
    _counts(op, (5,), 1)
    shape = _input(op, 3 if sequence else 2)
    batch = _batch(op, shape) if sequence else shape[0]
    return ((*shape[:-1], _rnn_cell(op, "", batch, shape[-1])),)


@rule(Op.BIDIRECTIONAL_SEQUENCE_RNN)
def bidirectional_sequence_rnn(op: View) -> Shapes:
    """One output per direction, or one with the forward direction's first."""
    _counts(op, (12,), 1 if op.options.merge_outputs else 2)
    shape = _input(op, 3)
    units = [_rnn_cell(op, prefix, _batch(op, shape), shape[2]) for prefix in ("fw_", "bw_")]
    weights = [op.get(f"{prefix}aux_weights") for prefix in ("fw_", "bw_")]
    found = sum(tensor is not None for tensor in weights)
    require(found in (0, 2), op, f"{found} auxiliary weights, expected 0 or 2")
    if found:
        width = _auxiliary(op, shape)
        for prefix, count in zip(("fw_", "bw_"), units, strict=True):
            of_shape(op, f"{prefix}aux_weights", (count, width))
    elif op.options.time_major:  # otherwise it is not read
        of_shape(op, "aux_input", shape)
    return _directions(op, shape, *units)


@rule(Op.SVDF)
def svdf(op: View) -> Shapes:
    """[B, units]: each unit the sum of `rank` filters over M steps of memory."""
    _counts(op, (5,), 1)
    batch, features = _input(op, 2)
    filters, _ = matrix(op, "weights_feature")
    _, memory = matrix(op, "weights_time")
    rank = op.options.rank
    holds = rank > 0 and filters % rank == 0
    require(holds, op, f"{filters} filters are not a multiple of rank {rank}")
    of_shape(op, "weights_feature", (filters, features))
    of_shape(op, "weights_time", (filters, memory))
    of_shape(op, "bias", (filters // rank,))
    is_variable(op, "state", batch * memory * filters)
    of_shape(op, "state", (batch, memory * filters))
    return ((batch, filters // rank),)
