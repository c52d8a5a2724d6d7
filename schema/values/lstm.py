"""The LSTM operators: their inputs by name and position, and how their cells compute.

An LSTM cell is four gates in this order; T time, B batch, I input, C cells, O outputs::

    input, forget, cell (the update), output

"""

from __future__ import annotations

from enum import Enum
from typing import Any

from tflite_ort.base.records import replace
from tflite_ort.schema.file.element_types import TensorType
from tflite_ort.schema.values.view import OperatorView

GATES = ("input", "forget", "cell", "output")

# Gates that see the cell state through a diagonal matrix.
PEEPHOLE_GATES = ("input", "forget", "output")


class LstmKind(Enum):
    """How a cell computes. The value is the number of intermediates that an operator of this kind
    has: they carry the scales of the sums of the gates and of the hidden state.

    FLOAT: in real numbers; the weights may be codes.
    INTEGER: in codes, with sums of 16 bits (8x8_16).
    NARROW: in codes, with sums of 8 bits (8x8_8); always normalised and projected.
    """

    FLOAT = 0
    INTEGER = 5
    NARROW = 12

    @classmethod
    def of(cls, op: OperatorView[Any]) -> LstmKind:
        """The kind of an LSTM operator, whose first input is the cell's. The basic kernel of LSTM
        is none of these."""
        source = op.inputs[0]
        if source is None or source.type is not TensorType.INT8:
            return cls.FLOAT
        return cls.NARROW if len(op.intermediates) == cls.NARROW.value else cls.INTEGER


def _cell(prefix: str) -> tuple[str, ...]:
    """The weights of one direction: [C, I], [C, O], [C], [C], [O, C] and [O]."""
    return (
        *(f"{prefix}input_to_{gate}_weights?" for gate in GATES),
        *(f"{prefix}recurrent_to_{gate}_weights?" for gate in GATES),
        *(f"{prefix}cell_to_{gate}_weights?" for gate in PEEPHOLE_GATES),
        *(f"{prefix}{gate}_gate_bias?" for gate in GATES),
        f"{prefix}projection_weights?",
        f"{prefix}projection_bias?",
    )


# Of LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM; the last four are absent from the oldest files.
LSTM_INPUTS = (
    "input",
    *_cell(""),
    "output_state?",  # variable, [B, O]
    "cell_state?",  # variable, [B, C]
    *(f"{gate}_layer_norm_coefficients?" for gate in GATES),
)

BIDIRECTIONAL_LSTM_INPUTS = (
    "input",
    *_cell("fw_"),
    *_cell("bw_"),
    "fw_output_state?",
    "fw_cell_state?",
    "bw_output_state?",
    "bw_cell_state?",
    "aux_input?",
    *(f"fw_aux_input_to_{gate}_weights?" for gate in GATES),
    *(f"bw_aux_input_to_{gate}_weights?" for gate in GATES),
)

# Of LSTM with kernel_type BASIC: weights [4 * C, I + C] and bias [4 * C], whose gates stand in
# the order input, cell, forget, output.
BASIC_LSTM_INPUTS = ("input", "previous_output", "weights", "bias", "previous_state")


def named(op: OperatorView[Any], inputs: tuple[str, ...]) -> OperatorView[Any]:
    """`op` with its inputs under the names of one of the tables."""
    return replace(op, names=tuple(name.rstrip("?") for name in inputs))
