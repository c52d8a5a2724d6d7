"""Random operators that move elements."""

from __future__ import annotations

import math

from tests.batching.random_graphs import INT, RandomGraph, Shape, Value, step
from tflite_ort.schema import (
    ConcatenationOptions,
    MirrorPadMode,
    MirrorPadOptions,
    Op,
    PackOptions,
    ReshapeOptions,
    ShapeOptions,
    SplitOptions,
    SplitVOptions,
    SqueezeOptions,
    StridedSliceOptions,
    UnpackOptions,
)
from tflite_ort.schema.values.semantics import strided_slice

# Shapes ----------------------------------------------------------------------------------------


def _factors(g: RandomGraph, size: int) -> Shape:
    shape: list[int] = []
    for _ in range(g.draw.randint(0, 3)):
        divisors = [n for n in range(1, size + 1) if size % n == 0]
        shape.append(g.draw.choice(divisors))
        size //= shape[-1]
    if size > 1 or not shape:
        shape.insert(g.draw.randint(0, len(shape)), size)
    return tuple(shape)


@step(5)
def reshape(g: RandomGraph) -> None:
    source = g.pick()
    if source is None:
        return
    shape = _factors(g, math.prod(source.shape))
    if g.draw.random() < 0.4:
        shape = (1, *shape)
    target = list(shape)
    if g.draw.random() < 0.5:
        target[g.draw.randrange(len(target))] = -1
    if g.draw.random() < 0.5:
        g.emit(Op.RESHAPE, [source, g.ints(target)], [shape], ReshapeOptions())
    else:
        g.emit(Op.RESHAPE, [source], [shape], ReshapeOptions(new_shape=tuple(target)))


@step()
def reshape_like(g: RandomGraph) -> None:
    """To the shape of another tensor, computed by SHAPE."""
    source = g.pick()
    like = g.pick(lambda v: source is not None and math.prod(v.shape) == math.prod(source.shape))
    if source is None or like is None or not like.shape:
        return
    g.emit(Op.SHAPE, [like], [(like.rank,)], ShapeOptions(out_type=INT), type=INT)
    shape = g.values.pop()
    g.emit(Op.RESHAPE, [source, shape.name], [like.shape], ReshapeOptions())


@step(2)
def squeeze(g: RandomGraph) -> None:
    source = g.pick(lambda v: 1 in v.shape)
    if source is None:
        return
    ones = [axis for axis, size in enumerate(source.shape) if size == 1]
    axes = g.draw.sample(ones, g.draw.randint(0, len(ones)))
    dropped = axes or ones
    shape = tuple(size for axis, size in enumerate(source.shape) if axis not in dropped)
    g.emit(Op.SQUEEZE, [source], [shape], SqueezeOptions(squeeze_dims=tuple(axes)))


@step(2)
def expand_dims(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank < 5)
    if source:
        axis = g.draw.randint(0, source.rank)
        shape = (*source.shape[:axis], 1, *source.shape[axis:])
        g.emit(Op.EXPAND_DIMS, [source, g.ints(axis)], [shape])


@step(3)
def transpose(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 1)
    if source:
        order = g.draw.sample(range(source.rank), source.rank)
        g.emit(Op.TRANSPOSE, [source, g.ints(order)], [tuple(source.shape[a] for a in order)])


