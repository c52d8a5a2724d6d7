"""Shape rules of convolutions."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.layer_options import Conv3DOptions
from tflite_ort.schema.shapes.registry import (
    Shape,
    Shapes,
    check_bias,
    listed,
    of_rank,
    rule,
)
from tflite_ort.schema.values.semantics import check_window, conv_output_size, transposed_size
from tflite_ort.schema.values.sizes import common, differ, is_known
from tflite_ort.schema.values.view import OperatorView


def window_counts(op: OperatorView[Any], kernel: Shape, dilation: Shape) -> Shape:
    """(OH, OW) of windows over the image that is the input."""
    options, size = op.options, of_rank(op, "input", 4)[1:3]
    rows = conv_output_size(options.padding, size[0], kernel[0], options.stride_h, dilation[0])
    columns = conv_output_size(options.padding, size[1], kernel[1], options.stride_w, dilation[1])
    if any(is_known(count) and count < 1 for count in (rows, columns)):
        raise ModelError(f"{op.label}: no window of {kernel} fits in an image of {size}")
    return rows, columns


@rule(Op.CONV_2D, Op.DEPTHWISE_CONV_2D)
def convolution(op: OperatorView[Any]) -> Shapes:
    """Filter [N, KH, KW, C / groups], or [1, KH, KW, N] for a depthwise one."""
    filter, options = of_rank(op, "filter", 4), op.options
    dilation = (options.dilation_h_factor, options.dilation_w_factor)
    channels, (divisor, dividend) = of_rank(op, "input", 4)[3], _channels(op, filter)
    if is_known(divisor, dividend) and (0 in (divisor, dividend) or dividend % divisor):
        raise ModelError(f"{op.label}: filter {filter} does not fit {channels} input channels")
    depthwise = op.op is Op.DEPTHWISE_CONV_2D
    if depthwise and differ(filter[:1], (1,)):
        raise ModelError(f"{op.label}: filter {filter} is none of 1 x height x width x outputs")
    outputs = filter[3] if depthwise else filter[0]
    check_bias(op, outputs)
    return ((of_rank(op, "input", 4)[0], *window_counts(op, filter[1:3], dilation), outputs),)


def _channels(op: OperatorView[Any], filter: Shape) -> Shape:
    """(divisor, dividend): what has to divide what."""
    channels = of_rank(op, "input", 4)[3]
    return (channels, filter[3]) if op.op is Op.DEPTHWISE_CONV_2D else (filter[3], channels)


def volume_windows(
    options: Conv3DOptions, sizes: Shape, kernel: Shape
) -> list[tuple[int, int, int, int]]:
    """(size, kernel, stride, dilation) of the depth, height and width of a volume."""
    strides = (options.stride_d, options.stride_h, options.stride_w)
    dilations = (options.dilation_d_factor, options.dilation_h_factor, options.dilation_w_factor)
    return list(zip(sizes, kernel, strides, dilations, strict=True))


@rule(Op.CONV_3D)
def conv_3d(op: OperatorView[Any]) -> Shapes:
    """Filter [KD, KH, KW, C, N]."""
    shape, filter = (op[name].shape for name in ("input", "filter"))
    options = op.options
    if (len(shape), len(filter)) != (5, 5) or differ(shape[4:], filter[3:4]):
        raise ModelError(f"{op.label}: filter {filter} does not fit an input of {shape}")
    windows = volume_windows(options, shape[1:4], filter[:3])
    counts = [conv_output_size(options.padding, *window) for window in windows]
    if any(is_known(count) and count < 1 for count in counts):
        raise ModelError(f"{op.label}: no window of {filter[:3]} fits in a volume of {shape[1:4]}")
    return ((shape[0], *counts, filter[4]),)


@rule(Op.TRANSPOSE_CONV)
def transpose_conv(op: OperatorView[Any]) -> Shapes | None:
    """What the output_shape input says; channels have to be those there are, and as many windows
    have to fit in it as the input has rows and columns. If the file says it, the sizes of the input
    may be others than the file's: the result has as many more cells, as in XNNPACK."""
    kernels, strides = of_rank(op, "filter", 4)[1:3], (op.options.stride_h, op.options.stride_w)
    for kernel, stride in zip(kernels, strides, strict=True):
        check_window(op.options.padding, kernel, stride)
    check_bias(op, of_rank(op, "filter", 4)[0])
    size, input = listed(op["output_shape"]), of_rank(op, "input", 4)
    if size is None or len(size) != 4:
        return None if size is None else (size,)
    batch, height, width, channels = size
    if not op["output_shape"].is_given:
        _check_sides(op, size, of_rank(op, "filter", 4)[0])
    padding, given = op.options.padding, op["output_shape"].is_given
    windows = list(zip(size[1:3], kernels, strides, strict=True))
    if is_known(height, width):
        counts = tuple(conv_output_size(padding, *window) for window in windows)
        fits = min(counts) > 0 if given else not differ(counts, input[1:3])
        if not fits:
            cells = "{} x {}".format(*input[1:3])
            raise ModelError(f"{op.label}: an output of {size} does not convolve to {cells} cells")
    if given:
        pairs = zip(windows, input[1:3], strict=True)
        made = [transposed_size(padding, n, count, k, stride) for (n, k, stride), count in pairs]
        return ((input[0], *made, channels),)
    if not is_known(*size):
        batch = common(input[0], batch)
        channels = common(of_rank(op, "filter", 4)[0], channels)
    return ((batch, height, width, channels),)


def _check_sides(op: OperatorView[Any], size: Shape, channels: int) -> None:
    """
    Raises:
        ModelError: `size` has another batch than the input, or other channels than the filter.
    """
    sides, made = (size[0], size[-1]), (op["input"].shape[0], channels)
    if differ(sides, made):
        raise ModelError(
            f"{op.label}: output_shape {size} has a batch and channels of {sides}, expected {made}"
        )


@rule(Op.CONV_3D_TRANSPOSE)
def conv_3d_transpose(op: OperatorView[Any]) -> Shapes | None:
    """What the output_shape input says; as many windows have to fit in it as the input has cells.
    The filter is [KD, KH, KW, N, C]."""
    filter, cells = of_rank(op, "filter", 5), of_rank(op, "input", 5)[1:4]
    for _, *window in volume_windows(op.options, filter[:3], filter[:3]):
        check_window(op.options.padding, *window)
    size = listed(op["output_shape"])
    if size is not None and len(size) == 5:
        _check_sides(op, size, filter[3])
    if size is not None and len(size) == 5 and is_known(*size):
        windows = volume_windows(op.options, size[1:4], filter[:3])
        counts = tuple(conv_output_size(op.options.padding, *window) for window in windows)
        if differ(counts, cells):
            raise ModelError(f"{op.label}: an output of {size} does not convolve to {cells} cells")
    return None if size is None else (size,)
