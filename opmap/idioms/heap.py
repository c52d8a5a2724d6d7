"""A binary heap in ONNX, with the moves of the C++ library that TFLite is built with.

TFLite's NON_MAX_SUPPRESSION takes candidates from a heap. Which of equal scores comes first depends
on how elements move in it.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir

_LOWEST, _HIGHEST = np.float32(-np.inf), np.float32(np.inf)
_END = np.iinfo(np.int64).max


@record
class Heaps:
    """What all states of a heap share. A state is a list of candidates, int64 [2^levels]: the nodes
    of a full tree, and a last one that stands for what is above the root.

    Candidate `count` stands for no element: it is less than all. The next one is greater than all.

    Args:
        levels: of the tree.
        count: how many candidates there are.
        scores: by candidate, float [count + 2].
        firsts: the place of each inner node's first child.
    """

    levels: int
    count: int
    scores: ir.Value
    firsts: ir.Value

    def scored(self, scores: ir.Value) -> Heaps:
        """The same with other scores, of which only those that are in no heap may differ."""
        return Heaps(self.levels, self.count, scores, self.firsts)

    @classmethod
    def of(cls, g: Graph, scores: ir.Value, count: int) -> Heaps:
        """A heap of scores [count]; candidates with the lowest score or NaN are never pushed."""
        levels, ends = count.bit_length(), g.constant([_LOWEST, _HIGHEST], np.float32)
        firsts = g.op("Range", g.ints(1), g.ints((1 << levels) - 1), g.ints(2))
        return cls(levels, count, g.op("Concat", scores, ends, axis=0), firsts)

    def empty(self, g: Graph) -> ir.Value:
        free = g.op("Expand", g.ints([self.count]), g.ints([(1 << self.levels) - 1]))
        return g.op("Concat", free, g.ints([self.count + 1]), axis=0)

    def pushed(self, g: Graph, heap: ir.Value, place: ir.Value, candidate: ir.Value) -> ir.Value:
        """The heap with a candidate [1] more at `place` [1], the first free one, from which it
        rises above lesser ones."""
        above = g.op("Div", g.op("Add", place, g.ints(1)), g.ints(1 << np.arange(self.levels)))
        up = g.op("Sub", above, g.ints(1))  # -1, the last place, is above the root
        there = g.op("Gather", heap, up)
        parents = _followed_by(g, there, self.count + 1)
        score = g.op("Gather", self.scores, candidate)
        rises, passes = (
            g.op("Less", g.op("Gather", self.scores, each), score) for each in (there, parents)
        )
        moved = g.op("Where", passes, parents, g.op("Where", rises, candidate, there))
        return g.op("ScatterElements", heap, up, moved)

    def popped(self, g: Graph, heap: ir.Value, size: ir.Value) -> ir.Value:
        """The heap without the first of its `size` [1] elements. The greater children move up, of
        equal ones the second; the last element rises from where that ends."""
        last = g.op("Sub", size, g.ints(1))
        candidate, free = g.op("Gather", heap, last), g.ints([self.count])
        candidate = g.op("Where", g.op("Greater", last, g.ints(0)), candidate, free)
        heap = g.op("ScatterElements", heap, last, free)
        path = self._greatest(g, heap)
        there = g.op("Gather", heap, path)
        below = _followed_by(g, there, self.count)
        score = g.op("Gather", self.scores, candidate)
        moves = g.op("GreaterOrEqual", g.op("Gather", self.scores, below), score)
        before = g.op("Slice", moves, g.ints([0]), g.ints([-1]), g.ints([0]))
        passed = g.op("Concat", g.constant([True]), before, axis=0)
        moved = g.op("Where", moves, below, g.op("Where", passed, candidate, there))
        return g.op("ScatterElements", heap, path, moved)

    def _greatest(self, g: Graph, heap: ir.Value) -> ir.Value:
        """The places from the root to a leaf, of children always the greater one."""
        scores, end = g.op("Gather", self.scores, heap), (1 << self.levels) - 1
        one, other = (
            g.op("Slice", scores, *(g.ints([n]) for n in (start, end, 0, 2))) for start in (1, 2)
        )
        second = g.cast(g.op("GreaterOrEqual", other, one), ir.DataType.INT64)
        child, places = g.op("Add", self.firsts, second), [g.ints([0])]
        for _ in range(self.levels - 1):
            places.append(g.op("Gather", child, places[-1]))
        return g.op("Concat", *places, axis=0)


def _followed_by(g: Graph, values: ir.Value, end: int) -> ir.Value:
    """The successor of each of the values; of the last one `end`."""
    rest = g.op("Slice", values, g.ints([1]), g.ints([_END]), g.ints([0]))
    return g.op("Concat", rest, g.ints([end]), axis=0)
