"""Shape rules of TensorFlow's convolutions."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.flex.pooling import (
    WindowsAlong,
    channels_of,
    check_images,
    whole_shape,
    windows_along,
)
from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import is_known
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


def is_depthwise(op: View) -> bool:
    """Whether each channel has filters of its own."""
    return str(op.name).startswith("FlexDepthwiseConv2dNative")


def convolution_windows(op: View) -> list[WindowsAlong]:
    """The windows of a convolution, whose filter is [sizes..., C / groups, N], or [rows, columns,
    C, N / C] of a depthwise one."""
    return filter_windows(op, op["filter"].shape)


def filter_windows(op: View, filter: Shape) -> list[WindowsAlong]:
    """The windows of a filter over the images that are the first input."""
    rank, node = 5 if "Conv3D" in str(op.name) else 4, node_of(op)
    check_images(op, rank)
    if len(filter) != rank or not is_known(*filter):
        raise ModelError(f"{op.label}: a filter of {filter}, expected {rank} known sizes")
    channels, depth, outputs = channels_of(op), filter[-2], filter[-1]
    exact = rank == 5 or is_depthwise(op)
    if min(filter) < 1 or (is_known(channels) and channels < 1):
        raise ModelError(f"{op.label}: filter {filter} or channels without elements")
    if is_known(channels) and (channels % depth or (exact and channels != depth)):
        raise ModelError(f"{op.label}: filter {filter} does not fit {channels} channels")
    if is_known(channels) and not exact and outputs % (channels // depth):
        raise ModelError(f"{op.label}: {outputs} outputs of {channels // depth} groups")
    return windows_along(op, filter[:-2], node["strides"], node["dilations"])


@flex_rule("Conv2D", "Conv3D", "DepthwiseConv2dNative")
def convolution(op: View) -> Shapes:
    """[N, windows..., outputs]."""
    along, filter = convolution_windows(op), op["filter"].shape
    outputs = filter[-1] * filter[-2] if is_depthwise(op) else filter[-1]
    return (whole_shape(op, outputs, along),)
