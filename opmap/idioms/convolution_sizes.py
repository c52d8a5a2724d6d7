"""Transposed convolutions of a computed size, and cells that none of their windows reaches."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.idioms.convolution_operands import Windows, accumulator_bias
from tflite_ort.opmap.idioms.indices import affordable, failing, sizes_of
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import (
    Conv3DOptions,
    Op,
    OperatorView,
    Padding,
    TensorType,
    TensorView,
    TransposeConvOptions,
)
from tflite_ort.schema.values.sizes import may_differ

TransposedConvolution = OperatorView[TransposeConvOptions] | OperatorView[Conv3DOptions]


def makes_other_maps(op: OperatorView[TransposeConvOptions]) -> bool:
    """Whether a TRANSPOSE_CONV may have another batch, or other channels, than it declares."""
    made = op["input"].shape[0], op["filter"].shape[0]
    return may_differ((op.output.shape[0], op.output.shape[3]), made)


def has_own_rounding(op: OperatorView[Any]) -> bool:
    """Whether LiteRT rounds the sums of a convolution of int8 codes twice: XNNPACK, which rounds as
    QLinearConv does, takes no TRANSPOSE_CONV whose output_shape is computed."""
    of_codes = op.op is Op.TRANSPOSE_CONV and op["input"].type is TensorType.INT8
    return of_codes and not op["output_shape"].is_given


def computed_sizes(op: TransposedConvolution, g: Graph, channels: int) -> ir.Value:
    """The computed spatial sizes as int64; the graph fails on another batch or other channels."""
    input = op["input"]
    split = g.ints([1, input.rank - 2, 1])
    parts = g.op_multi("Split", sizes_of(g, op["output_shape"]), split, outputs=3, axis=0)
    given_batch, sizes, given_channels = parts
    for given, size in ((given_batch, input.shape[0]), (given_channels, channels)):
        sizes = failing(g, sizes, g.op("Not", g.op("Equal", given, g.size(size))))
    return affordable(g, sizes, g.op("Concat", *parts, axis=0), op)


def write_cut(
    op: TransposedConvolution, g: Graph, whole: ir.Value, sizes: ir.Value, windows: Windows
) -> None:
    """Write a transposed convolution without padding, cropped or extended to `sizes`, plus bias."""
    result = cut(op, g, whole, sizes, windows)
    bias = accumulator_bias(g, op["input"], op["filter"], op.get("bias"))
    if bias is not None:
        result = g.op("Add", result, g.op("Unsqueeze", bias, g.ints(range(1, 1 + len(windows)))))
    if op.op is Op.CONV_3D_TRANSPOSE:
        result = g.finite(result)
    g.write(op.output, result, layout=Layout.FIRST, activation=op.options.fused_activation_function)


def cut(
    op: TransposedConvolution, g: Graph, whole: ir.Value, sizes: ir.Value, windows: Windows
) -> ir.Value:
    """A transposed convolution without padding, cropped or extended to `sizes`."""
    step = g.ints([stride for _, _, stride, _ in windows])
    cells = g.ints([(k - 1) * dilation + 1 for _, k, _, dilation in windows])
    one, before = g.ints(1), g.ints([0] * len(windows))
    if op.options.padding == Padding.SAME:
        before = _half_beyond(g, sizes, step, cells, least=before)
    last = g.op("Mul", g.op("Sub", g.shape([count for count, _, _, _ in windows]), one), step)
    after = g.op("Sub", g.op("Add", sizes, before), g.op("Add", last, cells))
    edge = g.ints((0, 0))
    # Negative pads crop.
    return g.op("Pad", whole, g.op("Concat", edge, g.op("Neg", before), edge, after, axis=0))


def _half_beyond(
    g: Graph, sizes: ir.Value, step: ir.Value, cells: ir.Value, *, least: ir.Value
) -> ir.Value:
    """SAME padding before the first cell: half of what the last window has beyond `sizes`."""
    last = g.op("Mul", g.op("Div", g.op("Sub", sizes, g.ints(1)), step), step)
    beyond = g.op("Sub", g.op("Add", last, cells), sizes)
    return g.op("Div", g.larger(beyond, least), g.ints(2))


def misfit(op: TransposedConvolution, g: Graph, sizes: ir.Value, windows: Windows) -> ir.Value:
    """Whether the number of windows over `sizes` differs from the cells of the input, by axis."""
    step, one = g.ints([stride for _, _, stride, _ in windows]), [1] * len(windows)
    reach = [(kernel - 1) * dilation for _, kernel, _, dilation in windows]
    lost = g.ints(one if op.options.padding == Padding.SAME else np.add(one, reach))
    last = g.op("Div", g.op("Sub", sizes, lost), step)
    counts = g.op("Add", last, g.ints(one))
    return g.op("Not", g.op("Equal", counts, g.shape([count for count, _, _, _ in windows])))


def past_last_window(input: TensorView, windows: Windows) -> list[int]:
    """The output cells of a transposed convolution that no window reaches: they get the bias."""
    return [
        max(0, size - (count - 1) * stride - (kernel - 1) * dilation - 1)
        for count, (size, kernel, stride, dilation) in zip(input.shape[1:4], windows, strict=True)
    ]
