"""LSTM cells of floats by a Scan of the step, where that may be faster than an LSTM of ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_ort.opmap.cells.lstm_float import is_in_steps
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.recurrent import batch_of, directions_of, float_lstm, read_cell, steps_of
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema.values.sizes import has_zero, is_known, is_one


def float_cells(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """Sequences of cells that an LSTM of ONNX computes too."""
    steps, batch = steps_of(op), batch_of(op)
    if op["input"].is_quantized or is_one(steps) or has_zero(steps) or not is_known(steps, batch):
        return ()
    cells = {prefix: read_cell(op, g, prefix) for prefix in directions_of(op)}
    build = partial(float_lstm, op, g, cells)
    if any(is_in_steps(g, cell, single_row=is_one(batch)) for cell in cells.values()):
        return [Lowering("steps", {}, build)]
    first, *_ = cells.values()
    counted = float(steps * len(cells))
    weights = 4 * first.size * sum(matrix.codes.shape[1] for matrix in first.matrices)
    scan = {"Scan": 1.0, "Scan steps": counted, "Scan products": counted * weights}
    scan["Scan cells"] = counted * first.size
    kind = "Clipped LSTM" if any(cell.cell_clip for cell in cells.values()) else "LSTM"
    lstm = {what.replace("Scan", kind): amount for what, amount in scan.items()}
    return [Lowering("lstm", lstm, build), Lowering("steps", scan, partial(build, in_steps=True))]
