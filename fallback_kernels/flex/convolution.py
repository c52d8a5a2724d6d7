"""TensorFlow's convolutions of images and volumes, on every type that they take."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.pooling import as_said, channels_last, cut, seen, widened
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import OperatorView
from tflite_ort.schema.shapes.flex.convolution import convolution_windows, is_depthwise


@flex_kernel("Conv2D", "Conv3D", "DepthwiseConv2dNative")
def convolution(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """One product for each group of channels; a depthwise one has a group for each channel."""
    op = seen(op, inputs)
    x, filter = channels_last(op, widened(inputs[0])), widened(inputs[1])
    cells = cut(x, convolution_windows(op))  # [N, windows..., C, kernel...]
    counts, taps = cells.shape[: x.ndim - 1], filter.shape[:-2]
    if is_depthwise(op):
        weights = np.moveaxis(filter, (-2, -1), (0, -1)).reshape(x.shape[-1], -1, filter.shape[-1])
    else:
        groups, depth = x.shape[-1] // filter.shape[-2], filter.shape[-2] * int(np.prod(taps))
        weights = np.moveaxis(filter, -2, 0).reshape(depth, groups, -1).transpose(1, 0, 2)
    rows = cells.reshape(-1, len(weights), weights.shape[1]).transpose(1, 0, 2)
    sums = (rows @ weights).transpose(1, 0, 2).reshape(*counts, -1)
    return (as_said(op, sums.astype(inputs[0].dtype)),)


refuse_rest("convolution")
