"""Finds recurrent cells whose steps stand one after the other: equal steps, each of which takes the
state of the step before.

A step is recognised by its algebra, as one of a WHILE is, so its operators may stand in any order.
All steps have to be the same cell with the same constants. In the first step converters leave out
what zeros give, so it has an algebra of its own, see `zero_step`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.loops.affine_expressions import Affine, AffineExpressions
from tflite_ort.opmap.loops.recurrent_cells import Cell, cells_of
from tflite_ort.opmap.rules.operators.picked_rows import PickedRows, picked_rows
from tflite_ort.opmap.rules.operators.unrolled_start import zero_step
from tflite_ort.opmap.rules.operators.views import Runs
from tflite_ort.schema import Op, OperatorView, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

Array = npt.NDArray[Any]
View = OperatorView[Any]

# The operators that make the output of a cell; one of them is fused to an activation.
_LAST = frozenset({Op.ADD, Op.MUL, Op.TANH, Op.RELU, Op.LOGISTIC, Op.FULLY_CONNECTED})


class StepExpressions(AffineExpressions):
    """Affine expressions of a graph in which a product may be computed for all steps at once.

    A row of such a product is an affine expression of the same row of what is multiplied. That row
    is a source but no tensor; its number is below 0.
    """

    def __init__(self, operators: Sequence[View], *, hybrid: bool) -> None:
        super().__init__(operators, hybrid=hybrid)
        self.cut = set[int]()  # the rows of products, by index
        self._rows: dict[int, PickedRows] = {}
        self._numbers: dict[tuple[int, int, Runs], int] = {}

    def picked(self, source: int) -> PickedRows | None:
        """What a source below 0 is."""
        return self._rows.get(source)

    def _derived(self, tensor: TensorView) -> Affine | None:
        found = super()._derived(tensor)
        return self._row_of_product(tensor) if found is None else found

    def _row_of_product(self, tensor: TensorView) -> Affine | None:
        if tensor.type is not TensorType.FLOAT32 or tensor.is_constant or not tensor.rank:
            return None
        if not is_known(*tensor.shape) or 0 in tensor.shape or self.maker(tensor.index) is None:
            return None
        rows = picked_rows(tensor, self.maker)
        if rows.whole.index == tensor.index or rows.whole.shape[-1] != tensor.shape[-1]:
            return None
        product = self.affine(rows.whole)
        if product is None or len(product.weights) != 1:
            return None
        ((source, matrix),) = product.weights.items()
        given = self.source(source)
        if given is None or prod(given.shape[:-1]) != prod(rows.whole.shape[:-1]):
            return None
        number = self._numbers.setdefault((source, rows.first, rows.runs), -1 - len(self._numbers))
        self._rows[number] = PickedRows(given, rows.first, rows.runs)
        self.cut.add(tensor.index)
        return Affine({number: matrix}, product.bias)


@record
class Unrolled:
    """A recurrent cell over a sequence of steps.

    Args:
        cell: that of the last step.
        results: of each step, its states.
        sources: of each step, its sources in the order of those of `cell`.
        initial: the states before the first step; none for zeros.
    """

    cell: Cell
    results: Sequence[Sequence[TensorView]]
    sources: Sequence[Sequence[int]]
    initial: Sequence[TensorView]


def unrolled_cells(operators: Sequence[View], expressions: StepExpressions) -> Iterator[Unrolled]:
    """The cells of two steps and more, the last one first; none is part of another one."""
    known = set[int]()
    for op in reversed(operators):
        if op.op not in _LAST or len(op.outputs) != 1 or op.output.index in known:
            continue
        found = [_followed(cell, expressions) for cell in cells_of(op.output, expressions)]
        longest = max(
            (each for each in found if each), key=lambda each: len(each.results), default=None
        )
        if longest is not None:
            known.update(tensor.index for states in longest.results for tensor in states)
            yield longest


def _followed(last: Cell, expressions: StepExpressions) -> Unrolled | None:
    """The steps of which `last` is the last one; None where it is the only one, or no ONNX node
    computes it exactly."""
    if not _is_complete(last):
        return None
    steps, step = [last], last
    while (before := _step_before(step, expressions)) is not None:
        steps.append(before)
        step = before
    results = [[state.result for state in each.states] for each in steps]
    sources: list[Sequence[int]] = [each.sources for each in steps]
    initial = [state.argument for state in step.states]
    start = zero_step(step, expressions)
    if start is not None:
        results.append(initial)
        sources.append(start)
        initial = []
    if len(results) < 2:
        return None
    return Unrolled(last, results[::-1], sources[::-1], initial)


def _step_before(step: Cell, expressions: StepExpressions) -> Cell | None:
    states = [state.argument.index for state in step.states]
    for cell in cells_of(step.states[0].argument, expressions):
        results = [expressions.rows(state.result).index for state in cell.states]
        if results == states and is_same(cell, step):
            return cell
    return None


def _is_complete(cell: Cell) -> bool:
    """Whether every gate has products of every source and of the state, of finite weights: what a
    node multiplies by 0 instead would make infinity a NaN."""
    sources, own = cell.sources, cell.states[0].argument
    shapes = [state.argument.shape for state in cell.states]
    if not all(is_known(*shape) and 0 not in shape for shape in shapes):
        return False
    for gate in cell.gates:
        if set(gate.input.weights) != set(sources) or list(gate.recurrent.weights) != [own.index]:
            return False
        matrices = (*gate.input.weights.values(), *gate.recurrent.weights.values())
        if not all(np.isfinite(each).all() for each in (*matrices, gate.input.bias)):
            return False
        if not np.isfinite(gate.recurrent.bias).all():
            return False
    return True


def is_same(one: Cell, other: Cell) -> bool:
    """Whether both are the same function of their sources, in their order, and states."""
    if one.op_type != other.op_type or one.reset_after is not other.reset_after:
        return False
    if list(one.activations) != list(other.activations) or not _same_constants(one, other):
        return False
    return all(map(_same_array, _matrices(one), _matrices(other)))


def _same_constants(one: Cell, other: Cell) -> bool:
    pairs = list(zip(one.gates, other.gates, strict=True))
    terms = [(a.input, b.input) for a, b in pairs] + [(a.recurrent, b.recurrent) for a, b in pairs]
    return len(one.sources) == len(other.sources) and all(
        len(a.weights) == len(b.weights) and np.array_equal(a.bias, b.bias) for a, b in terms
    )


def _matrices(cell: Cell) -> Sequence[Array]:
    """All weights, gate by gate, in the order of the sources."""
    sources, own = cell.sources, cell.states[0].argument.index
    return [
        matrix
        for gate in cell.gates
        for matrix in (
            *(gate.input.weights[each] for each in sources),
            gate.recurrent.weights[own],
        )
    ]


def _same_array(a: Array, b: Array) -> bool:
    """Whether both have the same numbers; parts of one array are not looked through."""
    if a.shape != b.shape:
        return False
    at_once = a.__array_interface__["data"] == b.__array_interface__["data"]
    return (at_once and a.strides == b.strides) or np.array_equal(a, b)
