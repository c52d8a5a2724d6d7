"""Shape rules of TensorFlow's windows over images and volumes, and where the windows are."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.schema.file.enums import Padding
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import (
    conv_output_size,
    explicit_padding,
    within_reach,
)
from tflite_ort.schema.values.sizes import differ, is_known, unknown_shape
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]

_FAR = 64  # cells of padding, more than which have to be few beside those of an input


@record
class WindowsAlong:
    """The windows along one axis.

    Args:
        count: how many there are.
        size: of the axis, without padding.
        before, after: cells of padding; None where they follow from a size that is not known.
    """

    count: int
    size: int
    kernel: int
    stride: int
    dilation: int
    before: int | None
    after: int | None

    @property
    def is_padded(self) -> bool:
        """Whether a window can reach over an edge."""
        return self.before != 0 or self.after != 0


def is_channels_first(op: View) -> bool:
    """Whether the node says that channels come before rows and columns."""
    return str(node_of(op).attributes.get("data_format", "")).startswith("NC")


def inner(op: View, values: Sequence[int]) -> tuple[int, ...]:
    """The values of rows and columns, and of the depth, out of one for each axis."""
    return tuple(values[2:] if is_channels_first(op) else values[1:-1])


def windows_along(
    op: View, kernel: Sequence[int], strides: Sequence[int], dilations: Sequence[int] = ()
) -> list[WindowsAlong]:
    """The windows along rows and columns, and the depth.

    Args:
        strides, dilations: one for each axis of the input; 1 for images and channels.
    """
    node, input = node_of(op), op.present_inputs()[0].shape
    dilations = dilations or (1,) * len(input)
    if len(strides) != len(input) or len(dilations) != len(input):
        raise ModelError(
            f"{op.label}: {len(strides)} strides and {len(dilations)} dilations for {input}"
        )
    outer = (1,) if is_channels_first(op) else (-1,)
    for name, values in (("strides", strides), ("dilations", dilations)):
        if min(values) < 1 or any(values[axis] != 1 for axis in (0, *outer)):
            raise ModelError(f"{op.label}: {name} {tuple(values)} of images or channels")
    pads: Sequence[Any] = (None,) * len(input)
    if node["padding"] == "EXPLICIT":
        pads = _explicit(op, node["explicit_paddings"], len(input))
    sizes, steps, rates = (inner(op, values) for values in (input, strides, dilations))
    edges = pads[2:] if is_channels_first(op) else pads[1:-1]
    return [_along(op, *column) for column in zip(sizes, kernel, steps, rates, edges, strict=True)]


def _explicit(op: View, given: Sequence[int], rank: int) -> list[tuple[int, int]]:
    if len(given) != 2 * rank or min(given) < 0:
        raise ModelError(f"{op.label}: explicit_paddings {tuple(given)} for rank {rank}")
    pairs = list(zip(given[::2], given[1::2], strict=True))
    if pairs[0] != (0, 0) or pairs[1 if is_channels_first(op) else -1] != (0, 0):
        raise ModelError(f"{op.label}: explicit_paddings {tuple(given)} of images or channels")
    return pairs


def _along(
    op: View, size: int, kernel: int, stride: int, dilation: int, pad: tuple[int, int] | None
) -> WindowsAlong:
    if kernel < 1:
        raise ModelError(f"{op.label}: a window of {kernel} cells")
    before: int | None
    after: int | None
    if pad is not None:
        before, after = pad
        if is_known(size) and max(pad) > _FAR + 4 * size:
            raise ModelError(f"{op.label}: {max(pad)} cells of padding beside {size} of the input")
        wide = size + before + after if is_known(size) else size
        count = conv_output_size(Padding.VALID, wide, kernel, stride, dilation)
    else:
        padding = Padding[node_of(op)["padding"]]
        count = conv_output_size(padding, size, kernel, stride, dilation)
        before = after = None
        if is_known(size) or padding is Padding.VALID or kernel == 1 or stride == 1:
            before, after = explicit_padding(padding, size, kernel, stride, dilation)
    if is_known(count) and count < 1:
        raise ModelError(f"{op.label}: no window of {kernel} cells fits in {size}")
    return WindowsAlong(count, size, kernel, stride, dilation, before, after)


def whole_shape(op: View, channels: int, along: Sequence[WindowsAlong]) -> Shape:
    """[N, windows..., channels], or with the channels first."""
    batch, counts = op.present_inputs()[0].shape[0], [each.count for each in along]
    return (batch, channels, *counts) if is_channels_first(op) else (batch, *counts, channels)


def channels_of(op: View) -> int:
    """How many channels the input has."""
    return op.present_inputs()[0].shape[1 if is_channels_first(op) else -1]


def lowest(dtype: np.dtype[Any]) -> Any:
    """The lowest finite number of a type."""
    if dtype.kind in "iu":
        return np.iinfo(dtype).min
    if dtype.kind == "f":
        return np.finfo(dtype).min
    return np.array(0xFF7F, np.uint16).view(dtype)[()]  # of bfloat16


def check_images(op: View, rank: int) -> None:
    """Refuse an input of another rank."""
    shape = op.present_inputs()[0].shape
    if len(shape) != rank:
        raise ModelError(f"{op.label}: input has rank {len(shape)}, expected {rank}")


def pool_windows(op: View) -> list[WindowsAlong] | None:
    """The windows of a pool; None where they are computed."""
    node = node_of(op)
    check_images(op, 5 if "Pool3D" in node.operator.name else 4)
    if "ksize" in node.attributes:
        kernel, strides = node["ksize"], node["strides"]
    else:
        given = [op[name].data for name in ("ksize", "strides")]
        if given[0] is None or given[1] is None:
            return None
        kernel, strides = (array.reshape(-1).tolist() for array in given if array is not None)
    if len(kernel) != len(op.present_inputs()[0].shape):
        raise ModelError(f"{op.label}: windows {tuple(kernel)}, expected one size for each axis")
    if prod(kernel) != prod(inner(op, kernel)):
        raise ModelError(f"{op.label}: windows {tuple(kernel)} over images or channels")
    sizes = inner(op, op.present_inputs()[0].shape)
    reached = [
        _reached(op, size, cells) for size, cells in zip(sizes, inner(op, kernel), strict=True)
    ]
    return windows_along(op, reached, strides)


def _reached(op: View, size: int, kernel: int) -> int:
    """The cells of a window that the input can have."""
    padding = node_of(op)["padding"]
    if padding == "EXPLICIT":
        if is_known(size) and kernel > _FAR + 4 * size:
            raise ModelError(f"{op.label}: a window of {kernel} over {size} cells")
        return kernel
    return within_reach(Padding[padding], size, kernel)


@flex_rule("AvgPool", "AvgPool3D", "MaxPool", "MaxPool3D", "MaxPoolV2", "MaxPoolWithArgmax")
def pool(op: View) -> Shapes:
    """[N, windows..., C], of each output."""
    along = pool_windows(op)
    if along is None:
        batch, channels = op.present_inputs()[0].shape[0], channels_of(op)
        inside = unknown_shape(2)
        first = is_channels_first(op)
        return ((batch, channels, *inside) if first else (batch, *inside, channels),)
    return (whole_shape(op, channels_of(op), along),) * len(op.outputs)


@flex_rule("Dilation2D")
def dilation(op: View) -> Shapes:
    """[N, rows, columns, C]."""
    return (whole_shape(op, channels_of(op), dilation_windows(op)),)


def dilation_windows(op: View) -> list[WindowsAlong]:
    """The windows of Dilation2D."""
    check_images(op, 4)
    node, filter = node_of(op), op["filter"].shape
    if len(filter) != 3 or differ(filter[2:], (channels_of(op),)):
        raise ModelError(f"{op.label}: filter {filter} for {channels_of(op)} channels")
    if not is_known(*filter):
        raise ModelError(f"{op.label}: the sizes of the filter are not known")
    return windows_along(op, filter[:2], node["strides"], node["rates"])


def patch_windows(op: View) -> list[WindowsAlong]:
    """The windows of ExtractImagePatches."""
    check_images(op, 4)
    node = node_of(op)
    if node["ksizes"][0] != 1 or node["ksizes"][3] != 1 or len(node["ksizes"]) != 4:
        raise ModelError(f"{op.label}: patches {node['ksizes']} over images or channels")
    return windows_along(op, node["ksizes"][1:3], node["strides"], node["rates"])


@flex_rule("ExtractImagePatches")
def patches(op: View) -> Shapes:
    """[N, rows, columns, cells of a patch]."""
    along, channels = patch_windows(op), channels_of(op)
    if is_known(channels):
        channels *= prod(each.kernel for each in along)
    else:
        (channels,) = unknown_shape(1)
    return (whole_shape(op, channels, along),)
