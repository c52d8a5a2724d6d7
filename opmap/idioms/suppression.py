"""Boxes picked one after the other, each of which lowers or drops the scores of the others.

ONNX's NonMaxSuppression drops boxes alone, and takes no threshold that all overlaps reach or none
does. Here each iteration of a Loop picks the box of the greatest score, the first of equal ones.
The picked box is among the others: it overlaps itself, unless it has no area.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.heap import Heaps
from tflite_ort.opmap.onnx_graph import ir

_GONE = np.float32(-np.inf)


@record
class Suppression:
    """What a picked box does to the others.

    Args:
        overlap: float [1]; a box whose overlap reaches it is dropped.
        lowest: float [1]; so is one whose score does not exceed it.
        decay: float [1]; other scores are multiplied by exp(decay * overlap^2). None: they stay.
    """

    overlap: ir.Value
    lowest: ir.Value
    decay: ir.Value | None


@record
class _Corners:
    """Boxes by their least and greatest (y, x), [2, N] each, and their areas [N], in float64: their
    sums exceed what 16-bit floats hold, which a file may have for 32-bit ones."""

    low: ir.Value
    high: ir.Value
    area: ir.Value
    empty: ir.Value

    @classmethod
    def of(cls, g: Graph, boxes: ir.Value) -> _Corners:
        """The corners of boxes [N, 4] by two opposite corners; a NaN is no less than a number."""
        wide = g.op("Transpose", g.cast(boxes, ir.DataType.DOUBLE), perm=[1, 0])
        one, other = g.op_multi("Split", wide, outputs=2, axis=0, num_outputs=2)
        low = g.op("Where", g.op("Less", other, one), other, one)
        high = g.op("Where", g.op("Less", one, other), other, one)
        area = _product(g, g.op("Sub", high, low))
        return cls(low, high, area, g.op("LessOrEqual", area, g.constant(0, np.float64)))

    def overlaps(self, g: Graph, index: ir.Value) -> ir.Value:
        """Intersection over union of the box at `index` [1] with all boxes, float [N]; 0 without an
        area."""
        low, high = (g.op("Gather", side, index, axis=1) for side in (self.low, self.high))
        sides = g.op("Sub", g.op("Min", self.high, high), g.op("Max", self.low, low))
        common = _product(g, g.op("Max", sides, g.constant(0, np.float64)))
        area, empty = (g.op("Gather", each, index) for each in (self.area, self.empty))
        union = g.op("Sub", g.op("Add", self.area, area), common)
        found = g.cast(g.op("Div", common, union), ir.DataType.FLOAT)
        return g.op("Where", g.op("Or", self.empty, empty), g.constant(0, np.float32), found)


def _product(g: Graph, sides: ir.Value) -> ir.Value:
    """[2, N] as [N]."""
    return g.op("ReduceProd", sides, g.ints([0]), keepdims=0)


def picked(
    g: Graph, boxes: ir.Value, scores: ir.Value, most: ir.Value, by: Suppression
) -> tuple[ir.Value, ir.Value]:
    """The indices (int64) of the boxes picked, and their scores then, [K] each.

    No more are picked than there are scores above the lowest.

    Args:
        boxes, scores: [N, 4] and [N].
        most: int64 [1].
    """
    corners, gone = _Corners.of(g, boxes), g.constant(_GONE)

    def build(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        _as_scalars(arguments[:2])
        given = arguments[2]
        index = g.op("ArgMax", given, axis=0, keepdims=1)
        left = _left(g, corners.overlaps(g, index), given, by)
        highest = g.op("ReduceMax", left, keepdims=1)
        goes_on = g.reshape(g.op("Greater", highest, by.lowest), ())
        score = g.op("Gather", given, index)
        index.dtype, score.dtype = ir.DataType.INT64, ir.DataType.FLOAT
        index.shape = score.shape = (1,)  # ONNX Runtime needs them where no iteration runs
        return [goes_on, left, index, score]

    above = g.op("Greater", scores, by.lowest)
    count = g.op("ReduceSum", g.cast(above, ir.DataType.INT64), keepdims=1)
    rounds = g.reshape(g.op("Min", most, count), ())
    body = g.body([ir.DataType.INT64, ir.DataType.BOOL, ir.DataType.FLOAT], build)
    start = g.op("Where", above, scores, gone)
    _, indices, kept = g.op_multi("Loop", rounds, None, start, outputs=3, body=body)
    return g.reshape(indices, (-1,)), g.reshape(kept, (-1,))


def _as_scalars(arguments: Sequence[ir.Value]) -> None:
    """Say the shapes of a Loop's number and condition, which ONNX Runtime needs."""
    for each in arguments:
        each.shape = ()


