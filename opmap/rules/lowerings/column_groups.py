"""Convolutions of 8-bit codes over few channels: neighbouring cells of a row become channels.

Channels-last, a row of W cells of C channels is a row of W / p cells of p * C channels: the same
bytes. So a convolution of few channels is also one of more channels over fewer cells, with zeros
among its weights. It multiplies more. It is faster where ONNX Runtime spends its time on
collecting short runs of bytes. The sums are the same integers.

Where a whole row is one cell, the rows are the cells of a single row, and a window is one run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.graph import Domain, Graph
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.convolution_operands import WindowAxis, image_windows, repeated
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema import (
    Op,
    OperatorView,
    TensorType,
    TensorView,
)
from tflite_ort.schema.values.sizes import is_known

_BYTES = frozenset({TensorType.INT8, TensorType.UINT8})
# With more channels of input and output there is nothing to gain. ONNX Runtime is fast at depthwise
# layers of 16 channels.
_FEW_CHANNELS, _FEW_DEPTHWISE = 32, 15
# Nor is there in a layer that collects fewer runs of bytes.
_FEWEST_RUNS = 1500
# To fewer channels ONNX Runtime writes codes four by four, by a kernel that takes twice as long.
_WHOLE_CHANNELS, _FEWEST_NARROW_RUNS = 16, 400
_MOST_MADE, _MOST_READ = 16, 8
_MOST_CHANNELS = 512
_MOST_WEIGHTS = 2**20

# What QLinearConv does; the last two where it collects runs.
_WORK = (
    *("Conv", "Conv cells", "Conv rests", "Conv results", "Conv blocks", "Conv products"),
    *("Conv products by 48", "Conv weights", "Conv runs", "Conv bytes"),
)
_NOT_RAGGED = frozenset({"Conv", "Conv rests", "Conv results", "Conv blocks", "Conv weights"})
_RAGGED_WORK = tuple(name if name in _NOT_RAGGED else f"{name} ragged" for name in _WORK)


@record
class Layer:
    """A convolution of 8-bit codes with constant weights.

    Args:
        filter: [out, kh, kw, in], of all input channels.
    """

    op: OperatorView[Any]
    filter: TensorView
    rows: WindowAxis
    columns: WindowAxis


@record
class Grouping:
    """How many cells of a row are channels of one cell: `read` of the input, `made` of the output.

    The first window of a group of outputs begins in block `first` of the input, counted from the
    first cell that is no padding; the windows of the group reach over `blocks` blocks.

    Args:
        apart: every cell of a group whose number leaves the same rest by this is side by side.
    """

    made: int
    read: int
    groups: int
    first: int
    blocks: int
    after: int
    apart: int = 1

    @classmethod
    def of(cls, columns: WindowAxis, made: int, read: int, apart: int = 1) -> Grouping:
        """The grouping of the cells of all rows; `read` divides the input and the step."""
        groups = -(-columns.count // made)
        last = (made - 1) * columns.stride + (columns.kernel - 1) * columns.dilation
        first = -columns.before // read
        blocks = (last - columns.before) // read - first + 1
        end = (groups - 1) * (made * columns.stride // read) + first + blocks
        return cls(made, read, groups, first, blocks, max(0, end - columns.cells // read), apart)

    @property
    def name(self) -> str:
        """Such as ``columns 4x2``, or ``pooled 8x4``."""
        return f"{'columns' if self.apart == 1 else 'pooled'} {self.made}x{self.read}"

    @property
    def order(self) -> Sequence[int]:
        """The cells of a group as they lie in its channels."""
        return [cell for rest in range(self.apart) for cell in range(rest, self.made, self.apart)]


def column_groups(op: OperatorView[Any], g: Graph, rest: Rest) -> Sequence[Lowering]:
    """The lowerings of CONV_2D or DEPTHWISE_CONV_2D, of which the first is the plain one."""
    windows = image_windows(op, op["filter"].shape[1:3])
    if windows is None or not _is_integer(op):
        return ()
    depthwise = op.op is Op.DEPTHWISE_CONV_2D
    filter, channels = op["filter"], op["input"].shape[3]
    cells, size = windows[0].count * windows[1].count, math.prod(filter.shape[1:3])
    few = _FEW_DEPTHWISE if depthwise and channels > 1 else _FEW_CHANNELS
    whole = depthwise or filter.shape[3] == channels
    fewest = _FEWEST_RUNS if op.output.shape[3] >= _WHOLE_CHANNELS else _FEWEST_NARROW_RUNS
    if cells * size < fewest or not whole or min(op.output.shape[3], channels) > few:
        return ()
    if depthwise and channels > 1:
        work = depthwise_work(cells, size, op.output.shape[3])
    else:
        work = integer_work(cells, size, channels, op.output.shape[3])
    dense = of_all_channels(filter, channels) if depthwise else filter
    layer = Layer(op, dense, *windows)
    return [Lowering("windows", work, partial(rest, op)), *_grouped(g, layer), *_of_rows(g, layer)]


def pooled_lowerings(
    conv: OperatorView[Any],
    pool: OperatorView[Any],
    g: Graph,
    windows: tuple[WindowAxis, WindowAxis] | None,
    *,
    alone: bool,
) -> list[Lowering]:
    """The lowerings of CONV_2D, and those of it and of the MAX_POOL_2D behind it.

    The names of the latter begin with ``pooled``; the others add no nodes.

    Args:
        pool: its windows do not overlap along a row, and none reaches over the edges.
        alone: whether `conv` is as the file has it, without a PAD that became a part of it.
    """
    plain = column_groups(conv, g, lambda op: None)
    if windows is None or len(plain) < 2:
        return []
    made = pool.output.shape[1] * pool.output.shape[2]
    apart = [replace(each, work={**each.work, "Maximum cells": float(made)}) for each in plain]
    found = (*apart, *_pooled(g, Layer(conv, conv["filter"], *windows), pool))
    return [replace(each, alone=alone, behind=pool) for each in found]


def _pooled(g: Graph, layer: Layer, pool: OperatorView[Any]) -> Iterator[Lowering]:
    outputs, (rows, columns) = layer.filter.shape[0], pool.output.shape[1:3]
    for grouping in _groupings(layer.columns, outputs, pool.options.filter_width):
        work = _work(layer, grouping) | {"Reshape": 2.0 + (grouping.read > 1)}
        work["Maximum cells"] = float(rows * grouping.groups)
        cells = grouping.groups * grouping.made // grouping.apart
        if cells > columns:
            work |= {"Slice": 1.0, "Slice results": float(rows * cells * outputs)}
        build = partial(_build_pooled, g, layer, pool, grouping)
        if work["Conv weights"] <= _MOST_WEIGHTS:
            yield Lowering(grouping.name, work, build)


def _work(layer: Layer, grouping: Grouping) -> dict[str, float]:
    outputs, height, _, channels = layer.filter.shape
    cells, runs = layer.rows.count * grouping.groups, height * grouping.blocks
    return integer_work(cells, runs, grouping.read * channels, grouping.made * outputs)


def _grouped(g: Graph, layer: Layer) -> Iterator[Lowering]:
    outputs, rows, columns = layer.filter.shape[0], layer.rows.count, layer.columns.count
    for grouping in _groupings(layer.columns, outputs):
        work = _work(layer, grouping)
        work["Reshape"] = 1.0 + (grouping.read > 1)
        cells = grouping.groups * grouping.made
        if cells > columns:
            work |= {"Slice": 1.0, "Slice results": float(rows * cells * outputs)}
        if work["Conv weights"] <= _MOST_WEIGHTS:
            yield Lowering(grouping.name, work, partial(_build, g, layer, grouping))


def _of_rows(g: Graph, layer: Layer) -> Iterator[Lowering]:
    """The lowering that has whole rows as cells."""
    outputs, height, _, channels = layer.filter.shape
    rows, columns = layer.rows, layer.columns
    length, made = columns.cells * channels, columns.count * outputs
    if made > _MOST_CHANNELS or height * length * made > _MOST_WEIGHTS:
        return
    runs = 1 if rows.dilation == 1 else height
    work = integer_work(rows.count, runs, height * length // runs, made)
    work |= {
        "Conv runs": float(rows.count * runs),
        "Conv bytes": float(rows.count * height * length),
    }
    yield Lowering("rows", work | {"Reshape": 2.0}, partial(_build_rows, g, layer))


def integer_work(cells: int, runs: int, length: int, outputs: int) -> dict[str, float]:
    """What ONNX Runtime's QLinearConv does for one group.

    Args:
        cells: of the output.
        runs: of bytes that are collected for a cell.
        length: bytes of a run. It has another kernel for runs that are no multiple of 4 bytes.
        outputs: channels of a cell.
    """
    depth, count = -(-runs * length // 4) * 4, float(cells)
    products = count * depth
    amounts = (
        *(1.0, count, count * (outputs % 16 != 0), count * outputs),
        count * (-(-outputs // 64) * 64),
        products * (-(-outputs // 16) * 16),
        products * (-(-outputs // 48) * 48),
        float(outputs * depth),
        *((count * runs, count * runs * length) if runs > 1 else ()),
    )
    names = _WORK if length % 4 == 0 or runs == 1 else _RAGGED_WORK
    return dict(zip(names, amounts, strict=False))  # one run is not collected


def depthwise_work(cells: int, kernel: int, channels: int) -> dict[str, float]:
    """What ONNX Runtime's QLinearConv does with a group for each channel."""
    return {
        "Depthwise": 1.0,
        "Depthwise runs": float(cells * kernel),
        "Depthwise results": float(cells * channels),
        "Depthwise products": float(cells * kernel * -(-channels // 16) * 16),
    }


def _is_integer(op: OperatorView[Any]) -> bool:
    """Whether a convolution of few channels multiplies 8-bit codes by constant ones."""
    input, filter, bias = op["input"], op["filter"], op.get("bias")
    tensors = (input, op.output, filter)
    return (
        all(tensor.type in _BYTES and tensor.is_quantized for tensor in tensors)
        and filter.is_constant
        and (bias is None or bias.is_constant)
        and is_known(*input.shape[1:])
        and is_known(*op.output.shape[1:])
        and 0 not in (*input.shape[1:], *op.output.shape[1:])
        and op.output.shape[2] > 1
    )


def _groupings(columns: WindowAxis, outputs: int, apart: int = 1) -> Iterator[Grouping]:
    count = columns.count
    for made in range(2 * apart, min(count, _MOST_MADE) + 1, apart):
        step = math.gcd(made * columns.stride, columns.cells)
        if made * outputs > _MOST_CHANNELS or -count % made * 4 > count:
            continue
        for read in range(1, _MOST_READ + 1):
            if step % read == 0:
                yield Grouping.of(columns, made, read, apart)


def _build(g: Graph, layer: Layer, grouping: Grouping) -> None:
    """Reshape, Conv of the groups, Reshape; and Slice of cells that no row has."""
    rows, columns = layer.rows, layer.columns
    codes = _convolved_groups(g, layer, grouping)
    output, batch = layer.op.output, layer.op["input"].shape[0]
    codes = g.reshape(codes, (batch, rows.count, grouping.groups * grouping.made, output.shape[3]))
    if grouping.groups * grouping.made > columns.count:
        codes = g.op("Slice", codes, g.ints([0]), g.ints([columns.count]), g.ints([2]))
    _write(g, layer, codes)


def _convolved_groups(g: Graph, layer: Layer, grouping: Grouping) -> ir.Value:
    """The codes [N, rows, groups, made * out]."""
    rows, columns, (batch, height, width, channels) = _shapes(layer)
    grouped = (batch, height, width // grouping.read, grouping.read * channels)
    window = {
        "kernel_shape": [rows.kernel, grouping.blocks],
        "strides": [rows.stride, grouping.made * columns.stride // grouping.read],
        "dilations": [rows.dilation, 1],
        "pads": [rows.before, -grouping.first, rows.after, grouping.after],
    }
    filter = _grouped_filter(layer, grouping)
    return _convolved(g, layer, grouped, filter, grouping.made, window)


def _build_pooled(g: Graph, layer: Layer, pool: OperatorView[Any], grouping: Grouping) -> None:
    """MaxPool of the groups, in which the cells of a window are as far apart as its first ones.

    So one maximum is that of all windows of a group.
    """
    options, output, apart = pool.options, pool.output, grouping.apart
    codes = _convolved_groups(g, layer, grouping)
    channels = grouping.made // apart * output.shape[3]
    shape = layer.op["input"].shape[0], layer.rows.count, grouping.groups * apart, channels
    image = g.op("Transpose", g.reshape(codes, shape), perm=[0, 3, 1, 2])
    kernel, steps = [options.filter_height, apart], [options.stride_h, apart]
    codes = g.op("MaxPool", image, kernel_shape=kernel, strides=steps)
    codes = g.op("Transpose", codes, perm=[0, 2, 3, 1])
    cells = grouping.groups * grouping.made // apart
    codes = g.reshape(codes, (shape[0], output.shape[1], cells, output.shape[3]))
    if cells > output.shape[2]:
        codes = g.op("Slice", codes, g.ints([0]), g.ints([output.shape[2]]), g.ints([2]))
    activation = layer.op.options.fused_activation_function
    g.write(output, codes, domain=Domain.STORED, activation=activation)


def _build_rows(g: Graph, layer: Layer) -> None:
    """Reshape, Conv of one row of cells that are rows, Reshape."""
    rows, columns, (batch, height, width, channels) = _shapes(layer)
    window = {
        "kernel_shape": [1, rows.kernel],
        "strides": [1, rows.stride],
        "dilations": [1, rows.dilation],
        "pads": [0, rows.before, 0, rows.after],
    }
    filter, grouped = _row_filter(layer), (batch, 1, height, width * channels)
    codes = _convolved(g, layer, grouped, filter, columns.count, window)
    output = layer.op.output
    _write(g, layer, g.reshape(codes, (batch, rows.count, columns.count, output.shape[3])))


def _shapes(layer: Layer) -> tuple[WindowAxis, WindowAxis, Sequence[int]]:
    return layer.rows, layer.columns, layer.op["input"].shape


def _convolved(
    g: Graph,
    layer: Layer,
    shape: Sequence[int],
    filter: TensorView,
    copies: int,
    window: Mapping[str, Any],
) -> ir.Value:
    """The codes, channels-last, of a Conv of the input in another `shape`, whose channels are
    `copies` of the output's."""
    op = layer.op
    input, output, given = op["input"], op.output, op.get("bias")
    codes = g.read(input, domain=Domain.STORED)
    if tuple(shape) != input.shape:
        codes = g.reshape(codes, shape)
    assert input.quantization is not None and filter.quantization is not None
    scale = input.quantization.scale * filter.quantization.scale
    bias = None if given is None else g.bias(repeated(given, copies), scale)
    image = g.dequantize(g.op("Transpose", codes, perm=[0, 3, 1, 2]), input)
    weights = g.weights(filter, permutation=(0, 3, 1, 2))
    sums = g.op("Conv", image, weights, bias, **window)
    return g.op("Transpose", g.quantize(sums, output), perm=[0, 2, 3, 1])


def _write(g: Graph, layer: Layer, codes: ir.Value) -> None:
    activation = layer.op.options.fused_activation_function
    g.write(layer.op.output, codes, domain=Domain.STORED, activation=activation)


def _grouped_filter(layer: Layer, grouping: Grouping) -> TensorView:
    """The filter [made * out, kh, blocks, read * in]."""
    shape = (grouping.made, layer.filter.shape[1], grouping.blocks, grouping.read)
    first = grouping.first * grouping.read
    return _spread_filter(layer, shape, first, grouping.order)


def _row_filter(layer: Layer) -> TensorView:
    """The filter [columns * out, 1, kh, cells * in]: of a window what is inside the row."""
    shape = (layer.columns.count, layer.filter.shape[1], 1, layer.columns.cells)
    spread = _spread_filter(layer, shape, 0, range(layer.columns.count))
    assert spread.data is not None
    data = spread.data.reshape(spread.shape[0], 1, spread.shape[1], -1)
    return replace(spread, constant=data, shape=data.shape)


def _spread_filter(
    layer: Layer, shape: tuple[int, int, int, int], first: int, order: Sequence[int]
) -> TensorView:
    """The filter [made * out, kh, blocks, read * in] of a `shape` (made, kh, blocks, read).

    Args:
        first: the first cell of the blocks, counted from the first one that is no padding.
        order: of the cells that are made.
    """
    data, quantization, columns = layer.filter.data, layer.filter.quantization, layer.columns
    assert data is not None and quantization is not None
    outputs, height, width, channels = data.shape
    count, _, blocks, read = shape
    codes = np.empty((count, outputs, height, blocks * read, channels), data.dtype)
    codes[:] = quantization.zero_point.reshape(-1, 1, 1, 1)
    for place, made in enumerate(order):
        for k in range(width):
            cell = made * columns.stride - columns.before + k * columns.dilation - first
            if 0 <= cell < blocks * read:
                codes[place, :, :, cell] = data[:, :, k]
    joined = codes.reshape(count * outputs, height, blocks, -1)
    if quantization.per_channel:
        quantization = replace(
            quantization,
            scale=np.tile(quantization.scale, count),
            zero_point=np.tile(quantization.zero_point, count),
            axis=0,
        )
    return replace(layer.filter, constant=joined, shape=joined.shape, quantization=quantization)


def of_all_channels(filter: TensorView, channels: int) -> TensorView:
    """A depthwise filter [1, kh, kw, out] as [out, kh, kw, channels], with zeros."""
    data, quantization = filter.data, filter.quantization
    assert data is not None and quantization is not None
    _, height, width, outputs = data.shape
    codes = np.empty((outputs, height, width, channels), data.dtype)
    codes[:] = quantization.zero_point.reshape(-1, 1, 1, 1)
    places = np.arange(outputs)
    codes[places, :, :, places // (outputs // channels)] = data[0].transpose(2, 0, 1)
    quantization = replace(quantization, axis=0)
    return replace(filter, constant=codes, shape=codes.shape, quantization=quantization)
