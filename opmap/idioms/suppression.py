"""Boxes picked one after the other, each of which lowers or drops the scores of the others.

ONNX's NonMaxSuppression drops boxes alone, and takes no threshold that all overlaps reach or none
does. Here each iteration of a Loop picks the box of the greatest score, the first of equal ones.
The picked box is among the others: it overlaps itself, unless it has no area.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.opmap.graph import Graph, ir
from tflite_ort.records import record

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
        """Of boxes [N, 4] by two opposite corners, of which a NaN is no less than a number."""
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
        for scalar in arguments[:2]:  # ONNX Runtime needs their shapes
            scalar.shape = ()
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


def _left(g: Graph, overlaps: ir.Value, scores: ir.Value, by: Suppression) -> ir.Value:
    """The scores after a box with these overlaps is picked; of dropped boxes the lowest number."""
    apart = g.op("Not", g.op("GreaterOrEqual", overlaps, by.overlap))
    if by.decay is not None:
        exponent = g.op("Mul", g.op("Mul", overlaps, by.decay), overlaps)
        scores = g.op("Mul", scores, g.op("Exp", exponent))
        apart = g.op("And", apart, g.op("Greater", scores, by.lowest))
    return g.op("Where", apart, scores, g.constant(_GONE))
