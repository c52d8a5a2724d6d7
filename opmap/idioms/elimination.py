"""Matrices [..., N, N] of double row by row or column by column, in a Scan of N steps.

A step gets a vector that is 1 at its number and 0 elsewhere, so that nothing is indexed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.indices import failing
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.onnx_graph import ir

_DOUBLE = np.dtype(np.float64)


def transposed(g: Graph, value: ir.Value, rank: int) -> ir.Value:
    """The last two of `rank` axes exchanged."""
    *batch, rows, columns = range(rank)
    return g.op("Transpose", value, perm=[*batch, columns, rows])


def _steps(
    g: Graph,
    step: Callable[[Values, ir.Value], tuple[Values, Values]],
    states: Values,
    size: int,
    count: int,
    *,
    reverse: bool = False,
) -> tuple[Values, Values]:
    """`count` steps; each takes the states and its vector [size, 1]."""
    vectors = g.constants.add(np.eye(count, size)[..., None], "numbers")
    return scan(
        g,
        lambda values, slices: step(values, slices[0]),
        states,
        [vectors],
        single=False,
        reverse=reverse,
        types=[ir.DataType.DOUBLE] * (len(states) + 1),
    )


def _side_by_side(g: Graph, columns: ir.Value, rank: int) -> ir.Value:
    """Columns [N, ..., M, 1] of all steps as a matrix [..., M, N]."""
    inner = g.op("Squeeze", columns, g.ints([rank]))
    return g.op("Transpose", inner, perm=[*range(1, rank), 0])


def _sum(g: Graph, value: ir.Value, axes: Sequence[int]) -> ir.Value:
    return g.op("ReduceSum", value, g.ints(list(axes)), keepdims=1)


def checked(g: Graph, value: ir.Value, wrong: ir.Value) -> ir.Value:
    """`value` in a graph that fails if `wrong` is true anywhere."""
    shape = g.op("Shape", value)
    none = g.op("ReduceSum", failing(g, g.ints(0), wrong), None, keepdims=0)
    return g.op("Reshape", value, g.op("Add", shape, none), allowzero=1)


def eliminated(
    g: Graph, matrix: ir.Value, rank: int, size: int, columns: int
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Gauss and Jordan's elimination of the first `size` of `columns` columns, with the largest
    of a column as its pivot: the columns after them; the places of the pivots, a permutation
    [..., N, N]; and the pivots [N, ..., 1, 1]."""
    numbers = g.ints(np.arange(size)[:, None])
    one = g.constant(1, _DOUBLE)

    def step(states: Values, vector: ir.Value) -> tuple[Values, Values]:
        rows, used = states
        column = g.op("MatMul", rows, vector)
        free = g.op("Sub", g.op("Mul", g.op("Abs", column), g.op("Sub", one, used)), used)
        best = g.op("ArgMax", free, axis=-2, keepdims=1)
        chosen = g.cast(g.op("Equal", numbers, best), ir.DataType.DOUBLE)
        row = g.op("MatMul", transposed(g, chosen, rank), rows)
        pivot = g.op("MatMul", row, vector)
        safe = g.op("Where", g.op("Equal", pivot, g.constant(0, _DOUBLE)), one, pivot)
        whole = g.op("MatMul", g.op("Sub", column, chosen), g.op("Div", row, safe))
        return (g.op("Sub", rows, whole), g.op("Add", used, chosen)), (chosen, pivot)

    first = g.op(
        "Mul", g.op("Slice", matrix, g.ints([0]), g.ints([1]), g.ints([-1])), g.constant(0, _DOUBLE)
    )
    (rows, _), (chosen, pivots) = _steps(g, step, [matrix, first], columns, size)
    order = _side_by_side(g, chosen, rank)
    rest = g.op("Slice", rows, g.ints([size]), g.ints([columns]), g.ints([-1]))
    return g.op("MatMul", transposed(g, order, rank), rest), order, pivots


