"""Two integer LSTM cells (8x8_16) over sequences of one length in one Scan.

The directions of a bidirectional layer are two operators that do not see each other. A step takes
the time of its nodes, whose number is the same for both cells side by side: their weights are the
blocks of one matrix, with zeros elsewhere.

B batch, T time, I input, C cells of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import replace
from tflite_ort.opmap.cells.lstm_integer import IntegerStep, run_integer_cell
from tflite_ort.opmap.cells.lstm_integer_weights import (
    IntegerWeights,
    Product,
    read_integer_weights,
)
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.idioms.fixed_point import centred_codes
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, TensorView, Untranslatable
from tflite_ort.schema.values.lstm import GATES

Array = npt.NDArray[Any]
View = OperatorView[Any]
_TIME_FIRST = (1, 0, 2)


def run_pair(g: Graph, ops: Sequence[View]) -> None:
    """Translate two sequences of equal sizes.

    Raises:
        Untranslatable: their cells differ in what all cells of a step share, or are too large.
    """
    cell = _side_by_side(*(read_integer_weights(op) for op in ops))
    fits = cell.recurrent.fits_doubles and cell.recurrent.is_small
    if not (fits and IntegerStep(g, cell, doubles=True, wide=True).is_simple):
        raise Untranslatable("cells whose steps have more nodes together")
    states = [[op[name] for op in ops] for name in ("output_state", "cell_state")]
    if any(state.rank != 2 or 2 * state.shape[1] != cell.size for row in states for state in row):
        raise Untranslatable("states of other shapes than [batch, cells]")
    x = [_time_first(op, g, g.read_steps(op["input"])) for op in ops]
    h = [g.read_steps(state) for state in states[0]]
    c = [g.read(state, domain=Domain.STORED) for state in states[1]]
    joined = (g.op("Concat", *parts, axis=-1) for parts in (x, h, c))
    y, last, cells = run_integer_cell(g, cell, *joined, single=False, doubles=True, wide=True)
    for state, value in zip(states[0], _codes(g, last, states[0]), strict=True):
        g.write(state, value, domain=Domain.STORED)
    for state, value in zip(states[1], _halves(g, cells), strict=True):
        g.write(state, value, domain=Domain.STORED)
    for op, value in zip(ops, _codes(g, y, states[0]), strict=True):
        g.write(op.output, _time_first(op, g, value), domain=Domain.STORED)


def _time_first(op: View, g: Graph, value: ir.Value) -> ir.Value:
    """A sequence of the operator as [T, B, ...], or back."""
    return value if op.options.time_major else g.op("Transpose", value, perm=_TIME_FIRST)


def _halves(g: Graph, value: ir.Value) -> Sequence[ir.Value]:
    return g.op_multi("Split", value, outputs=2, axis=-1, num_outputs=2)


def _codes(g: Graph, value: ir.Value, states: Sequence[TensorView]) -> list[ir.Value]:
    """The outputs of each cell in the quantization of its state."""
    pairs = zip(_halves(g, value), states, strict=True)
    return [centred_codes(g, half, state) for half, state in pairs]


def _side_by_side(a: IntegerWeights, b: IntegerWeights) -> IntegerWeights:
    """One cell whose first half is `a` and whose second half is `b`."""
    if any((cell.norm, cell.peephole, cell.projection) != (None, None, None) for cell in (a, b)):
        raise Untranslatable("cells with further weights")
    shared = [(cell.size, cell.coupled, cell.cell_bits, cell.cell_range) for cell in (a, b)]
    if shared[0] != shared[1]:
        raise Untranslatable("cells that differ in what a step shares")

    def whole(first: Array, second: Array) -> Array:
        return np.concatenate([np.broadcast_to(part, a.size) for part in (first, second)])

    def both(first: Sequence[Array], second: Sequence[Array]) -> tuple[Array, Array]:
        low, high = map(whole, first, second)
        return low, high

    return replace(
        a,
        input=_blocks(a.input, b.input),
        recurrent=_blocks(a.recurrent, b.recurrent),
        hidden=both(a.hidden, b.hidden),
        output_range=both(a.output_range, b.output_range),
        output_zero_point=whole(a.output_zero_point, b.output_zero_point),
    )


def _blocks(a: Product, b: Product) -> Product:
    """The columns of `a` and of `b`, gate by gate; each sees its own rows."""
    rows = len(a.weights), len(b.weights)
    parts = [product.weights.reshape(len(product.weights), len(GATES), -1) for product in (a, b)]
    joined = np.zeros((sum(rows), len(GATES), 2 * parts[0].shape[2]), a.weights.dtype)
    joined[: rows[0], :, : parts[0].shape[2]] = parts[0]
    joined[rows[0] :, :, parts[0].shape[2] :] = parts[1]

    def columns(first: Array, second: Array) -> Array:
        gates = [part.reshape(len(GATES), -1) for part in (first, second)]
        return np.concatenate(gates, axis=1).reshape(-1)

    weights = joined.reshape(sum(rows), -1)
    return Product(weights, columns(a.bias, b.bias), columns(a.multiplier, b.multiplier))
