"""Shape rules of convolutions, pooling and matrix products."""

from __future__ import annotations

import math
from typing import Any

from tflite_ort.schema.file.enums import BuiltinOperator as Op
from tflite_ort.schema.file.enums import TensorType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.layer_options import Conv3DOptions
from tflite_ort.schema.shapes.elementwise import broadcast
from tflite_ort.schema.shapes.registry import Shape, Shapes, listed, of_type, required, rule
from tflite_ort.schema.values.semantics import check_window, conv_output_size
from tflite_ort.schema.values.sizes import common, differ, is_known, quotient
from tflite_ort.schema.values.view import OperatorView


def _image(op: OperatorView[Any], position: int) -> Shape:
    shape = required(op, position).shape
    if len(shape) != 4:
        raise ModelError(f"{op.label}: input {position} has rank {len(shape)}, expected 4")
    return shape


def _windows(op: OperatorView[Any], kernel: Shape, dilation: Shape) -> Shape:
    """(OH, OW) of windows over the image that is input 0."""
    options, size = op.options, _image(op, 0)[1:3]
    rows = conv_output_size(options.padding, size[0], kernel[0], options.stride_h, dilation[0])
    columns = conv_output_size(options.padding, size[1], kernel[1], options.stride_w, dilation[1])
    if any(is_known(count) and count < 1 for count in (rows, columns)):
        raise ModelError(f"{op.label}: no window of {kernel} fits in an image of {size}")
    return rows, columns


@rule(Op.CONV_2D, Op.DEPTHWISE_CONV_2D)
def convolution(op: OperatorView[Any]) -> Shapes:
    """Filter [N, KH, KW, C / groups], or [1, KH, KW, N] for a depthwise one."""
    filter, options = _image(op, 1), op.options
    dilation = (options.dilation_h_factor, options.dilation_w_factor)
    channels, (divisor, dividend) = _image(op, 0)[3], _channels(op, filter)
    if is_known(divisor, dividend) and (0 in (divisor, dividend) or dividend % divisor):
        raise ModelError(f"{op.label}: filter {filter} does not fit {channels} input channels")
    outputs = filter[3] if op.op is Op.DEPTHWISE_CONV_2D else filter[0]
    return ((_image(op, 0)[0], *_windows(op, filter[1:3], dilation), outputs),)


def _channels(op: OperatorView[Any], filter: Shape) -> Shape:
    """(divisor, dividend): what has to divide what."""
    channels = _image(op, 0)[3]
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
    shape, filter = (of_type(op, position, TensorType.FLOAT32).shape for position in (0, 1))
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
    """What the output_shape input says; batch and channels have to be those there are."""
    for kernel, stride in zip(
        _image(op, 1)[1:3], (op.options.stride_h, op.options.stride_w), strict=True
    ):
        check_window(op.options.padding, kernel, stride)
    size = listed(op, 0)
    if size is None or is_known(*size):
        return None if size is None else (size,)
    batch, height, width, channels = size
    return ((common(_image(op, 2)[0], batch), height, width, common(_image(op, 1)[0], channels)),)


@rule(Op.CONV_3D_TRANSPOSE)
def conv_3d_transpose(op: OperatorView[Any]) -> Shapes | None:
    """What the output_shape input says; filter [KD, KH, KW, N, C]."""
    filter = of_type(op, 1, TensorType.FLOAT32).shape
    for _, *window in volume_windows(op.options, filter[:3], filter[:3]):
        check_window(op.options.padding, *window)
    size = listed(op, 0)
    return None if size is None else (size,)


@rule(Op.AVERAGE_POOL_2D, Op.MAX_POOL_2D, Op.L2_POOL_2D)
def pool_2d(op: OperatorView[Any]) -> Shapes:
    batch, _, _, channels = _image(op, 0)
    kernel = (op.options.filter_height, op.options.filter_width)
    return ((batch, *_windows(op, kernel, (1, 1)), channels),)


@rule(Op.FULLY_CONNECTED)
def fully_connected(op: OperatorView[Any]) -> Shapes:
    """[B, N] of filter [N, D]; the input's shape with N for its last with keep_num_dims, and
    wherever D is 0, then flattened."""
    shape, filter = required(op, 0).shape, required(op, 1).shape
    if len(filter) == 2 and is_known(filter[1]) and filter[1] == 0:
        rows = shape[:-1] if op.options.keep_num_dims else (math.prod(shape[:-1]),)
        return ((*rows, filter[0]),)
    if len(filter) != 2 or (is_known(*shape, filter[1]) and math.prod(shape) % filter[1]):
        raise ModelError(f"{op.label}: filter {filter} does not fit an input of {shape}")
    if not op.options.keep_num_dims:
        return ((quotient(shape, filter[1]), filter[0]),)
    if differ(shape[-1:], filter[1:]):
        raise ModelError(f"{op.label}: filter has depth {filter[1]}, input has shape {shape}")
    return ((*shape[:-1], filter[0]),)


@rule(Op.BATCH_MATMUL)
def batch_matmul(op: OperatorView[Any]) -> Shapes:
    """The product of the last two dimensions, after adj_x and adj_y; the others broadcast."""
    x, y = required(op, 0).shape, required(op, 1).shape
    if min(len(x), len(y)) < 2:
        raise ModelError(f"{op.label}: ranks are {len(x)} and {len(y)}, expected at least 2")
    rows, depth = x[-1:-3:-1] if op.options.adj_x else x[-2:]
    other, columns = y[-1:-3:-1] if op.options.adj_y else y[-2:]
    if differ((depth,), (other,)):
        raise ModelError(f"{op.label}: depth is {depth} on the left, {other} on the right")
    return ((*broadcast(op, x[:-2], y[:-2]), rows, columns),)
