"""Rows of small tables of codes: the table is held as floats, from which one node takes rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.indices import bounded
from tflite_ort.opmap.lookup import codes_of_table, scales_of_rows
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import TensorType, TensorView

_MOST_UNPACKED = 2**19


def unpacked_tables(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """EMBEDDING_LOOKUP as a Gather of floats."""
    table, output = op["table"], op.output
    if output.type is not TensorType.FLOAT32 or table.type is output.type:
        return ()
    if not table.is_constant or table.blocks is not None:
        return ()
    scales = scales_of_rows(table, output)
    few = prod(table.shape) <= _MOST_UNPACKED
    return [Lowering("unpacked", {}, partial(_gathered, op, g, scales))] if few else ()


def _gathered(op: View, g: Graph, scales: npt.NDArray[np.float32]) -> None:
    table, places = op["table"], bounded(g, op["ids"], op["table"].shape[0])
    real = partial(_unpacked, table, scales)
    rows = g.constants.laid(table.constant, "as floats", real, table.name)
    g.write(op.output, g.op("Gather", rows, places))


def _unpacked(table: TensorView, scales: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The table as the real numbers that TFLite makes of its rows."""
    return codes_of_table(table).astype(np.float32) * scales
