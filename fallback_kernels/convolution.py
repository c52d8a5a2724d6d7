"""Convolutions: CONV_2D, DEPTHWISE_CONV_2D, TRANSPOSE_CONV over images [B, H, W, C]; CONV_3D and
CONV_3D_TRANSPOSE over volumes [B, D, H, W, C]."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.accumulator import (
    Accumulator,
    Rounding,
    rescale_wide,
    scales,
)
from tflite_ort.fallback_kernels.idioms.operands import clamped, finite
from tflite_ort.fallback_kernels.idioms.windows import Span, windows
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    Conv2DOptions,
    Conv3DOptions,
    DepthwiseConv2DOptions,
    KernelError,
    Op,
    OperatorView,
    TensorType,
    TensorView,
    TransposeConvOptions,
)
from tflite_ort.schema.arithmetic.fixed_point import rescale
from tflite_ort.schema.shapes.convolution import volume_windows
from tflite_ort.schema.values.semantics import transposed_size

Array = npt.NDArray[Any]

_IMAGE = (1, 2, 3)


@kernel(Op.CONV_2D, versions=(1, 8))
def conv_2d(op: OperatorView[Conv2DOptions], inputs: Inputs, state: State) -> Outputs:
    """Correlation with filter [N, KH, KW, C / groups]."""
    filter = op["filter"]
    asymmetric = filter.is_quantized and bool(np.ptp(scales(filter)))
    sums = _accumulator(op, _wide_unless_32(op))
    x, weights = sums.operands(inputs[0], inputs[1], axes=_IMAGE, asymmetric=asymmetric)
    return (sums.result(correlation(x, weights, op.options), _bias(inputs, 2)),)


@kernel(Op.DEPTHWISE_CONV_2D, versions=(1, 7))
def depthwise_conv_2d(
    op: OperatorView[DepthwiseConv2DOptions], inputs: Inputs, state: State
) -> Outputs:
    """CONV_2D with one group for a channel: filter [1, KH, KW, C * multiplier]."""
    sums = _accumulator(op, rescale_wide)
    x, weights = sums.operands(inputs[0], inputs[1], axes=_IMAGE, asymmetric=True)
    result = correlation(x, np.transpose(weights, (3, 1, 2, 0)), op.options)
    return (sums.result(result, _bias(inputs, 2)),)


@kernel(Op.TRANSPOSE_CONV, versions=(1, 5))
def transpose_conv(op: OperatorView[TransposeConvOptions], inputs: Inputs, state: State) -> Outputs:
    """The gradient of a convolution: the sum of input cells times the filter [N, KH, KW, C]."""
    shape, options = tuple(int(size) for size in inputs[0]), op.options
    strides = (options.stride_h, options.stride_w)
    sums = _accumulator(op, _wide_unless_32(op))
    x, filter = sums.operands(inputs[2], inputs[1], axes=_IMAGE, asymmetric=True)
    if x.shape[3] != filter.shape[3]:
        raise KernelError(f"filter has {filter.shape[3]} input channels, input has {x.shape[3]}")
    made = shape
    if op["output_shape"].is_given and len(shape) == 4:
        axes = zip(shape[1:3], x.shape[1:3], filter.shape[1:3], strides, strict=True)
        sizes = (transposed_size(options.padding, *axis) for axis in axes)
        made = (x.shape[0], *sizes, shape[3])
    if len(made) != 4 or (made[0], made[3]) != (x.shape[0], filter.shape[0]):
        expected = f"{x.shape[0]}, H, W, {filter.shape[0]}"
        raise KernelError(f"output_shape is {shape}, expected ({expected})")
    _, kh, kw, _ = filter.shape
    rows = Span.over(made[1], options.padding, kh, strides[0])
    columns = Span.over(made[2], options.padding, kw, strides[1])
    return (sums.result(_scattered(x, filter, rows, columns, made), _bias(inputs, 3)),)


@kernel(Op.CONV_3D, versions=(1, 1))
def conv_3d(op: OperatorView[Conv3DOptions], inputs: Inputs, state: State) -> Outputs:
    """Correlation with filter [KD, KH, KW, C, N]; float32."""
    x, filter = inputs[:2]
    _check_volume(x, filter, filter.shape[-2:-1])
    patches = x
    for axis, span in enumerate(_spans(x.shape, filter, op.options), start=1):
        patches = windows(patches, axis, span)  # the result is [B, OD, OH, OW, C, KD, KH, KW]
    rows = patches.transpose(0, 1, 2, 3, 5, 6, 7, 4).reshape(-1, filter[..., 0].size)
    sums = rows @ filter.reshape(-1, filter.shape[-1])
    return (_finished(op, sums.reshape(*patches.shape[:4], filter.shape[-1]), _bias(inputs, 2)),)


@kernel(Op.CONV_3D_TRANSPOSE, versions=(1, 1))
def conv_3d_transpose(op: OperatorView[Conv3DOptions], inputs: Inputs, state: State) -> Outputs:
    """The gradient of CONV_3D: the sum of input cells times the filter [KD, KH, KW, N, C]."""
    shape, filter, x = tuple(inputs[0].tolist()), inputs[1], inputs[2]
    _check_volume(x, filter, filter.shape[-1:])
    if len(shape) != 5 or (shape[0], shape[4]) != (x.shape[0], filter.shape[3]):
        expected = f"{x.shape[0]}, D, H, W, {filter.shape[3]}"
        raise KernelError(f"output_shape is {shape}, expected ({expected})")
    spans = _spans(shape, filter, op.options)
    counts = tuple(span.count for span in spans)
    if x.shape[1:4] != counts:
        raise KernelError(f"output {shape} convolves to {counts} cells, input has {x.shape[1:4]}")
    return (_finished(op, _scattered_3d(x, filter, spans, shape), _bias(inputs, 3)),)


def _check_volume(x: Array, filter: Array, channels: tuple[int, ...]) -> None:
    if x.dtype != np.float32 or filter.dtype != np.float32:
        raise KernelError(f"no kernel for {x.dtype} input with {filter.dtype} filter")
    if (x.ndim, filter.ndim) != (5, 5) or x.shape[-1:] != channels:
        raise KernelError(f"filter {filter.shape} does not fit input {x.shape}")


def _spans(shape: tuple[int, ...], filter: Array, options: Conv3DOptions) -> list[Span]:
    """The windows along depth, height and width."""
    rows = volume_windows(options, shape[1:4], filter.shape[:3])
    return [Span.over(size, options.padding, *window) for size, *window in rows]


def _scattered_3d(x: Array, filter: Array, spans: Sequence[Span], shape: tuple[int, ...]) -> Array:
    """The sum over cells of `x` times `filter`, strided, cut to the output of `shape`."""
    sizes = shape[1:4]
    padded = [s.before + size + s.after for s, size in zip(spans, sizes, strict=True)]
    full = np.zeros((shape[0], *padded, shape[4]), x.dtype)
    for place in product(*(range(size) for size in filter.shape[:3])):
        first = [i * span.dilation for i, span in zip(place, spans, strict=True)]
        cells = tuple(
            slice(start, start + (span.count - 1) * span.stride + 1, span.stride)
            for start, span in zip(first, spans, strict=True)
        )
        full[(slice(None), *cells)] += x @ filter[place].T
    inside = (slice(s.before, s.before + size) for s, size in zip(spans, sizes, strict=True))
    return full[(slice(None), *inside)]


def _finished(op: OperatorView[Conv3DOptions], sums: Array, bias: Array | None) -> Array:
    result = sums if bias is None else sums + bias.reshape(-1)
    return clamped(finite(result), op.options.fused_activation_function)


def correlation(x: Array, filter: Array, options: Conv2DOptions | DepthwiseConv2DOptions) -> Array:
    """[B, H, W, C] with filter [N, KH, KW, C / G] to [B, OH, OW, N]: one product for a group."""
    batch, height, width, channels = x.shape
    outputs, kh, kw, depth = filter.shape
    groups = channels // depth if depth else 0
    if groups * depth != channels or not groups or outputs % groups:
        raise KernelError(f"filter {filter.shape} does not divide {channels} input channels")
    rows = Span.over(height, options.padding, kh, options.stride_h, options.dilation_h_factor)
    columns = Span.over(width, options.padding, kw, options.stride_w, options.dilation_w_factor)
    patches = windows(windows(x, 1, rows), 2, columns)  # [B, OH, OW, C, KH, KW]
    _, out_height, out_width = patches.shape[:3]
    patches = patches.reshape(batch, out_height, out_width, groups, depth, kh, kw)
    patches = patches.transpose(3, 0, 1, 2, 5, 6, 4).reshape(groups, -1, kh * kw * depth)
    weights = filter.reshape(groups, outputs // groups, kh * kw * depth)
    sums = patches @ weights.transpose(0, 2, 1)  # [G, B * OH * OW, N / G]
    return sums.transpose(1, 0, 2).reshape(batch, out_height, out_width, outputs)


def _scattered(x: Array, filter: Array, rows: Span, columns: Span, shape: tuple[int, ...]) -> Array:
    """The sum over cells of `x` times `filter`, strided, cut to the output of `shape`."""
    batch, height, width, _ = x.shape
    outputs, kh, kw, _ = filter.shape
    if (height, width) != (rows.count, columns.count):
        raise KernelError(f"output {shape} does not convolve to {height} x {width} cells")
    full_height = rows.before + shape[1] + rows.after
    full_width = columns.before + shape[2] + columns.after
    full = np.zeros((batch, full_height, full_width, outputs), x.dtype)
    for i in range(kh):
        bottom = i + (height - 1) * rows.stride + 1
        for j in range(kw):
            right = j + (width - 1) * columns.stride + 1
            full[:, i : bottom : rows.stride, j : right : columns.stride] += x @ filter[:, i, j].T
    return full[:, rows.before :, columns.before :][:, : shape[1], : shape[2]]


def _accumulator(op: OperatorView[Any], wide: Rounding) -> Accumulator:
    """The accumulator: results of 8-bit activations are rounded twice, of 16-bit ones by `wide`."""
    input: TensorView = op["input"]
    return Accumulator(
        input,
        op["filter"],
        op.output,
        op.options.fused_activation_function,
        wide if input.type is TensorType.INT16 else rescale,
        narrow_scale=input.type is TensorType.UINT8,
    )


def _wide_unless_32(op: OperatorView[Any]) -> Rounding:
    """The accumulator of 16-bit activations has 64 bits unless the options ask for 32."""
    return rescale if op.options.quantized_bias_type == TensorType.INT32 else rescale_wide


def _bias(inputs: Inputs, position: int) -> Array | None:
    return inputs[position] if len(inputs) > position else None