def cholesky(g: Graph, matrix: ir.Value, rank: int, size: int) -> ir.Value:
    """The lower triangle whose product with its transpose is the matrix; the graph fails where
    there is none."""
    mask = g.constants.add(np.tril(np.ones((size, size))), "lower")

    def step(states: Values, vector: ir.Value) -> tuple[Values, Values]:
        (rest,) = states
        column = g.op("Mul", g.op("MatMul", rest, vector), g.op("MatMul", mask, vector))
        square = _sum(g, g.op("Mul", column, vector), [-2])
        scaled = g.op("Div", column, g.op("Sqrt", square))
        product = g.op("MatMul", scaled, transposed(g, scaled, rank))
        return (g.op("Sub", rest, product),), (scaled, square)

    _, (columns, squares) = _steps(g, step, [matrix], size, size)
    wrong = g.op("Not", g.op("Greater", squares, g.constant(0, _DOUBLE)))
    return checked(g, _side_by_side(g, columns, rank), wrong)


def solved(
    g: Graph, triangle: ir.Value, right: ir.Value, rank: int, size: int, *, lower: bool
) -> ir.Value:
    """What a triangle times it is `right`; the graph fails where the diagonal has a 0."""

    def step(states: Values, vector: ir.Value) -> tuple[Values, Values]:
        (rest,) = states
        column = g.op("MatMul", triangle, vector)
        pivot = _sum(g, g.op("Mul", column, vector), [-2])
        row = g.op("Div", _sum(g, g.op("Mul", rest, vector), [-2]), pivot)
        return (g.op("Sub", rest, g.op("MatMul", column, row)),), (row, pivot)

    _, (rows, pivots) = _steps(g, step, [right], size, size, reverse=not lower)
    inner = g.op("Squeeze", rows, g.ints([rank - 1]))
    made = g.op("Transpose", inner, perm=[*range(1, rank - 1), 0, rank - 1])
    return checked(g, made, g.op("Equal", pivots, g.constant(0, _DOUBLE)))


def orthogonal(
    g: Graph, matrix: ir.Value, rank: int, rows: int, columns: int
) -> tuple[ir.Value, ir.Value]:
    """Householder's reflections: columns at right angles [..., M, M], and an upper triangle
    [..., M, N]."""
    zero, two = (g.constant(number, _DOUBLE) for number in (0, 2))
    after = g.constants.add(np.tril(np.ones((rows, rows)), -1), "after")

    def step(states: Values, vector: ir.Value) -> tuple[Values, Values]:
        rest, turned = states
        number = g.op("Slice", vector, g.ints([0]), g.ints([rows]), g.ints([0]))
        at = g.op("Slice", vector, g.ints([0]), g.ints([columns]), g.ints([0]))
        column = g.op("MatMul", rest, at)
        tail = g.op("Mul", column, g.op("MatMul", after, number))
        head = _sum(g, g.op("Mul", column, number), [-2])
        below = _sum(g, g.op("Mul", tail, tail), [-2])
        length = g.op("Sqrt", g.op("Add", below, g.op("Mul", head, head)))
        length = g.op("Where", g.op("Less", head, zero), length, g.op("Neg", length))
        mirror = g.op("Add", tail, g.op("Mul", number, g.op("Sub", head, length)))
        none = g.op("Equal", below, zero)
        square = g.op("Where", none, two, _sum(g, g.op("Mul", mirror, mirror), [-2]))
        scale = g.op("Where", none, zero, g.op("Div", two, square))
        flat = g.op("Mul", transposed(g, mirror, rank), scale)
        left = g.op("MatMul", mirror, g.op("MatMul", flat, rest))
        right = g.op("MatMul", g.op("MatMul", turned, mirror), flat)
        return (g.op("Sub", rest, left), g.op("Sub", turned, right)), ()

    start = g.op(
        "Mul", g.op("MatMul", matrix, g.constants.add(np.zeros((columns, rows)), "none")), zero
    )
    start = g.op("Add", start, g.constants.add(np.eye(rows), "identity"))
    steps, widest = min(rows, columns), max(rows, columns)
    (upper, turned), _ = _steps(g, step, [matrix, start], widest, steps)
    return turned, g.op("Mul", upper, g.constants.add(np.triu(np.ones((rows, columns))), "upper"))
