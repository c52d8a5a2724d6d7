"""Random operators that compute element by element, and layers."""

from __future__ import annotations

import math

import numpy as np

from tests.batching.random_graphs import BOOL, FLOAT, RandomGraph, Shape, Value, step
from tflite_ort.schema import (
    AddNOptions,
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    DepthToSpaceOptions,
    DepthwiseConv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    Padding,
    Pool2DOptions,
    SpaceToDepthOptions,
    SubOptions,
    TransposeConvOptions,
)

# Element by element ----------------------------------------------------------------------------

_EXACT_UNARY = (Op.ABS, Op.NEG, Op.FLOOR, Op.CEIL, Op.ROUND, Op.SIGN, Op.ZEROS_LIKE)
_SMOOTH_UNARY = (Op.TANH, Op.LOGISTIC, Op.SIN, Op.COS)
_UNIT_LIMITS = (Op.RELU_0_TO_1, Op.RELU_N1_TO_1)


@step(2)
def unary(g: RandomGraph) -> None:
    op = g.draw.choice((*_EXACT_UNARY, Op.RELU, Op.RELU6, *_SMOOTH_UNARY, *_UNIT_LIMITS))
    smooth = op in _SMOOTH_UNARY
    source = g.pick(lambda v: v.exact or op in (Op.ABS, Op.NEG, Op.RELU) or smooth)
    if source:
        g.emit(op, [source], [source.shape], exact=not smooth)


def _other(g: RandomGraph, shape: Shape) -> Value | None:
    """An operand that broadcasts with `shape`: a tensor or a constant."""
    if g.draw.random() < 0.5:
        cut = shape[g.draw.randint(0, len(shape)) :]
        return g.constant(tuple(1 if g.draw.random() < 0.3 else size for size in cut))
    return g.pick(lambda v: _broadcast(v.shape, shape) is not None)


def _broadcast(*shapes: Shape) -> Shape | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


@step(6)
def binary(g: RandomGraph) -> None:
    op = g.draw.choice(
        (Op.ADD, Op.ADD, Op.SUB, Op.MUL, Op.MAXIMUM, Op.MINIMUM, Op.SQUARED_DIFFERENCE)
    )
    x = g.pick()
    y = _other(g, x.shape) if x else None
    if x is None or y is None:
        return
    if g.draw.random() < 0.5:
        x, y = y, x
    total, product = x.largest + y.largest, x.largest * y.largest
    largest = {Op.MUL: product, Op.SQUARED_DIFFERENCE: total**2}.get(op, total)
    options = {Op.ADD: AddOptions(), Op.SUB: SubOptions(), Op.MUL: MulOptions()}.get(op)
    shape = _broadcast(x.shape, y.shape)
    assert shape is not None
    g.emit(op, [x, y], [shape], options, largest=largest)


@step()
def add_n(g: RandomGraph) -> None:
    x = g.pick()
    y = g.pick(lambda v: x is not None and v.shape == x.shape)
    if x and y:
        z = g.constant(x.shape) if g.draw.random() < 0.3 else y
        g.emit(
            Op.ADD_N, [x, y, z], [x.shape], AddNOptions(), largest=3 * max(x.largest, y.largest, 4)
        )


@step()
def select(g: RandomGraph) -> None:
    x = g.pick(lambda v: v.exact)
    y = _other(g, x.shape) if x else None
    if x is None or y is None or not y.exact:
        return
    shape = _broadcast(x.shape, y.shape)
    assert shape is not None
    less = g.draw.choice((Op.LESS, Op.GREATER_EQUAL, Op.EQUAL))
    count = len(g.nodes)
    g.emit(less, [x, y], [shape], type=BOOL)
    if len(g.nodes) > count:
        g.emit(
            Op.SELECT_V2,
            [g.values[-1], x, y],
            [shape],
            largest=max(x.largest, y.largest),
            type=FLOAT,
        )


# Layers ----------------------------------------------------------------------------------------


