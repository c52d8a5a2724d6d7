"""Numbers of random distributions in nodes, from random words and from units in [0, 1)."""

from __future__ import annotations

from math import pi
from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema.arithmetic.generators import LEAST, PHILOX_LANES


def blocks_of(g: Graph, numbers: ir.Value) -> ir.Value:
    """The number of blocks that have so many words."""
    above = g.op("Add", numbers, g.ints(PHILOX_LANES - 1))
    return g.op("Div", above, g.ints(PHILOX_LANES))


def shaped(g: Graph, numbers: ir.Value, count: ir.Value, shape: ir.Value) -> ir.Value:
    """The first `count` [1] numbers, in `shape`."""
    first = g.op("Slice", numbers, g.ints([0]), count)
    return g.op("Reshape", first, shape, allowzero=1)


def normal(g: Graph, units: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """Box-Muller pairs Sqrt(-2 Log u) * (Sin, Cos)(2 pi v) of pairs of units."""
    pairs = g.reshape(units, (-1, 2))
    u, v = g.op_multi("Split", pairs, outputs=2, axis=1, num_outputs=2)
    log = g.op("Log", g.op("Max", u, g.constant(LEAST, dtype)))
    radius = g.op("Sqrt", g.op("Mul", log, g.constant(-2, dtype)))
    turns = g.cast(v, ir.DataType.DOUBLE)
    angle = g.cast(g.op("Mul", turns, g.constant(2 * pi)), dtype)
    waves = g.op("Concat", g.op("Sin", angle), g.op("Cos", angle), axis=1)
    return g.reshape(g.op("Mul", waves, radius), (-1,))


def chosen(
    g: Graph, logits: ir.Value, dtype: np.dtype[Any], units: ir.Value, result: np.dtype[Any]
) -> ir.Value:
    """Classes [batch, samples] by units [batch, samples, 1]: how many running sums of a row are not
    above a unit times the last sum.

    Args:
        logits: [batch, classes] of `dtype`.
        result: the type of the classes, 32 or 64 bits.
    """
    last = g.ints([-1])
    sums = g.op("Unsqueeze", _running_sums(g, logits, dtype), g.ints([1]))
    places = g.op("Mul", units, g.op("Gather", sums, last, axis=2))
    passed = g.cast(g.op("LessOrEqual", sums, places), result)
    return g.op("ReduceSum", passed, last, keepdims=0)


def _running_sums(g: Graph, logits: ir.Value, dtype: np.dtype[Any]) -> ir.Value:
    """CumSum of Exp(logit - greatest) along a row, in float64; a non-finite logit has weight 0."""
    finite = g.op("Not", g.op("Or", g.op("IsNaN", logits), g.op("IsInf", logits)))
    known = g.op("Where", finite, logits, g.constant(np.finfo(dtype).min, dtype))
    greatest = g.op("ReduceMax", known, g.ints([1]), keepdims=1)
    wide, most = (g.cast(x, ir.DataType.DOUBLE) for x in (logits, greatest))
    odds = g.op("Where", finite, g.op("Exp", g.op("Sub", wide, most)), g.constant(0.0))
    return g.op("CumSum", odds, g.ints(1))
