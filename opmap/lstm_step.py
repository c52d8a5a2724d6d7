"""One step of an LSTM cell in floats, operator by operator: B batch, C cells, O outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.lstm_cell import Cell
from tflite_ort.opmap.recurrent_activation import activated
from tflite_ort.opmap.scan import Values
from tflite_ort.schema import ActivationFunctionType

Array = npt.NDArray[Any]

INPUT, FORGET, UPDATE, OUTPUT = range(4)
_NORM_EPSILON = 1e-8


class LstmStep:
    """One step: (h [B, O], c [B, C]) and what the input adds to the sums [B, 4 * C]."""

    def __init__(self, g: Graph, cell: Cell) -> None:
        rows = cell.recurrent_weights.reshape(4 * cell.size, -1)
        self.g, self.cell = g, cell
        self.recurrent_weights = g.constants.add(rows.T, "recurrent_weights")

    def __call__(self, states: Values, slices: Values) -> tuple[Values, Values]:
        g, cell, (h, c) = self.g, self.cell, states
        sums = g.op("Gemm", self._rounded(h), self.recurrent_weights, *slices)
        z = g.op_multi("Split", sums, outputs=4, axis=1, num_outputs=4)
        kept = g.op("Mul", self._gate(FORGET, z, c), c)
        update = activated(g, self._normalized(UPDATE, z[UPDATE]), cell.activation)
        added = g.op("Mul", self._gate(INPUT, z, c), update)
        c = clipped(g, g.op("Add", kept, added), cell.cell_clip)
        # TFLite's NONE does not even copy: what is left in the buffer is the update.
        is_none = cell.activation is ActivationFunctionType.NONE
        shown = update if is_none else activated(g, c, cell.activation)
        h = g.op("Mul", self._gate(OUTPUT, z, c), shown)
        if cell.projection is not None:
            h = self._projected(h, cell.projection)
        return (h, c), (h,)

    def _rounded(self, h: ir.Value) -> ir.Value:
        return h if self.cell.rounding is None else self.cell.rounding(h)

    def _gate(self, gate: int, z: Values, c: ir.Value) -> ir.Value:
        value, peephole = z[gate], self.cell.peephole
        if peephole is not None:
            weights = peephole[min(gate, len(peephole) - 1)]
            value = self.g.op("Add", value, self.g.op("Mul", c, self.g.constant(weights)))
        return self.g.op("Sigmoid", self._normalized(gate, value))

    def _normalized(self, gate: int, value: ir.Value) -> ir.Value:
        if self.cell.norm is None:
            return value
        scale, bias = self.g.constant(self.cell.norm[gate]), self.g.constant(self.cell.bias[gate])
        return self.g.op("LayerNormalization", value, scale, bias, axis=-1, epsilon=_NORM_EPSILON)

    def _projected(self, h: ir.Value, projection: Array) -> ir.Value:
        value = times(self.g, self._rounded(h), projection)
        if self.cell.projection_bias is not None:
            value = self.g.op("Add", value, self.g.constant(self.cell.projection_bias))
        return clipped(self.g, value, self.cell.proj_clip)


def clipped(g: Graph, value: ir.Value, limit: float) -> ir.Value:
    """Clip to +-limit; 0 is no limit."""
    if not limit:
        return value
    return g.op("Clip", value, g.constant(-limit, np.float32), g.constant(limit, np.float32))


def times(g: Graph, x: ir.Value, weights: Array) -> ir.Value:
    """`x` times the transpose of `weights` [rows, columns]."""
    return g.op("MatMul", x, g.constants.add(weights.T, "weights"))
