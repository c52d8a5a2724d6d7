"""LSTM of codes (8x8_16) step by step, in nodes of 16-bit codes between pairs, for NPUs.

TFLite's integers are such codes: sums of gates have 12 bits behind the point, gates 15.

B batch, T time, I input, C cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.cells.lstm_integer_weights import (
    BYTE,
    SHORT,
    IntegerWeights,
    Product,
    read_integer_weights,
)
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.code_scales import WEIGHT, CodeScale, multiplied, unit_of
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.recurrent import batch_of, steps_of
from tflite_ort.opmap.rules.rule import Rest, View
from tflite_ort.schema import Op, Untranslatable
from tflite_ort.schema.values.lstm import GATES, LstmKind
from tflite_ort.schema.values.sizes import has_zero, is_known

Array = npt.NDArray[Any]

# Each step has about 60 nodes.
MOST_STEPS = 64
_SUM, _GATE = CodeScale(2.0**-12), CodeScale(2.0**-15)
_INPUT, _FORGET, _UPDATE, _OUTPUT = range(4)
_SWAPPED = (1, 0, 2)
# Scales that are off by less are the same.
_ALIKE = 1e-5


def unrolled_lstm(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """LSTM and UNIDIRECTIONAL_SEQUENCE_LSTM of codes.

    Raises:
        Untranslatable: the cell has parts that no such nodes are known for, and numpy kernels stand
            by.
    """
    if not op["input"].is_quantized:
        return ()
    why = _unknown(op)
    if not why:
        return [Lowering("steps", {}, partial(_unrolled, op, g))]
    if g.target.fallback:
        raise Untranslatable(f"NPUs have no nodes for {why}")
    return ()


def _unknown(op: View) -> str:
    """What of a cell is not unrolled; empty where there is nothing."""
    if LstmKind.of(op) is not LstmKind.INTEGER:
        return "cells with 8-bit sums"
    tensors = (op["input"], op["output_state"], op["cell_state"])
    if not is_known(*(size for tensor in tensors for size in tensor.shape)):
        return "a sequence of unknown size"
    if has_zero(*op["input"].shape, *op["recurrent_to_output_weights"].shape):
        return "a sequence of nothing, or a cell without units"
    if steps_of(op) > MOST_STEPS:
        return f"more than {MOST_STEPS} steps of a recurrent cell"
    cell = read_integer_weights(op)
    if cell.peephole or cell.norm or cell.projection or cell.coupled:
        return "peepholes, normalization, projections and coupled gates"
    ends = [bound + cell.output_zero_point for bound in cell.output_range]
    # A limit above what 16 bits hold makes the lowest code -32767.
    if np.abs(np.subtract(cell.cell_range, SHORT)).max() > 1 or np.ravel(ends).tolist() != [*BYTE]:
        return "cells that are clipped"
    return ""


def _unrolled(op: View, g: Graph) -> None:
    """The nodes of the operator.

    The codes of the output are those of the output state, whatever scales these have. Here they
    stand for what the output says.
    """
    cell, steps, batch = read_integer_weights(op), steps_of(op), batch_of(op)
    read, made = CodeScale.of(op["input"]), CodeScale.of(op.output)
    given = _Layer.of(op, "input", cell.input, "input", read)
    step = _Step(g, cell, _Layer.of(op, "recurrent", cell.recurrent, "output_state", made), made)
    rows = _finer(g, g.read(op["input"], domain=Domain.STORED), read)
    swaps = op.op is not Op.LSTM and not op.options.time_major and batch > 1 and steps > 1
    if swaps:
        rows = g.op("Transpose", rows, perm=_SWAPPED)
    rows = g.reshape(rows, (steps * batch, op["input"].shape[-1]))
    # The product of a single row gets no bias, so the other one has both.
    sums = given.sums(g, rows, [a + b for a, b in zip(given.bias, step.layer.bias, strict=True)])
    filed = g.read(op["output_state"], domain=Domain.FILE)
    h = made.codes(g, made.filed.reals(g, filed))
    c = g.read(op["cell_state"], domain=Domain.STORED)
    shown = list[ir.Value]()
    for first in range(0, steps * batch, batch):
        fine, c = step([_rows(g, each, first, first + batch) for each in sums], h, c)
        h = made.codes(g, made.finer.reals(g, fine))
        shown.append(fine)
    filed = made.filed.codes(g, made.reals(g, h))
    g.write(op["output_state"], filed, domain=Domain.FILE)
    g.write(op["cell_state"], c, domain=Domain.STORED)
    # The finer codes side by side: where an operator reads the output with another scale, the steps
    # keep theirs.
    y = shown[0] if steps == 1 else g.op("Concat", *shown, axis=0)
    y = made.codes(g, made.finer.reals(g, y))
    if swaps:
        y = g.op("Transpose", g.reshape(y, (steps, batch, cell.size)), perm=_SWAPPED)
    g.write(op.output, g.reshape(y, op.output.shape), domain=Domain.STORED)


@record
class _Layer:
    """The weights by which rows of 8-bit codes become sums of gates, in the order of the gates.

    Args:
        weights: [C, I] of each gate.
        bias: [C] of each gate, as numbers.
        units: the scales of the weights, for codes that are read as `read` says.
    """

    weights: Sequence[Array]
    bias: Sequence[npt.NDArray[np.float64]]
    units: Sequence[float]
    read: CodeScale

    @classmethod
    def of(cls, op: View, kind: str, product: Product, source: str, read: CodeScale) -> _Layer:
        """
        Args:
            kind: of the weights, as their names begin.
            source: the tensor whose codes TFLite multiplies; they are read as `read` says.
        """
        given, gates = CodeScale.of(op[source]), len(GATES)
        units = [unit_of(op[f"{kind}_to_{gate}_weights"]) for gate in GATES]
        weights = np.split(product.weights.T, gates)
        moved = [(read.zero - given.zero) * each.sum(axis=1, dtype=np.int64) for each in weights]
        codes = zip(np.split(product.bias, gates), moved, units, strict=True)
        bias = [(own + more) * (unit * given.unit) for own, more, unit in codes]
        return cls(weights, bias, [unit * given.unit / read.unit for unit in units], read)

    def sums(self, g: Graph, rows: ir.Value, bias: Sequence[Array | None]) -> Sequence[ir.Value]:
        """The codes of sums of each gate, for rows of finer codes."""
        parts, read = zip(self.weights, self.units, bias, strict=True), self.read.finer
        return [_SUM.codes(g, multiplied(g, rows, read, *each)) for each in parts]


class _Step:
    """One step of a cell: from sums [B, C] of the input for each gate, h [B, C] and c [B, C] in
    codes to the output [B, C] in finer codes, and c.

    Args:
        made: how codes of h and of the output are read.
    """

    def __init__(self, g: Graph, cell: IntegerWeights, layer: _Layer, made: CodeScale) -> None:
        self.g, self.layer, self.made = g, layer, made
        self.c = CodeScale(2.0**-cell.cell_bits)
        self.shown = CodeScale(2.0**-30 / float(cell.hidden[0][0])).finer
        self.moved = int(cell.hidden[1][0]) + 128 - made.zero
        self.factor = made.finer.unit / self.shown.unit
        self.ones = np.eye(cell.size, dtype=np.int8) * WEIGHT

    def __call__(
        self, sums: Sequence[ir.Value], h: ir.Value, c: ir.Value
    ) -> tuple[ir.Value, ir.Value]:
        g, kept = self.g, self.c
        seen = self.layer.sums(g, _finer(g, h, self.made), [None] * len(GATES))
        opened = [
            self._opened(gate, a, b) for gate, (a, b) in enumerate(zip(sums, seen, strict=True))
        ]
        left = kept.codes(g, g.op("Mul", opened[_FORGET], kept.reals(g, c)))
        added = kept.codes(g, g.op("Mul", opened[_INPUT], opened[_UPDATE]))
        c = kept.codes(g, g.op("Add", kept.reals(g, left), kept.reals(g, added)))
        squashed = _GATE.codes(g, g.op("Tanh", kept.reals(g, c)))
        product = g.op("Mul", opened[_OUTPUT], _GATE.reals(g, squashed))
        return self._output(product), c

    def _opened(self, gate: int, first: ir.Value, second: ir.Value) -> ir.Value:
        g = self.g
        total = _SUM.codes(g, g.op("Add", _SUM.reals(g, first), _SUM.reals(g, second)))
        function = "Tanh" if gate == _UPDATE else "Sigmoid"
        return _GATE.reals(g, _GATE.codes(g, g.op(function, _SUM.reals(g, total))))

    def _output(self, product: ir.Value) -> ir.Value:
        """The finer codes of the output for the output gate times the activated state. TFLite
        rounds these by another scale, and reads the codes by that of the output."""
        g, fine = self.g, self.made.finer
        if not self.moved and abs(self.factor - 1) < _ALIKE:
            return fine.codes(g, product)
        codes, unit = self.shown.codes(g, product), self.factor / WEIGHT
        bias = np.full(len(self.ones), self.moved * self.made.unit)
        return fine.codes(g, multiplied(g, codes, self.shown, self.ones, unit, bias))


def _finer(g: Graph, codes: ir.Value, read: CodeScale) -> ir.Value:
    return read.finer.codes(g, read.reals(g, codes))


def _rows(g: Graph, codes: ir.Value, first: int, end: int) -> ir.Value:
    return g.op("Slice", codes, g.ints([first]), g.ints([end]), g.ints([0]))
