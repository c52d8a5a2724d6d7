"""LSTM cells of codes (8x8_16) with fewer nodes in each step: larger tables, and recurrent products
of doubles that have the multipliers in them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from tflite_ort.opmap.cells.lstm_integer_weights import read_integer_weights
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.recurrent import integer_lstm, steps_of
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import LSTMKernelType, Op
from tflite_ort.schema.values.lstm import LstmKind
from tflite_ort.schema.values.sizes import has_zero, is_known


def integer_cells(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM of codes."""
    if not _is_integer(op) or has_zero(*op["input"].shape):
        return ()
    if has_zero(*op["recurrent_to_output_weights"].shape):
        return ()
    cell, steps = read_integer_weights(op), steps_of(op)
    wide = partial(integer_lstm, op, g, cell, wide=True)
    if not (cell.recurrent.fits_doubles and is_known(steps)):
        return [Lowering("floats", {}, wide)]
    work = {"Integer cells": 1.0, "Integer cells steps": float(steps)}
    work["Integer cells sums"] = float(4 * steps * cell.size)
    work["Integer cells products"] = float(steps * cell.recurrent.weights.size)
    doubled = {what.replace("Integer", "Double"): amount for what, amount in work.items()}
    lowerings = [
        Lowering("doubles", doubled, partial(wide, doubles=True)),
        Lowering("floats", work, wide),
    ]
    return lowerings if cell.recurrent.is_small else lowerings[::-1]


def _is_integer(op: View) -> bool:
    if op.op is Op.UNIDIRECTIONAL_SEQUENCE_LSTM:
        return op["input"].is_quantized
    if op.options.kernel_type == LSTMKernelType.BASIC:
        return False
    return LstmKind.of(op) is LstmKind.INTEGER