def _left(g: Graph, overlaps: ir.Value, scores: ir.Value, by: Suppression) -> ir.Value:
    """The scores after a box with these overlaps is picked; of dropped boxes the lowest number."""
    apart = g.op("Not", g.op("GreaterOrEqual", overlaps, by.overlap))
    if by.decay is not None:
        exponent = g.op("Mul", g.op("Mul", overlaps, by.decay), overlaps)
        scores = g.op("Mul", scores, g.op("Exp", exponent))
        apart = g.op("And", apart, g.op("Greater", scores, by.lowest))
    return g.op("Where", apart, scores, g.constant(_GONE))


def picked_by_heap(
    g: Graph, boxes: ir.Value, scores: ir.Value, most: ir.Value, by: Suppression, count: int
) -> tuple[ir.Value, ir.Value]:
    """As `picked` without decay, but equal scores come in the order of TFLite's heap.

    Each iteration takes the first element of the heap. A box that no picked one overlaps is picked,
    and goes back into the heap: it overlaps itself, unless it has no area.

    Args:
        count: how many boxes there are.
    """
    corners, heaps = _Corners.of(g, boxes), Heaps.of(g, scores, count)
    candidates = g.reshape(g.op("NonZero", g.op("Greater", scores, by.lowest)), (-1,))
    whole = g.op("Shape", candidates)
    bound = g.op("Min", whole, most)

    def build(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        _as_scalars(arguments[:2])
        heap, size, dropped, number = arguments[2:]
        box = g.op("Gather", heap, g.ints([0]))
        heap, last = heaps.popped(g, heap, size), g.op("Sub", size, g.ints(1))
        fits = g.op("Not", g.op("Gather", dropped, box))

        def taken() -> list[ir.Value]:
            overlapped = g.op("GreaterOrEqual", corners.overlaps(g, box), by.overlap)
            return [heaps.pushed(g, heap, last, box), g.op("Or", dropped, overlapped)]

        then = g.body([], lambda _: taken())
        other = g.body([], lambda _: [g.op("Identity", each) for each in (heap, dropped)])
        fitting = g.reshape(fits, ())
        heap, dropped = g.op_multi("If", fitting, outputs=2, then_branch=then, else_branch=other)
        one = g.cast(fits, ir.DataType.INT64)
        size, number = g.op("Add", last, one), g.op("Add", number, one)
        left = g.op("And", g.op("Greater", size, g.ints(0)), g.op("Less", number, bound))
        for each, type in ((box, ir.DataType.INT64), (fits, ir.DataType.BOOL)):
            each.dtype, each.shape = type, (1,)  # ONNX Runtime needs them where nothing is picked
        return [g.reshape(left, ()), heap, size, dropped, number, box, fits]

    int64, boolean = ir.DataType.INT64, ir.DataType.BOOL
    body = g.body([int64, boolean, int64, int64, boolean, int64], build)
    none = g.op("Expand", g.constant([False]), g.op("Shape", scores))
    begins = g.reshape(g.op("Greater", bound, g.ints(0)), ())
    rounds = g.reshape(g.op("Add", whole, bound), ())
    given = (_filled_heap(g, heaps, candidates, whole), whole, none, g.ints([0]))
    *_, taken, fits = g.op_multi("Loop", rounds, begins, *given, outputs=6, body=body)
    taken, fits = (g.reshape(each, (-1,)) for each in (taken, fits))
    indices = g.op("Compress", taken, fits, axis=0)
    return indices, g.op("Gather", scores, indices)


def decayed_by_heap(
    g: Graph, boxes: ir.Value, scores: ir.Value, most: ir.Value, by: Suppression, count: int
) -> tuple[ir.Value, ir.Value]:
    """As `picked_by_heap`, with decay.

    The heap has the score that a box had when it was pushed. If a picked box has lowered it since,
    the box goes back into the heap with what it has now. Otherwise it is picked, and goes back too.
    """
    corners, first = _Corners.of(g, boxes), Heaps.of(g, scores, count)
    above = g.op("Greater", scores, by.lowest)
    candidates = g.reshape(g.op("NonZero", above), (-1,))
    whole = g.op("Shape", candidates)
    bound = g.op("Min", whole, most)

    def build(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        _as_scalars(arguments[:2])
        heap, size, pushed, present, number = arguments[2:]
        box = g.op("Gather", heap, g.ints([0]))
        before, now = (g.op("Gather", each, box) for each in (pushed, present))
        heap, last = first.scored(pushed).popped(g, heap, size), g.op("Sub", size, g.ints(1))
        stays, goes_back = g.op("Equal", before, now), g.op("Greater", now, by.lowest)
        pushed = g.op("ScatterElements", pushed, box, now)
        again = first.scored(pushed).pushed(g, heap, last, box)
        heap = g.op("Where", goes_back, again, heap)
        then = g.body([], lambda _: [_left(g, corners.overlaps(g, box), present, by)])
        other = g.body([], lambda _: [g.op("Identity", present)])
        fitting = g.reshape(stays, ())
        present = g.op("If", fitting, then_branch=then, else_branch=other)
        size = g.op("Add", last, g.cast(goes_back, ir.DataType.INT64))
        number = g.op("Add", number, g.cast(stays, ir.DataType.INT64))
        left = g.op("And", g.op("Greater", size, g.ints(0)), g.op("Less", number, bound))
        types = (ir.DataType.INT64, ir.DataType.FLOAT, ir.DataType.BOOL)
        for each, type in zip((box, before, stays), types, strict=True):
            each.dtype, each.shape = type, (1,)  # ONNX Runtime needs them where nothing is picked
        return [g.reshape(left, ()), heap, size, pushed, present, number, box, before, stays]

    int64, floats = ir.DataType.INT64, ir.DataType.FLOAT
    body = g.body([int64, ir.DataType.BOOL, int64, int64, floats, floats, int64], build)
    begins = g.reshape(g.op("Greater", bound, g.ints(0)), ())
    rounds = g.op("Add", g.op("Mul", whole, g.op("Add", bound, g.ints(1))), bound)
    present = g.op("Where", above, scores, g.constant(_GONE))
    given = (_filled_heap(g, first, candidates, whole), whole, first.scores, present, g.ints([0]))
    rounds = g.reshape(rounds, ())
    *_, taken, kept, fits = g.op_multi("Loop", rounds, begins, *given, outputs=8, body=body)
    taken, kept, fits = (g.reshape(each, (-1,)) for each in (taken, kept, fits))
    return g.op("Compress", taken, fits, axis=0), g.op("Compress", kept, fits, axis=0)


def _filled_heap(g: Graph, heaps: Heaps, candidates: ir.Value, count: ir.Value) -> ir.Value:
    """The heap after `count` [1] candidates were pushed one after the other."""

    def build(arguments: Sequence[ir.Value]) -> Sequence[ir.Value]:
        _as_scalars(arguments[:2])
        iteration, goes_on, heap = arguments
        place = g.reshape(iteration, (1,))
        heap = heaps.pushed(g, heap, place, g.op("Gather", candidates, place))
        return [g.op("Identity", goes_on), heap]

    body = g.body([ir.DataType.INT64, ir.DataType.BOOL, ir.DataType.INT64], build)
    return g.op("Loop", g.reshape(count, ()), None, heaps.empty(g), body=body)


def has_odd_boxes(
    g: Graph, boxes: ir.Value, scores: ir.Value, lowest: ir.Value, count: int
) -> ir.Value:
    """Whether TFLite's heap takes another order than that of descending scores, a bool []: scores
    above the lowest are equal, or their box has no area."""
    above = g.op("Greater", scores, lowest)
    ranked = g.op_multi(
        "TopK", g.op("Where", above, scores, g.constant(_GONE)), g.ints([count]), outputs=2
    )[0]
    one, other = (
        g.op("Slice", ranked, *(g.ints([n]) for n in (start, end, 0)))
        for start, end in ((0, -1), (1, count))
    )
    tied = g.op("And", g.op("Equal", one, other), g.op("Greater", other, lowest))
    area = _Corners.of(g, boxes).area
    flat = g.op("And", g.op("Not", g.op("Greater", area, g.constant(0, np.float64))), above)
    found = g.cast(g.op("Concat", tied, flat, axis=0), ir.DataType.INT32)
    most = g.op("ReduceMax", found, g.ints([0]), keepdims=0)
    return g.op("Greater", most, g.constant(0, np.int32))
