"""The greatest elements of every row; equal ones in the order of C++'s std::partial_sort.

A heap with the least element on top holds the first elements. A later element that is greater than
the top replaces it, and sinks past children that are not greater than it. All rows are sorted at
once: an element is a vector over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.scan import scan
from tflite_ort.opmap.onnx_graph import ir

# A vector of scores, and of the columns that they come from.
Element = tuple[ir.Value, ir.Value]
Heap = Sequence[Element]
_TYPES = [ir.DataType.FLOAT, ir.DataType.INT64]


def greatest(g: Graph, scores: ir.Value, columns: int, count: int) -> Element:
    """The `count` greatest of every row of `scores` [M, columns], in descending order.

    Returns:
        the scores and their columns, both [M, count].
    """
    by_column = g.op("Transpose", scores, perm=[1, 0])
    numbers = g.ints(np.arange(columns)[:, None])
    table = by_column, g.op("Expand", numbers, g.op("Shape", by_column))
    heap: Heap = [_row(g, table, column) for column in range(count)]
    for hole in reversed(range(count // 2)):
        heap = _settled(g, heap, hole, heap[hole])
    if columns > count:
        heap = _offered(g, heap, table, columns)
    falling: list[Element] = []
    while heap:
        falling.insert(0, heap[0])
        *heap, last = heap
        heap = _settled(g, heap, 0, last) if heap else []
    axis = g.ints([1])
    result_scores, result_columns = (
        g.op("Concat", *(g.op("Unsqueeze", vector, axis) for vector in vectors), axis=1)
        for vectors in zip(*falling, strict=True)
    )
    return result_scores, result_columns


def _row(g: Graph, table: Element, column: int) -> Element:
    number = g.ints(column)
    return g.op("Gather", table[0], number), g.op("Gather", table[1], number)


def _offered(g: Graph, heap: Heap, table: Element, columns: int) -> Heap:
    """The heap after all further columns are offered to it."""
    bounds = [g.ints([n]) for n in (len(heap), columns)]
    rest = [g.op("Slice", values, *bounds) for values in table]

    def step(
        states: Sequence[ir.Value], offered: Sequence[ir.Value]
    ) -> tuple[Sequence[ir.Value], Sequence[ir.Value]]:
        before = list(zip(states[::2], states[1::2], strict=True))
        element = offered[0], offered[1]
        accepted = g.op("Greater", element[0], before[0][0])
        after = _settled(g, before, 0, element, accepted)
        return [value for element in after for value in element], []

    flat = [value for element in heap for value in element]
    types = _TYPES * (len(heap) + 1)
    states, _ = scan(g, step, flat, rest, single=columns - len(heap) == 1, types=types)
    return list(zip(states[::2], states[1::2], strict=True))


def _settled(
    g: Graph, heap: Heap, hole: int, element: Element, where: ir.Value | None = None
) -> Heap:
    """The heap with `element` put at `hole`, in the rows where `where` is true (None: in all).

    It sinks past the lesser child, as long as that is not greater; of equal children the right one
    counts as the lesser.
    """
    settled, (left, right) = list(heap), (2 * hole + 1, 2 * hole + 2)
    if left >= len(heap):
        settled[hole] = _chosen(g, where, element, heap[hole])
        return settled
    child, goes_left = heap[left], None
    if right < len(heap):
        goes_left = g.op("Greater", heap[right][0], heap[left][0])
        child = _chosen(g, goes_left, heap[left], heap[right])
    sinks = g.op("LessOrEqual", child[0], element[0])
    settled[hole] = _chosen(g, where, _chosen(g, sinks, child, element), heap[hole])
    sinks = sinks if where is None else g.op("And", where, sinks)
    if goes_left is None:
        return _settled(g, settled, left, element, sinks)
    for branch, is_taken in ((left, goes_left), (right, g.op("Not", goes_left))):
        settled = list(_settled(g, settled, branch, element, g.op("And", sinks, is_taken)))
    return settled


def _chosen(g: Graph, where: ir.Value | None, element: Element, other: Element) -> Element:
    if where is None:
        return element
    return g.op("Where", where, element[0], other[0]), g.op("Where", where, element[1], other[1])