@step(3)
def concatenation(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source is None:
        return
    axis = g.draw.randrange(source.rank)

    def fits(v: Value) -> bool:
        return v.rank == source.rank and all(
            a == b for i, (a, b) in enumerate(zip(v.shape, source.shape, strict=True)) if i != axis
        )

    others = [g.pick(fits) or source for _ in range(g.draw.randint(0, 2))]
    if g.draw.random() < 0.3:
        others.append(g.constant(source.shape))
    values = [source, *others]
    g.draw.shuffle(values)
    total = sum(v.shape[axis] for v in values)
    shape = (*source.shape[:axis], total, *source.shape[axis + 1 :])
    g.emit(
        Op.CONCATENATION,
        values,
        [shape],
        ConcatenationOptions(axis=axis - g.draw.choice((0, source.rank))),
    )


@step(2)
def pack(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank < 4)
    if source is None:
        return
    others = [
        g.pick(lambda v: v.shape == source.shape) or source for _ in range(g.draw.randint(0, 2))
    ]
    if g.draw.random() < 0.3:
        others.append(g.constant(source.shape))
    values, axis = [source, *others], g.draw.randint(0, source.rank)
    shape = (*source.shape[:axis], len(values), *source.shape[axis:])
    g.emit(Op.PACK, values, [shape], PackOptions(values_count=len(values), axis=axis))


@step(2)
def unpack(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source:
        axis = g.draw.randrange(source.rank)
        shape = (*source.shape[:axis], *source.shape[axis + 1 :])
        count = source.shape[axis]
        g.emit(Op.UNPACK, [source], [shape] * count, UnpackOptions(num=count, axis=axis))


@step(2)
def split(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source is None:
        return
    axis = g.draw.randrange(source.rank)
    size = source.shape[axis]
    if g.draw.random() < 0.5:
        parts = g.draw.choice([n for n in range(1, size + 1) if size % n == 0])
        shape = (*source.shape[:axis], size // parts, *source.shape[axis + 1 :])
        g.emit(Op.SPLIT, [g.ints(axis), source], [shape] * parts, SplitOptions(num_splits=parts))
        return
    first = g.draw.randint(0, size)
    sizes = [first, size - first]
    if 0 in sizes:
        return
    shapes = [(*source.shape[:axis], n, *source.shape[axis + 1 :]) for n in sizes]
    given = [sizes[0], -1] if g.draw.random() < 0.5 else sizes
    g.emit(Op.SPLIT_V, [source, g.ints(given), g.ints(axis)], shapes, SplitVOptions(num_splits=2))


# Cuts ------------------------------------------------------------------------------------------


@step(3)
def slice_(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source is None:
        return
    begin = [g.draw.choice((0, g.draw.randrange(size))) for size in source.shape]
    size = [
        g.draw.choice((-1, g.draw.randint(1, n - b)))
        for n, b in zip(source.shape, begin, strict=True)
    ]
    shape = tuple(
        n - b if s == -1 else s for n, b, s in zip(source.shape, begin, size, strict=True)
    )
    g.emit(Op.SLICE, [source, g.ints(begin), g.ints(size)], [shape])


@step(4)
def strided_slice_(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source is None:
        return
    entries = g.draw.randint(1, source.rank)
    begin = [g.draw.randint(-n, n - 1) for n in source.shape[:entries]]
    end = [g.draw.randint(-n, n) for n in source.shape[:entries]]
    strides = [g.draw.choice((1, 1, 1, 2, -1)) for _ in range(entries)]

    def mask() -> int:
        return g.draw.choice((0, 0, 1, g.draw.randrange(2**entries)))

    options = StridedSliceOptions(
        begin_mask=mask(),
        end_mask=mask(),
        shrink_axis_mask=mask(),
        new_axis_mask=g.draw.choice((0, 0, mask())),
        ellipsis_mask=g.draw.choice((0, 0, 1 << g.draw.randrange(entries))),
    )
    try:
        shape = strided_slice(source.shape, tuple(begin), tuple(end), tuple(strides), options).shape
    except ValueError:
        return
    if 0 in shape or len(shape) > 5:
        return
    lists = [g.ints(begin), g.ints(end), g.ints(strides)]
    g.emit(Op.STRIDED_SLICE, [source, *lists], [shape], options)


@step(2)
def pad(g: RandomGraph) -> None:
    source = g.pick(lambda v: 0 < v.rank < 5)
    if source is None:
        return
    pads = [[g.draw.choice((0, 0, 1, 2)) for _ in range(2)] for _ in source.shape]
    if g.draw.random() < 0.4:
        pads = [
            [min(a, n - 1), min(b, n - 1)] for (a, b), n in zip(pads, source.shape, strict=True)
        ]
        op, options = Op.MIRROR_PAD, MirrorPadOptions(mode=MirrorPadMode.REFLECT)
    else:
        op, options = Op.PAD, None
    shape = tuple(n + sum(pair) for n, pair in zip(source.shape, pads, strict=True))
    g.emit(op, [source, g.ints(pads)], [shape], options)


@step()
def tile(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source:
        times = [g.draw.choice((1, 1, 2, 3)) for _ in source.shape]
        shape = tuple(n * m for n, m in zip(source.shape, times, strict=True))
        g.emit(Op.TILE, [source, g.ints(times)], [shape])


@step()
def broadcast_to(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank < 4)
    if source:
        shape = (
            *g.shape(g.draw.randint(0, 1)),
            *(n if n > 1 else g.draw.choice((1, 3)) for n in source.shape),
        )
        if shape:
            g.emit(Op.BROADCAST_TO, [source, g.ints(shape)], [shape], version=2)


@step()
def update(g: RandomGraph) -> None:
    operand = g.pick(lambda v: v.rank > 0)
    part = g.pick(
        lambda v: (
            operand is not None
            and v.rank == operand.rank
            and all(a <= b for a, b in zip(v.shape, operand.shape, strict=True))
        )
    )
    if operand is None or part is None:
        return
    start = [g.draw.randint(0, a - b) for a, b in zip(operand.shape, part.shape, strict=True)]
    g.emit(Op.DYNAMIC_UPDATE_SLICE, [operand, part, g.ints(start)], [operand.shape])
