"""Random numbers: those of TFLite's own generator, in integer nodes.

The position in the stream is a variable, in blocks. The random operators of ONNX have another
generator and no state. One of them makes the key of a stream without seeds. It does not make the
numbers: in ONNX Runtime consecutive nodes start with nearly the same ones.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.counters import check_count, philox, unit, unit_double
from tflite_ort.opmap.idioms.indices import product, sizes_of
from tflite_ort.opmap.idioms.random_numbers import blocks_of, chosen, normal, shaped
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import translator
from tflite_ort.schema import Op, OperatorView, RandomOptions, Untranslatable
from tflite_ort.schema.arithmetic.generators import PHILOX_LANES, SKIPPED, random_seeds
from tflite_ort.schema.values.sizes import is_known

_FLOAT = np.dtype(np.float32)
_KEY_BITS = 53  # as many as a float64 has


@translator(Op.RANDOM_UNIFORM, versions=(1, 1))
def random_uniform(op: OperatorView[RandomOptions], g: Graph) -> None:
    """Uniform in [0, 1): the low 23 bits of a word as a fraction."""
    shape, count = _sizes(op, g)
    g.write(op.output, shaped(g, unit(g, _taken(op, g, count)), count, shape))


@translator(Op.RANDOM_STANDARD_NORMAL, versions=(1, 1))
def random_standard_normal(op: OperatorView[RandomOptions], g: Graph) -> None:
    """Box-Muller pairs Sqrt(-2 Log u) * (Sin, Cos)(2 pi v)."""
    shape, count = _sizes(op, g)
    numbers = normal(g, unit(g, _taken(op, g, count)), _FLOAT)
    g.write(op.output, shaped(g, numbers, count, shape))


@translator(Op.MULTINOMIAL, versions=(1, 1))
def multinomial(op: OperatorView[RandomOptions], g: Graph) -> None:
    """Counts the running sums of a row that are not above a uniform number times the last sum."""
    logits = op["logits"]
    if logits.shape[1] == 0:
        raise Untranslatable("there are no classes")
    check_count(g, *op.output.shape, logits.shape[1])
    batch, samples = g.size(logits.shape[0]), g.reshape(sizes_of(g, op["num_samples"]), (1,))
    count = g.op("Mul", batch, samples)
    skipped = g.op("Mul", blocks_of(g, samples), g.ints(PHILOX_LANES * SKIPPED))
    numbers = _taken(op, g, g.op("Add", count, count), g.op("Mul", batch, skipped))
    shape = g.op("Concat", batch, samples, g.ints([1]), axis=0)
    units = shaped(g, unit_double(g, numbers), count, shape)
    g.write(op.output, chosen(g, g.read(logits), _FLOAT, units, op.output.dtype))


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
    taken, seeds = blocks_of(g, count), random_seeds(op.options)
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
