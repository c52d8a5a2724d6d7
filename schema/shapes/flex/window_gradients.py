"""Shape rules of gradients of TensorFlow's convolutions, pools and dilations."""

from __future__ import annotations

from typing import Any

from tflite_ort.base.records import replace
from tflite_ort.schema.file.errors import ModelError, Untranslatable
from tflite_ort.schema.shapes.flex.convolution import filter_windows
from tflite_ort.schema.shapes.flex.pooling import (
    WindowsAlong,
    channels_of,
    dilation_windows,
    pool_windows,
    whole_shape,
)
from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule, listed
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.sizes import differ, is_known
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]


def told_shape(op: View, name: str) -> Shape:
    """The shape that an input tells, or has."""
    if not name.endswith(("sizes", "shape")):
        return op[name].shape
    sizes = listed(op[name])
    if sizes is None:
        raise Untranslatable("a shape depends on data")
    if any(is_known(size) and size < 0 for size in sizes):
        raise ModelError(f"{op.label}: {name} {sizes}")
    return sizes


def with_images(op: View, images: Shape) -> View:
    """`op` with images of this shape as its first input, as the operator has them whose gradient it
    is."""
    first = replace(op.present_inputs()[0], shape=images, ranked=True)
    return replace(op, inputs=(first, *op.inputs[1:]))


def _check_gradient(op: View, given: Shape, expected: Shape) -> None:
    if len(given) != len(expected) or differ(given, expected):
        raise ModelError(f"{op.label}: a gradient of shape {given}, expected {expected}")


# Names of the inputs that tell the shapes of images and filters.
_IMAGES = {"Conv2DBackpropInput", "Conv3DBackpropInputV2", "DepthwiseConv2dNativeBackpropInput"}
_FILTERS = {"Conv2DBackpropFilter", "Conv3DBackpropFilterV2", "DepthwiseConv2dNativeBackpropFilter"}


def gradient_of_convolution(op: View) -> tuple[Shape, Shape, list[WindowsAlong]]:
    """The images, the filter and the windows of the convolution whose gradient `op` is."""
    name = node_of(op).operator.name
    filter = told_shape(op, "filter_sizes" if name in _FILTERS else "filter")
    images = told_shape(op, "input_sizes" if name in _IMAGES else "input")
    if name in _IMAGES and len(images) == 2:  # rows and columns alone
        raise ModelError(f"{op.label}: input_sizes {images}, expected one for each axis")
    seen = with_images(op, images)
    along = filter_windows(seen, filter)
    outputs = filter[-1] * filter[-2] if name.startswith("Depthwise") else filter[-1]
    _check_gradient(op, op["out_backprop"].shape, whole_shape(seen, outputs, along))
    return images, filter, along


@flex_rule(
    "Conv2DBackpropInput",
    "Conv3DBackpropInput",
    "Conv3DBackpropInputV2",
    "DepthwiseConv2dNativeBackpropInput",
)
def input_gradient(op: View) -> Shapes:
    """As the images."""
    return (gradient_of_convolution(op)[0],)


@flex_rule(
    "Conv2DBackpropFilter",
    "Conv3DBackpropFilter",
    "Conv3DBackpropFilterV2",
    "DepthwiseConv2dNativeBackpropFilter",
)
def filter_gradient(op: View) -> Shapes:
    """As the filter."""
    return (gradient_of_convolution(op)[1],)


def gradient_of_pool(op: View) -> tuple[View, list[WindowsAlong]]:
    """`op` with the images of the pool whose gradient it is, and its windows.

    Raises:
        Untranslatable: the windows are computed.
    """
    names = ("orig_input_shape", "orig_input", "input")
    seen = with_images(op, told_shape(op, next(name for name in names if name in op.names)))
    along = pool_windows(seen)
    if along is None:
        raise Untranslatable("the sizes of the windows are computed")
    whole = whole_shape(seen, channels_of(seen), along)
    for name in ("orig_output", "argmax"):
        if name in op.names:
            _check_gradient(op, op[name].shape, whole)
    second = "GradGrad" in str(op.name)
    _check_gradient(op, op["grad"].shape, seen.present_inputs()[0].shape if second else whole)
    return seen, along


@flex_rule(
    "AvgPoolGrad",
    "AvgPool3DGrad",
    "MaxPoolGrad",
    "MaxPoolGradV2",
    "MaxPool3DGrad",
    "MaxPoolGradWithArgmax",
)
def pool_gradient(op: View) -> Shapes:
    """As the images."""
    seen, _ = gradient_of_pool(op)
    return (seen.present_inputs()[0].shape,)


@flex_rule("MaxPoolGradGrad", "MaxPoolGradGradV2", "MaxPool3DGradGrad")
def pool_second_gradient(op: View) -> Shapes:
    """As the result of the pool."""
    gradient_of_pool(op)
    return (op["orig_output"].shape,)


@flex_rule("Dilation2DBackpropInput", "Dilation2DBackpropFilter")
def dilation_gradient(op: View) -> Shapes:
    """As the images, or as the filter."""
    whole = whole_shape(op, channels_of(op), dilation_windows(op))
    _check_gradient(op, op["out_backprop"].shape, whole)
    return (op["input" if str(op.name).endswith("Input") else "filter"].shape,)
