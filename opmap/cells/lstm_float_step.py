"""One step of an LSTM cell in floats, operator by operator: B batch, C cells, O outputs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.opmap.cells.lstm_float_weights import FloatWeights
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.float_activation import activated
from tflite_ort.opmap.idioms.hybrid_products import Term, WeightMatrix, sum_of_products
from tflite_ort.opmap.idioms.scan import Values
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import ActivationFunctionType

INPUT, FORGET, UPDATE, OUTPUT = range(4)
# TFLite's gates in the order of ONNX's.
ONNX_GATES = [INPUT, OUTPUT, FORGET, UPDATE]
_NORM_EPSILON = 1e-8


class FloatStep:
    """One step: from states (h [B, O], c [B, C]) and inputs [B, I], or sums of the gates.

    Args:
        inputs: the weights of the inputs; without any a step gets sums [B, 4 * C].
        single_row: B is 1.
        recurrent: the recurrent weights [1, 4 * C, C] of an LSTM node, in its order of gates, which
            the sums have too; None: those of the cell.
    """

    def __init__(
        self,
        g: Graph,
        cell: FloatWeights,
        inputs: Sequence[WeightMatrix],
        *,
        single_row: bool,
        recurrent: ir.Value | None = None,
    ) -> None:
        self.g, self.cell, self.inputs, self.single_row = g, cell, inputs, single_row
        self.recurrent = recurrent

    def __call__(self, states: Values, slices: Values) -> tuple[Values, Values]:
        g, cell, (h, c) = self.g, self.cell, states
        z = self._gate_sums(h, slices)
        kept = g.op("Mul", self._gate(FORGET, z, c), c)
        update = activated(g, self._normalized(UPDATE, z[UPDATE]), cell.activation)
        added = g.op("Mul", self._gate(INPUT, z, c), update)
        c = clipped(g, g.op("Add", kept, added), cell.cell_clip)
        # With activation NONE TFLite does not copy the state: the buffer still has the update.
        is_none = cell.activation is ActivationFunctionType.NONE
        shown = update if is_none else activated(g, c, cell.activation)
        h = g.op("Mul", self._gate(OUTPUT, z, c), shown)
        if cell.projection is not None:
            h = self._projected(h, cell.projection)
        return (h, c), (h,)

    def _gate_sums(self, h: ir.Value, slices: Values) -> Values:
        """What the activations of the gates are given."""
        g, cell = self.g, self.cell
        if self.recurrent is not None:
            weights = g.op("Squeeze", self.recurrent, g.ints([0]))
            sums = g.op("Gemm", h, weights, slices[0], transB=1)
            parts = g.op_multi("Split", sums, outputs=4, axis=1, num_outputs=4)
            return [parts[ONNX_GATES.index(gate)] for gate in range(4)]
        terms = [*zip(slices, self.inputs, strict=bool(self.inputs)), (h, cell.recurrent_weights)]
        sums = self._sum(terms, cell.added(g) if self.inputs else slices[0])
        return g.op_multi("Split", sums, outputs=4, axis=1, num_outputs=4)

    def _sum(self, terms: Sequence[Term], added: ir.Value | None) -> ir.Value:
        rounding, single_row = self.cell.rounding, self.single_row
        return sum_of_products(self.g, terms, rounding=rounding, single_row=single_row, added=added)

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

    def _projected(self, h: ir.Value, projection: WeightMatrix) -> ir.Value:
        bias = self.cell.projection_bias
        added = None if bias is None else self.g.constant(bias)
        return clipped(self.g, self._sum([(h, projection)], added), self.cell.proj_clip)


def clipped(g: Graph, value: ir.Value, limit: float) -> ir.Value:
    """Clip to +-limit; 0 is no limit."""
    if not limit:
        return value
    return g.op("Clip", value, g.constant(-limit, np.float32), g.constant(limit, np.float32))