@step(3)
def fully_connected(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank > 0)
    if source is None:
        return
    keep, size = g.draw.random() < 0.4, math.prod(source.shape)
    depth = source.shape[-1]
    if not keep and g.draw.random() < 0.4:
        depth = g.draw.choice([n for n in range(1, min(size, 60) + 1) if size % n == 0])
    units = g.draw.randint(1, 4)
    shape = (*source.shape[:-1], units) if keep else (size // depth, units)
    options = FullyConnectedOptions(keep_num_dims=keep)
    inputs = [source, g.constant((units, depth)), g.constant((units,))]
    largest = source.largest * 4 * depth + 4
    g.emit(Op.FULLY_CONNECTED, inputs, [shape], options, largest=largest)


@step(2)
def batch_matmul(g: RandomGraph) -> None:
    x = g.pick(lambda v: v.rank > 1)
    if x is None:
        return
    adj_x, adj_y = g.draw.random() < 0.3, g.draw.random() < 0.3
    rows, depth = x.shape[-1:-3:-1] if adj_x else x.shape[-2:]

    def fits(v: Value) -> bool:
        if v.rank < 2 or v.shape[-1 if adj_y else -2] != depth:
            return False
        return _broadcast(v.shape[:-2], x.shape[:-2]) is not None

    y = g.pick(fits) if g.draw.random() < 0.6 else None
    if y is None:
        columns = g.draw.randint(1, 4)
        lead = x.shape[:-2] if g.draw.random() < 0.3 else ()
        y = g.constant((*lead, columns, depth) if adj_y else (*lead, depth, columns))
    columns = y.shape[-2] if adj_y else y.shape[-1]
    before = _broadcast(x.shape[:-2], y.shape[:-2])
    assert before is not None
    options = BatchMatMulOptions(adj_x=adj_x, adj_y=adj_y)
    largest = x.largest * y.largest * depth
    g.emit(Op.BATCH_MATMUL, [x, y], [(*before, rows, columns)], options, largest=largest)


@step(2)
def convolution(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank == 4)
    if source is None:
        return
    n, h, w, c = source.shape
    side, options = g.draw.randint(1, 2), {"padding": Padding.SAME, "stride_w": 1, "stride_h": 1}
    if g.draw.random() < 0.5:
        units = g.draw.randint(1, 3)
        inputs = [source, g.constant((units, side, side, c)), g.constant((units,))]
        largest = source.largest * 4 * side * side * c + 4
        g.emit(Op.CONV_2D, inputs, [(n, h, w, units)], Conv2DOptions(**options), largest=largest)
        return
    inputs = [source, g.constant((1, side, side, c)), g.constant((c,))]
    depthwise = DepthwiseConv2DOptions(**options, depth_multiplier=1)
    largest = source.largest * 4 * side * side + 4
    g.emit(Op.DEPTHWISE_CONV_2D, inputs, [source.shape], depthwise, largest=largest)


@step()
def transpose_conv(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank == 4)
    if source is None:
        return
    n, h, w, c = source.shape
    units, shape = g.draw.randint(1, 3), (n, 2 * h, 2 * w)
    options = TransposeConvOptions(padding=Padding.SAME, stride_w=2, stride_h=2)
    inputs = [g.ints((*shape, units)), g.constant((units, 2, 2, c)), source]
    largest = source.largest * 16 * c
    g.emit(Op.TRANSPOSE_CONV, inputs, [(*shape, units)], options, largest=largest, type=FLOAT)


@step()
def pool(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank == 4)
    if source is None:
        return
    n, h, w, c = source.shape
    op = g.draw.choice((Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D))
    options = Pool2DOptions(
        padding=Padding.SAME, stride_w=2, stride_h=2, filter_width=2, filter_height=2
    )
    shape = (n, (h + 1) // 2, (w + 1) // 2, c)
    g.emit(op, [source], [shape], options, exact=op is Op.MAX_POOL_2D)


@step()
def resize(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank == 4)
    if source:
        size = (g.draw.randint(1, 5), g.draw.randint(1, 5))
        op = g.draw.choice((Op.RESIZE_BILINEAR, Op.RESIZE_NEAREST_NEIGHBOR))
        shape = (source.shape[0], *size, source.shape[3])
        g.emit(op, [source, g.ints(size)], [shape], exact=op is Op.RESIZE_NEAREST_NEIGHBOR)


@step()
def space_to_depth(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank == 4)
    if source is None:
        return
    n, h, w, c = source.shape
    if not h % 2 and not w % 2:
        shape = (n, h // 2, w // 2, 4 * c)
        g.emit(Op.SPACE_TO_DEPTH, [source], [shape], SpaceToDepthOptions(block_size=2))
    elif not c % 4:
        shape = (n, 2 * h, 2 * w, c // 4)
        g.emit(Op.DEPTH_TO_SPACE, [source], [shape], DepthToSpaceOptions(block_size=2))


@step()
def space_to_batch(g: RandomGraph) -> None:
    source = g.pick(lambda v: v.rank == 4)
    if source is None:
        return
    n, h, w, c = source.shape
    pads = [[0, h % 2], [0, w % 2]]
    shape = (4 * n, (h + 1) // 2, (w + 1) // 2, c)
    count = len(g.nodes)
    g.emit(Op.SPACE_TO_BATCH_ND, [source, g.ints([2, 2]), g.ints(pads)], [shape])
    if len(g.nodes) > count and g.draw.random() < 0.7:
        blocks = g.values[-1]
        g.emit(Op.BATCH_TO_SPACE_ND, [blocks, g.ints([2, 2]), g.ints(pads)], [source.shape])
