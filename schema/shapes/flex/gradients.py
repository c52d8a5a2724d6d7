"""Shape rules of TensorFlow's gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.layer_options import ResizeNearestNeighborOptions
from tflite_ort.schema.shapes.flex.images import bicubic_weights, check_weights
from tflite_ort.schema.shapes.flex.layers import batch_norm_channels
from tflite_ort.schema.shapes.flex.pooling import channels_of
from tflite_ort.schema.shapes.registry import Shape, Shapes, flex_rule, listed, of_rank
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.semantics import nearest_indices, resize_ratio
from tflite_ort.schema.values.sizes import differ, is_known, unknown_shape, unknown_size
from tflite_ort.schema.values.view import OperatorView

View = OperatorView[Any]
Floats = npt.NDArray[np.float32]


@flex_rule(
    "EluGrad",
    "InvGrad",
    "LeakyReluGrad",
    "ReciprocalGrad",
    "Relu6Grad",
    "ReluGrad",
    "RsqrtGrad",
    "SeluGrad",
    "SigmoidGrad",
    "SoftplusGrad",
    "SoftsignGrad",
    "SqrtGrad",
    "TanhGrad",
    "FakeQuantWithMinMaxArgsGradient",
)
def elementwise(op: View) -> Shapes:
    """As both inputs."""
    first, second = (tensor.shape for tensor in op.present_inputs())
    if len(first) != len(second) or differ(first, second):
        raise ModelError(f"{op.label}: shapes {first} and {second} differ")
    return (first,)


@flex_rule("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant(op: View) -> Shapes:
    """As the inputs, and as both ends of the range."""
    first, second, low, high = (tensor.shape for tensor in op.present_inputs())
    if len(first) != len(second) or differ(first, second):
        raise ModelError(f"{op.label}: shapes {first} and {second} differ")
    expected: Shape = first[-1:] if "PerChannel" in str(op.name) else ()
    for each in (low, high):
        if len(each) != len(expected) or differ(each, expected):
            raise ModelError(f"{op.label}: a range of {low} and {high} for {first}")
    return (first, low, high)


@flex_rule("BiasAddGrad")
def bias(op: View) -> Shapes:
    """A number for each channel."""
    if len(op["out_backprop"].shape) < 2:
        raise ModelError(f"{op.label}: a gradient of shape {op['out_backprop'].shape}")
    return ((channels_of(op),),)


@flex_rule("BroadcastGradientArgs")
def broadcast_axes(op: View) -> Shapes:
    """Two lists of axes."""
    for tensor in op.present_inputs():
        if len(tensor.shape) != 1:
            raise ModelError(f"{op.label}: sizes of shape {tensor.shape}")
    return unknown_shape(1), unknown_shape(1)


@flex_rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm(op: View) -> Shapes:
    """As the images, then one number for each channel; the last results are nothing."""
    given, x = op["y_backprop"].shape, op["x"].shape
    if len(given) != len(x) or differ(given, x):
        raise ModelError(f"{op.label}: a gradient of shape {given} for {x}")
    channels = batch_norm_channels(op, "scale", "reserve_space_1", "reserve_space_2")
    return (x, channels, channels, (0,), (0,))


@flex_rule("ResizeBilinearGrad", "ResizeBicubicGrad")
def resized(op: View) -> Shapes:
    """As the image before it was resized."""
    given, image = of_rank(op, "grads", 4), of_rank(op, "original_image", 4)
    _check_resized(op, given, image)
    return (image,)


@flex_rule("ResizeNearestNeighborGrad")
def resized_nearest(op: View) -> Shapes:
    """[N, rows, columns, channels] before the image was resized."""
    batch, *_, channels = of_rank(op, "grads", 4)
    sizes = listed(op["size"])
    if sizes is None:
        sizes = unknown_shape(2)
    if len(sizes) != 2 or any(is_known(size) and size < 1 for size in sizes):
        raise ModelError(f"{op.label}: an image cannot have size {sizes}")
    _check_resized(op, op["grads"].shape, (batch, *sizes, channels))
    return ((batch, *sizes, channels),)


def _check_resized(op: View, given: Shape, image: Shape) -> None:
    if differ((given[0], given[3]), (image[0], image[3])):
        raise ModelError(f"{op.label}: a gradient of shape {given} for {image}")
    if node_of(op)["align_corners"] and node_of(op)["half_pixel_centers"]:
        raise ModelError(f"{op.label}: align_corners and half_pixel_centers exclude each other")
    if any(is_known(size) and size < 1 for size in (*given[1:3], *image[1:3])):
        raise ModelError(f"{op.label}: an image of {image} from {given}")


def _check_crops(op: View, channels: int) -> None:
    grads, boxes, images = of_rank(op, "grads", 4), of_rank(op, "boxes", 2), op["box_ind"].shape
    if differ((grads[0], boxes[1]), (boxes[0], 4)) or differ(images, boxes[:1]):
        raise ModelError(f"{op.label}: gradients {grads} of {boxes} boxes of {images} images")
    if differ(grads[3:], (channels,)):
        raise ModelError(f"{op.label}: gradients {grads} of {channels} channels")


@flex_rule("CropAndResizeGradImage")
def cropped_image(op: View) -> Shapes:
    """As the images."""
    sizes = listed(op["image_size"])
    sizes = unknown_shape(4) if sizes is None else sizes
    if len(sizes) != 4 or any(is_known(size) and size < 1 for size in sizes):
        raise ModelError(f"{op.label}: images of {sizes}")
    _check_crops(op, sizes[3])
    return (sizes,)


@flex_rule("CropAndResizeGradBoxes")
def cropped_boxes(op: View) -> Shapes:
    """As the boxes."""
    _check_crops(op, of_rank(op, "image", 4)[3])
    return (op["boxes"].shape,)


@flex_rule("MirrorPadGrad")
def mirrored(op: View) -> Shapes:
    """Without the padding."""
    pairs, shape = op["paddings"].data, op["input"].shape
    if pairs is None:
        return (unknown_shape(len(shape)),)
    return (unpadded(op, shape, pairs.reshape(-1, 2).tolist()),)


def unpadded(op: View, shape: Shape, pairs: list[list[int]]) -> Shape:
    """The sizes without the cells of padding."""
    if len(pairs) != len(shape) or any(each < 0 for pair in pairs for each in pair):
        raise ModelError(f"{op.label}: paddings {pairs} of {shape}")
    least = 1 if node_of(op)["mode"] == "REFLECT" else 0
    found = []
    for size, pair in zip(shape, pairs, strict=True):
        inside = size - sum(pair) if is_known(size) else unknown_size()
        if is_known(inside) and max(pair) > inside - least and any(pair):
            raise ModelError(f"{op.label}: paddings {pairs} of {shape}")
        found.append(inside)
    return tuple(found)


@flex_rule("StridedSliceGrad")
def strided_slice(op: View) -> Shapes | None:
    """As the array that was sliced."""
    sizes = listed(op["shape"])
    if sizes is None:
        return None
    if any(is_known(size) and size < 0 for size in sizes):
        raise ModelError(f"{op.label}: sizes {sizes}")
    return (sizes,)


@flex_rule("SparseFillEmptyRowsGrad")
def filled_rows(op: View) -> Shapes:
    """A gradient for each value that was there, and that of the default."""
    of_rank(op, "grad_values", 1)
    return (of_rank(op, "reverse_index_map", 1), ())


@flex_rule("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad")
def segments(op: View) -> Shapes:
    """As the rows that were summed, of which there are as many as told."""
    shape = op["grad"].shape
    if not shape or differ(op["indices"].shape, op["segment_ids"].shape):
        raise ModelError(f"{op.label}: {op['indices'].shape} rows, {op['segment_ids'].shape} ids")
    (count, *_) = listed(op["output_dim0"]) or (unknown_size(),)
    if is_known(count) and count < 0:
        raise ModelError(f"{op.label}: {count} rows")
    return ((count, *shape[1:]),)


# What the gradients are told by ----------------------------------------------------------------


def broadcast_gradient_axes(
    op: View, one: list[int], other: list[int]
) -> tuple[list[int], list[int]]:
    """The axes along which each of two operands of these sizes is repeated, or one."""
    rank = max(len(one), len(other))
    if one == other:
        return [], []
    first, second = ([1] * (rank - len(sizes)) + sizes for sizes in (one, other))
    found: tuple[list[int], list[int]] = [], []
    for axis, (a, b) in enumerate(zip(first, second, strict=True)):
        if a != b and 1 not in (a, b):
            raise ModelError(f"{op.label}: sizes {one} and {other} do not broadcast")
        for axes, size in zip(found, (a, b), strict=True):
            if size == 1:
                axes.append(axis)
    return found


def bilinear_matrix(op: View, old: int, new: int) -> Floats:
    """[new, old]: how much of each old row is in each new one."""
    aligned, half = node_of(op)["align_corners"], node_of(op)["half_pixel_centers"]
    check_weights(old, new)
    shift = np.float32(0.5 if half else 0)
    places = (np.arange(new, dtype=np.float32) + shift) * resize_ratio(old, new, aligned) - shift
    low = np.floor(places)
    share = places - low
    matrix, rows = np.zeros((new, old), np.float32), np.arange(new)
    first, last = np.maximum(low, 0), np.minimum(np.ceil(places), old - 1)
    np.add.at(matrix, (rows, first.astype(np.int64)), 1 - share)
    np.add.at(matrix, (rows, last.astype(np.int64)), share)
    return matrix


def bicubic_matrix(op: View, old: int, new: int) -> Floats:
    """As `bilinear_matrix`, of four old rows."""
    node = node_of(op)
    return bicubic_weights(old, new, node["align_corners"], node["half_pixel_centers"])


def nearest_places(op: View, old: int, new: int) -> npt.NDArray[np.int64]:
    """The old row that each new one is."""
    node = node_of(op)
    options = ResizeNearestNeighborOptions(
        align_corners=node["align_corners"], half_pixel_centers=node["half_pixel_centers"]
    )
    return nearest_indices(old, new, options)


def mirrored_places(op: View, size: int, pair: list[int]) -> npt.NDArray[np.int64]:
    """The cell that each cell of a padded axis is."""
    cells = np.arange(size)
    mode: Any = str(node_of(op)["mode"]).lower()
    return np.pad(cells, pair, mode=mode) if any(pair) else cells


def fake_quant_ends(op: View, low: np.float32, high: np.float32) -> tuple[np.float32, np.float32]:
    """The range moved so that 0 is one of its steps."""
    node = node_of(op)
    if not 2 <= node["num_bits"] <= 16 or not low < high:
        raise ModelError(f"{op.label}: {node['num_bits']} bits from {low} to {high}")
    least, most = np.float32(node["narrow_range"]), np.float32(2 ** node["num_bits"] - 1)
    step = (high - low) / (most - least)
    zero = least - low / step
    moved = least if zero < least else most if zero > most else np.floor(zero + np.float32(0.5))
    return (least - moved) * step, (most - moved) * step
