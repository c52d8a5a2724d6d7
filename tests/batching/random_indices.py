"""Random operators along axes, and those that take indices."""

from __future__ import annotations

import math

import numpy as np

from tests.batching.random_graphs import FLOAT, INT, RandomGraph, Value, step
from tests.one_op import T
from tflite_ort.schema import (
    ArgMaxOptions,
    ArgMinOptions,
    CastOptions,
    CumsumOptions,
    GatherOptions,
    OneHotOptions,
    Op,
    ReducerOptions,
    ReverseSequenceOptions,
    SoftmaxOptions,
)

# Along axes ------------------------------------------------------------------------------------


@step(3)
def reduction(g: RandomGraph) -> None:
    op = g.draw.choice((Op.SUM, Op.MEAN, Op.REDUCE_MAX, Op.REDUCE_MIN))
    source = g.pick(lambda v: v.rank > 0)
    if source is None:
        return
    axes = g.draw.sample(range(source.rank), g.draw.randint(1, source.rank))
    keep = g.draw.random() < 0.5
    shape = tuple(
        1 if axis in axes else size
        for axis, size in enumerate(source.shape)
        if keep or axis not in axes
    )
    count = math.prod(source.shape[axis] for axis in axes) if op is Op.SUM else 1
    signed = [axis - g.draw.choice((0, source.rank)) for axis in axes]
    g.emit(
        op,
        [source, g.ints(signed)],
        [shape],
        ReducerOptions(keep_dims=keep),
        largest=source.largest * count,
        exact=op is not Op.MEAN,
    )


@step(2)
def along_one(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source is None:
        return
    axis = g.draw.randrange(source.rank)
    if g.draw.random() < 0.5:
        options = CumsumOptions(exclusive=g.draw.random() < 0.5, reverse=g.draw.random() < 0.5)
        largest = source.largest * source.shape[axis]
        g.emit(Op.CUMSUM, [source, g.ints(axis)], [source.shape], options, largest=largest)
    else:
        g.emit(Op.REVERSE_V2, [source, g.ints([axis])], [source.shape])


@step(2)
def arg_max(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0 and v.exact)
    if source:
        axis = g.draw.randrange(source.rank)
        shape = (*source.shape[:axis], *source.shape[axis + 1 :])
        op, limit = g.draw.choice((Op.ARG_MAX, Op.ARG_MIN)), source.shape[axis]
        table = ArgMaxOptions if op is Op.ARG_MAX else ArgMinOptions
        options = table(output_type=INT)
        g.emit(op, [source, g.ints(axis)], [shape], options, type=INT, limit=limit, largest=limit)


@step()
def softmax(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source:
        op = g.draw.choice((Op.SOFTMAX, Op.LOG_SOFTMAX, Op.L2_NORMALIZATION))
        options = SoftmaxOptions(beta=1.0) if op is Op.SOFTMAX else None
        largest = 2 * source.largest + 8
        g.emit(op, [source], [source.shape], options, largest=largest, exact=False)


@step()
def top_k(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0 and v.exact)
    if source:
        k = g.draw.randint(1, source.shape[-1])
        shape = (*source.shape[:-1], k)
        count = len(g.nodes)
        g.emit(Op.TOPK_V2, [source, g.ints(k)], [shape, shape])
        if len(g.nodes) > count:
            indices = g.values.pop()
            g.tensors[indices.name] = T(shape, INT)
            g.values.append(
                Value(indices.name, shape, INT, source.shape[-1], limit=source.shape[-1])
            )


# Indices ---------------------------------------------------------------------------------------


@step(3)
def gather(g: RandomGraph) -> None:
    source = g.constant(g.shape(2)) if g.draw.random() < 0.3 else g.pick(lambda v: v.rank > 0)
    if source is None:
        return
    axis = g.draw.randrange(source.rank)
    positions = g.pick(lambda v: 0 < v.limit <= source.shape[axis] and v.rank < 3, INT)
    if positions is None or g.draw.random() < 0.3:
        shape = g.shape(g.draw.randint(0, 2))
        given = g.ints(g.rng.integers(0, source.shape[axis], shape))
        inputs: list[Value | str] = [source, given]
    else:
        shape, inputs = positions.shape, [source, positions]
    lots = 0
    if isinstance(inputs[1], Value) and g.draw.random() < 0.3:
        while lots < min(axis, len(shape)) and shape[lots] == source.shape[lots]:
            lots += 1
    result = (*source.shape[:axis], *shape[lots:], *source.shape[axis + 1 :])
    g.emit(Op.GATHER, inputs, [result], GatherOptions(axis=axis, batch_dims=lots))


@step()
def one_hot(g: RandomGraph) -> None:
    indices = g.pick(lambda v: v.rank < 4, INT)
    if indices is None:
        return
    depth, axis = g.draw.randint(1, 4), g.draw.randint(-1, indices.rank)
    at = indices.rank if axis == -1 else axis
    shape = (*indices.shape[:at], depth, *indices.shape[at:])
    on, off = g.constant(()), g.constant(())
    inputs = [indices, g.ints(depth), on, off]
    g.emit(Op.ONE_HOT, inputs, [shape], OneHotOptions(axis=axis), type=FLOAT, largest=4)


@step()
def gather_nd(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    positions = g.pick(
        lambda v: source is not None and 0 < v.limit <= min(source.shape) and v.rank in (1, 2), INT
    )
    if source is None or positions is None or positions.shape[-1] > source.rank:
        return
    depth = positions.shape[-1]
    shape = (*positions.shape[:-1], *source.shape[depth:])
    g.emit(Op.GATHER_ND, [source, positions], [shape])


@step()
def scatter_nd(g: RandomGraph) -> None:
    updates = g.pick(lambda v: v.rank == 1)
    if updates is None:
        return
    size = updates.shape[0] + g.draw.randint(0, 2)
    places = g.rng.permutation(size)[: updates.shape[0]].reshape(-1, 1)
    g.emit(Op.SCATTER_ND, [g.ints(places), updates, g.ints([size])], [(size,)])


@step()
def cast(g: RandomGraph) -> None:
    source = g.pick(type=INT)
    if source:
        options = CastOptions(in_data_type=INT, out_data_type=FLOAT)
        g.emit(Op.CAST, [source], [source.shape], options, type=FLOAT)


@step()
def reverse_sequence(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 1)
    if source:
        time, batch = g.draw.sample(range(source.rank), 2)
        lengths = g.rng.integers(1, source.shape[time] + 1, source.shape[batch])
        options = ReverseSequenceOptions(seq_dim=time, batch_dim=batch)
        g.emit(Op.REVERSE_SEQUENCE, [source, g.ints(lengths)], [source.shape], options)


@step()
def matrix_diag(g: RandomGraph) -> None:
    source = g.pick(lambda v: 0 < v.rank < 4)
    if source:
        g.emit(Op.MATRIX_DIAG, [source], [(*source.shape, source.shape[-1])])


@step()
def segment_sum(g: RandomGraph) -> None:
    """Has no batch rule: it runs sample by sample."""
    source = g.pick(lambda v: v.rank > 0)
    if source:
        ids = np.cumsum(g.rng.integers(0, 2, source.shape[0]))
        ids -= ids[0]
        shape = (int(ids[-1]) + 1, *source.shape[1:])
        largest = source.largest * source.shape[0]
        g.emit(Op.SEGMENT_SUM, [source, g.ints(ids)], [shape], largest=largest)
