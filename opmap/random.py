"""Random numbers: those of TFLite's own generator, in integer nodes.

The position in the stream is a variable, in blocks. The random operators of ONNX have another
generator and no state. One of them makes the key of a stream without seeds. It does not make the
numbers: in ONNX Runtime consecutive nodes start with nearly the same ones.
"""

from __future__ import annotations

from math import pi

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.counters import check_count, philox, unit, unit_double
from tflite_ort.opmap.idioms.indices import product, sizes_of
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, RandomOptions, Untranslatable
from tflite_ort.schema.arithmetic.generators import LEAST, PHILOX_LANES, SKIPPED, random_seeds
from tflite_ort.schema.values.sizes import is_known

_LOWEST = np.finfo(np.float32).min
_KEY_BITS = 53  # as many as a float64 has


@translator(Op.RANDOM_UNIFORM, versions=(1, 1))
def random_uniform(op: OperatorView[RandomOptions], g: Graph) -> None:
    """Uniform in [0, 1): the low 23 bits of a word as a fraction."""
    shape, count = _sizes(op, g)
    g.write(op.output, _shaped(g, unit(g, _taken(op, g, count)), count, shape))


@translator(Op.RANDOM_STANDARD_NORMAL, versions=(1, 1))
def random_standard_normal(op: OperatorView[RandomOptions], g: Graph) -> None:
    """Box-Muller pairs Sqrt(-2 Log u) * (Sin, Cos)(2 pi v)."""
    shape, count = _sizes(op, g)
    pairs = g.reshape(unit(g, _taken(op, g, count)), (-1, 2))
    u, v = g.op_multi("Split", pairs, outputs=2, axis=1, num_outputs=2)
    log = g.op("Log", g.op("Max", u, g.constant(LEAST, np.float32)))
    radius = g.op("Sqrt", g.op("Mul", log, g.constant(-2, np.float32)))
    turns = g.cast(v, ir.DataType.DOUBLE)
    angle = g.cast(g.op("Mul", turns, g.constant(2 * pi)), ir.DataType.FLOAT)
    waves = g.op("Concat", g.op("Sin", angle), g.op("Cos", angle), axis=1)
    numbers = g.reshape(g.op("Mul", waves, radius), (-1,))
    g.write(op.output, _shaped(g, numbers, count, shape))


@translator(Op.MULTINOMIAL, versions=(1, 1))
def multinomial(op: OperatorView[RandomOptions], g: Graph) -> None:
    """Counts the running sums of a row that are not above a uniform number times the last sum."""
    logits = op["logits"]
    if logits.shape[1] == 0:
        raise Untranslatable("there are no classes")
    check_count(g, *op.output.shape, logits.shape[1])
    batch, samples = g.size(logits.shape[0]), g.reshape(sizes_of(g, op["num_samples"]), (1,))
    count, last = g.op("Mul", batch, samples), g.ints([-1])
    skipped = g.op("Mul", _blocks(g, samples), g.ints(PHILOX_LANES * SKIPPED))
    numbers = _taken(op, g, g.op("Add", count, count), g.op("Mul", batch, skipped))
    shape = g.op("Concat", batch, samples, g.ints([1]), axis=0)
    places = _shaped(g, unit_double(g, numbers), count, shape)
    sums = g.op("Unsqueeze", _running_sums(g, g.read(logits)), g.ints([1]))
    places = g.op("Mul", places, g.op("Gather", sums, last, axis=2))
    passed = g.cast(g.op("LessOrEqual", sums, places), ir.DataType[op.output.type.name])
    g.write(op.output, g.op("ReduceSum", passed, last, keepdims=0))


def _running_sums(g: Graph, logits: ir.Value) -> ir.Value:
    """CumSum of Exp(logit - greatest) along a row, in float64; a non-finite logit has weight 0."""
    finite = g.op("Not", g.op("Or", g.op("IsNaN", logits), g.op("IsInf", logits)))
    known = g.op("Where", finite, logits, g.constant(_LOWEST, np.float32))
    greatest = g.op("ReduceMax", known, g.ints([1]), keepdims=1)
    wide, most = (g.cast(x, ir.DataType.DOUBLE) for x in (logits, greatest))
    odds = g.op("Where", finite, g.op("Exp", g.op("Sub", wide, most)), g.constant(0.0))
    return g.op("CumSum", odds, g.ints(1))


def _sizes(op: OperatorView[RandomOptions], g: Graph) -> tuple[ir.Value, ir.Value]:
    """The shape of the output, and the number of its elements, [1]."""
    shape = op.output.shape
    check_count(g, *shape)
    if is_known(*shape):
        return g.ints(shape), product(g, shape)
    sizes = sizes_of(g, op["shape"])
    return sizes, product(g, sizes)


def _taken(
    op: OperatorView[RandomOptions], g: Graph, count: ir.Value, skipped: ir.Value | None = None
) -> ir.Value:
    """The next numbers of the stream in whole blocks, at least `count` [1].

    Args:
        skipped: [1], by how many blocks the stream advances; None for the blocks taken.
    """
    taken, seeds = _blocks(g, count), random_seeds(op.options)
    low = g.op("Range", *(g.ints(0), g.op("Squeeze", taken), g.ints(1)))
    if seeds is None:
        key, high = _any_key(g)
    else:
        key, high = (g.constant([seed], np.uint64) for seed in seeds)
        before = g.read(op["position"])
        low = g.op("Add", low, before)
        after = g.op("Add", before, g.op("Squeeze", taken if skipped is None else skipped))
        g.write(op["position"], after)
    return philox(g, key, g.cast(low, ir.DataType.UINT64), high)


def _any_key(g: Graph) -> tuple[ir.Value, ir.Value]:
    """A key and an upper half of the counters, which differ in every run."""
    if g.target.fallback:
        raise Untranslatable("the sessions of a process start with the same random numbers")
    size = 2.0**_KEY_BITS
    drawn = g.op("RandomUniform", dtype=ir.DataType.DOUBLE, high=size, low=0.0, shape=[2])
    words = g.cast(drawn, ir.DataType.UINT64)
    key, high = g.op_multi("Split", words, outputs=2, axis=0, num_outputs=2)
    return key, high


def _blocks(g: Graph, numbers: ir.Value) -> ir.Value:
    """The number of blocks that have so many numbers."""
    above = g.op("Add", numbers, g.ints(PHILOX_LANES - 1))
    return g.op("Div", above, g.ints(PHILOX_LANES))


def _shaped(g: Graph, numbers: ir.Value, count: ir.Value, shape: ir.Value) -> ir.Value:
    """The first `count` [1] numbers, in `shape`."""
    first = g.op("Slice", numbers, g.ints([0]), count)
    return g.op("Reshape", first, shape, allowzero=1)
