"""TensorFlow's random numbers that follow from seeds alone, in integer nodes: in exports.

What is drawn by rejection one by one (gamma, Poisson, parts of images) has no translation. Seeds
that are constants make constants; those without seeds are TFLite's own operators.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.opmap.flex.elementwise import FLOATS, read_computed
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.counters import integers, philox, unit, unit_double
from tflite_ort.opmap.idioms.indices import failing, product, sizes_of
from tflite_ort.opmap.idioms.random_numbers import blocks_of, chosen, normal, shaped
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType, TensorView, Untranslatable
from tflite_ort.schema.arithmetic.generators import (
    ALGORITHMS,
    MANTISSA,
    MANTISSAS,
    PHILOX,
    PHILOX_LANES,
    SCRAMBLED,
    SPARE,
    TRUNCATED,
)
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Any]
_D = ir.DataType
_T = TensorType
_UNSIGNED = {_T.INT32: _T.UINT32, _T.INT64: _T.UINT64}
# By the numbers of a block, the blocks of which a group of truncated numbers is made: too few are
# inside once in 1e13 groups.
_TRIED = {4: 4, 2: 6}


@record
class _Stream:
    """Random words from a key, and a counter in halves: uint64 [1]."""

    key: ir.Value
    low: ir.Value
    high: ir.Value

    def words(self, g: Graph, blocks: ir.Value) -> ir.Value:
        """The words [4 N] of the blocks with these numbers, int64 [N]."""
        low = g.op("Add", self.low, g.cast(blocks, _D.UINT64))
        # The highest bit is gone where the sum has wrapped.
        kept = g.op("BitwiseAnd", self.low, g.op("BitwiseNot", low))
        carried = g.op("BitShift", kept, g.constant(63, np.uint64), direction="RIGHT")
        return philox(g, self.key, low, g.op("Add", self.high, carried))

    def first(self, g: Graph, count: ir.Value) -> ir.Value:
        """The first words in whole blocks, at least `count`, int64 [1]."""
        taken = g.op("Squeeze", blocks_of(g, count))
        return self.words(g, g.op("Range", g.ints(0), taken, g.ints(1)))


def _stream(op: View, g: Graph) -> _Stream:
    """The stream of a stateless operator: from two seeds, or from a key and a counter."""
    if "seed" in op.names:
        return _scrambled(g, op["seed"])
    counter = g.read(op["counter"], domain=Domain.FILE)
    low, high = (_part(g, counter, at) for at in (0, 1))
    algorithm = op["alg"].data
    if algorithm is None:  # makes the graph fail unless it is one of those that are known
        known = [g.op("Equal", g.whole(op["alg"]), g.ints(each)) for each in ALGORITHMS]
        wrong = g.op("Not", g.op("Or", *known))
        low = g.op("Add", low, g.cast(failing(g, g.ints([0]), wrong), _D.UINT64))
    elif int(algorithm.item()) not in ALGORITHMS:
        raise Untranslatable(f"the random numbers of algorithm {algorithm.item()} are not known")
    return _Stream(g.read(op["key"], domain=Domain.FILE), low, high)


def _scrambled(g: Graph, seed: TensorView) -> _Stream:
    """The stream of two seeds."""
    first, second = (g.cast(_part(g, g.whole(seed), at), _D.UINT64) for at in (0, 1))
    words = philox(g, g.constant([SCRAMBLED], np.uint64), first, second)
    both = integers(g, words, _T.UINT64)
    return _Stream(_part(g, both, 0), g.constant([0], np.uint64), _part(g, both, 1))


def _part(g: Graph, pair: ir.Value, at: int) -> ir.Value:
    return g.op("Gather", pair, g.ints([at]))


def _leave_to_numpy(g: Graph) -> None:
    if g.target.fallback:
        raise Untranslatable("numpy draws random numbers faster")


@flex_translator("StatelessRandomGetKeyCounter", "StatelessRandomGetKeyCounterAlg")
def key_counter(op: View, g: Graph) -> None:
    """A block of Philox of the seeds, under a key that is always the same."""
    _leave_to_numpy(g)
    stream = _scrambled(g, op["seed"])
    g.write(op.outputs[0], g.op("Identity", stream.key), domain=Domain.FILE)
    counter = g.op("Concat", stream.low, stream.high, axis=0)
    g.write(op.outputs[1], counter, domain=Domain.FILE)
    if len(op.outputs) > 2:
        g.write(op.outputs[2], g.op("Identity", g.constant(PHILOX, np.int32)))


@flex_translator("StatelessRandomGetAlg")
def algorithm(op: View, g: Graph) -> None:
    """A constant."""
    g.write(op.output, g.op("Identity", g.constant(PHILOX, np.int32)))


def _drawn(op: View, g: Graph, numbers: Callable[[ir.Value], ir.Value]) -> None:
    """Write what `numbers` makes of how many there are, int64 [1]; more are left away."""
    shape = g.ints(op.output.shape) if is_known(*op.output.shape) else sizes_of(g, op["shape"])
    count = product(g, shape)
    drawn = g.cast(numbers(count), op.output.dtype)
    g.write(op.output, shaped(g, drawn, count, shape), domain=Domain.FILE)


def _kind(op: View) -> str:
    return op.name.removeprefix("FlexStateless").removeprefix("Random").removesuffix("V2")


@flex_translator(
    *("StatelessRandomUniform", "StatelessRandomUniformV2"),
    *("StatelessRandomNormal", "StatelessRandomNormalV2"),
)
def real(op: View, g: Graph) -> None:
    """A number from a word, or of 64 bits from two."""
    _leave_to_numpy(g)
    stream, type, is_normal = _stream(op, g), op.output.type, _kind(op) == "Normal"

    def numbers(count: ir.Value) -> ir.Value:
        if type is _T.FLOAT64:
            units = unit_double(g, stream.first(g, g.op("Add", count, count)))
        else:
            bits = MANTISSA if is_normal else MANTISSAS[type.name]
            units = unit(g, stream.first(g, count), bits)
        return normal(g, units, _wide(type)) if is_normal else units

    _drawn(op, g, numbers)


def _wide(type: TensorType) -> np.dtype[Any]:
    """The type in which numbers of a type are computed."""
    return np.dtype(np.float64 if type is _T.FLOAT64 else np.float32)


@flex_translator("StatelessTruncatedNormal", "StatelessTruncatedNormalV2")
def truncated(op: View, g: Graph) -> None:
    """The first normal numbers of each group of blocks that are inside; the graph fails where a
    group has too few."""
    _leave_to_numpy(g)
    stream, wide = _stream(op, g), _wide(op.output.type)
    size = PHILOX_LANES * 4 // wide.itemsize  # numbers of a block
    tried = _TRIED[size]

    def numbers(count: ir.Value) -> ir.Value:
        above = g.op("Add", count, g.ints(size - 1))
        groups = g.op("Squeeze", g.op("Div", above, g.ints(size)))
        starts = g.op("Range", g.ints(0), groups, g.ints(1))
        starts = g.op("Mul", starts, g.ints(size * SPARE // PHILOX_LANES))
        blocks = g.op("Add", g.op("Unsqueeze", starts, g.ints([1])), g.ints(np.arange(tried)))
        words = stream.words(g, g.reshape(blocks, (-1,)))
        units = unit(g, words) if wide.itemsize == 4 else unit_double(g, words)
        drawn = g.reshape(normal(g, units, wide), (-1, tried * size))
        inside = g.op("Less", g.op("Abs", drawn), g.constant(TRUNCATED, wide))
        # Those inside have the places that come first.
        late = g.op("Where", inside, g.ints(0), g.ints(tried * size))
        late = g.op("Add", late, g.ints(np.arange(tried * size)))
        last, places = g.op_multi(
            "TopK", late, g.ints([size]), outputs=2, axis=1, largest=0, sorted=1
        )
        places = failing(g, places, g.op("GreaterOrEqual", last, g.ints(tried * size)))
        return g.reshape(g.op("GatherElements", drawn, places, axis=1), (-1,))

    _drawn(op, g, numbers)


@flex_translator("StatelessRandomUniformFullInt", "StatelessRandomUniformFullIntV2")
def full_integers(op: View, g: Graph) -> None:
    """All bits of words."""
    _leave_to_numpy(g)
    stream = _stream(op, g)
    _drawn(op, g, lambda count: _integers(g, stream, count, op.output.type))


def _integers(g: Graph, stream: _Stream, count: ir.Value, type: TensorType) -> ir.Value:
    is_long = type in (_T.INT64, _T.UINT64)
    words = g.op("Add", count, count) if is_long else count
    return integers(g, stream.first(g, words), type)


@flex_translator("StatelessRandomUniformInt", "StatelessRandomUniformIntV2")
def bounded_integers(op: View, g: Graph) -> None:
    """The remainder of all bits, from the least number on."""
    _leave_to_numpy(g)
    stream = _stream(op, g)
    unsigned = _UNSIGNED.get(op.output.type)
    if unsigned is None:
        raise Untranslatable(f"{op.output.type.name} between bounds")
    low, high = (g.reshape(g.whole(op[name]), (1,)) for name in ("minval", "maxval"))
    low = failing(g, low, g.op("GreaterOrEqual", low, high))
    span = g.cast(g.op("Sub", high, low), _D.UINT64)

    def numbers(count: ir.Value) -> ir.Value:
        drawn = g.cast(_integers(g, stream, count, unsigned), _D.UINT64)
        return g.op("Add", g.cast(g.op("Mod", drawn, span), _D.INT64), low)

    _drawn(op, g, numbers)


@flex_translator("StatelessMultinomial")
def classes(op: View, g: Graph) -> None:
    """As MULTINOMIAL."""
    _leave_to_numpy(g)
    logits, stream = op["logits"], _stream(op, g)
    if logits.shape[1] == 0:
        raise Untranslatable("there are no classes")
    value, wide = read_computed(g, logits, FLOATS, Layout.LAST), _wide(logits.type)
    batch = g.op("Shape", value, start=0, end=1)
    samples = g.reshape(sizes_of(g, op["num_samples"]), (1,))
    count = g.op("Mul", batch, samples)
    units = unit_double(g, stream.first(g, g.op("Add", count, count)))
    shape = g.op("Concat", batch, samples, g.ints([1]), axis=0)
    units = shaped(g, units, count, shape)
    g.write(op.output, chosen(g, value, wide, units, op.output.dtype))
