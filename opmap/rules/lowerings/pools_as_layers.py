"""Means over windows of floats as depthwise convolutions, where the channels fill no blocks.

From opset 19 on ONNX Runtime's AveragePool takes five times as long as before, but for channels in
blocks. Windows that reach over the edge of the image are means of fewer cells: a product with a
constant for each window makes up for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.graph.choices import Lowering
from tflite_ort.opmap.idioms.pooled_means import is_global
from tflite_ort.opmap.rules.rule import Rest
from tflite_ort.schema import OperatorView, Pool2DOptions, TensorType
from tflite_ort.schema.values.semantics import explicit_padding
from tflite_ort.schema.values.sizes import is_known

View = OperatorView[Pool2DOptions]

# Larger windows are slow convolutions, and fewer numbers are soon averaged.
_MOST_CELLS, _LEAST_NUMBERS = 25, 1 << 9


def pools_as_layers(op: View, g: Graph, rest: Rest) -> Sequence[Lowering]:
    """AVERAGE_POOL_2D of floats of known size."""
    input, options, block = op["input"], op.options, g.target.block
    if input.type is not TensorType.FLOAT32 or not is_known(*input.shape) or is_global(op):
        return ()
    cells = options.filter_height * options.filter_width
    if not input.shape[3] % block or input.shape[3] < 2 or any(map(any, op.edges)):
        return ()
    if not 1 < cells <= _MOST_CELLS or prod(op.output.shape) < _LEAST_NUMBERS:
        return ()
    return [Lowering("layer", {}, partial(_layer, op, g))]


def _layer(op: View, g: Graph) -> None:
    options, channels = op.options, op["input"].shape[3]
    kernel = options.filter_height, options.filter_width
    strides = options.stride_h, options.stride_w
    axes = list(zip(op["input"].shape[1:3], kernel, strides, strict=True))
    pads = [explicit_padding(options.padding, *axis, 1) for axis in axes]
    weights = np.full((channels, 1, *kernel), 1 / (kernel[0] * kernel[1]), np.float32)
    mean = g.op(
        "Conv",
        g.read(op["input"], layout=Layout.FIRST),
        g.constants.add(weights, "means"),
        group=channels,
        kernel_shape=kernel,
        strides=strides,
        pads=[side[i] for i in (0, 1) for side in pads],
    )
    if any(map(any, pads)):
        rows, columns = (
            _shares(size, *axis, pad[0])
            for size, axis, pad in zip(op.output.shape[1:3], axes, pads, strict=True)
        )
        mean = g.op("Mul", mean, g.constant(np.outer(rows, columns)[np.newaxis, np.newaxis]))
    activation = options.fused_activation_function
    g.write(op.output, mean, layout=Layout.FIRST, activation=activation)


def _shares(
    count: int, cells: int, kernel: int, stride: int, before: int
) -> npt.NDArray[np.float32]:
    """By how much the means of the windows along an axis are too small, since some of their cells
    are outside."""
    starts = np.arange(count) * stride - before
    inside = np.minimum(starts + kernel, cells) - np.maximum(starts, 0)
    return np.asarray(kernel / inside, np.float32)
