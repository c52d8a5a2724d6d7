"""An LSTM cell in floats with what it runs over. B batch, T time, I input, C cells, O outputs."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.base.records import record
from tflite_ort.opmap.cells.lstm_float_weights import FloatWeights
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema.values.sizes import is_one

Result = tuple[ir.Value, ir.Value, ir.Value]  # outputs [T, B, O], last output and cell state


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
