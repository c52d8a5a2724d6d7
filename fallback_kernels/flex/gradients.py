"""TensorFlow's gradients, but for those of windows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.flex.elementwise import computed
from tflite_ort.fallback_kernels.flex.images import crop_places
from tflite_ort.fallback_kernels.flex.layers import SELU_ALPHA, SELU_SCALE
from tflite_ort.fallback_kernels.flex.reductions import FLOATS, of_types
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.scattering import combine_at
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView, TensorType
from tflite_ort.schema.shapes.flex.gradients import (
    bicubic_matrix,
    bilinear_matrix,
    broadcast_gradient_axes,
    fake_quant_ends,
    mirrored_places,
    nearest_places,
    unpadded,
)
from tflite_ort.schema.shapes.flex.layers import per_channel
from tflite_ort.schema.shapes.flex.movement import slice_places
from tflite_ort.schema.shapes.registry import shown, single
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

# Of a result and its gradient.
_OF_RESULT: dict[str, Callable[[Array, Array], Array]] = {
    "InvGrad": lambda y, dy: -(np.conj(y) * dy * np.conj(y)),
    "ReciprocalGrad": lambda y, dy: -(np.conj(y) * dy * np.conj(y)),
    "RsqrtGrad": lambda y, dy: y.dtype.type(0.5) * (-dy * np.conj(y)) * (np.conj(y) * np.conj(y)),
    "SigmoidGrad": lambda y, dy: dy * (y * (1 - y)),
    "SqrtGrad": lambda y, dy: y.dtype.type(0.5) * dy / np.conj(y),
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
}
# Of a gradient and the features, or the result.
_OF_FEATURES: dict[str, Callable[[Array, Array], Array]] = {
    "EluGrad": lambda g, y: np.where(y < 0, (y + 1) * g, g),
    "ReluGrad": lambda g, x: g * (x > 0).astype(g.dtype),
    "Relu6Grad": lambda g, x: g * ((x > 0) & (x < 6)).astype(g.dtype),
    "SeluGrad": lambda g, y: np.where(
        y < 0, g * (y + y.dtype.type(SELU_SCALE * SELU_ALPHA)), g * y.dtype.type(SELU_SCALE)
    ),
    "SoftplusGrad": lambda g, x: g / (np.exp(-x) + 1),
    "SoftsignGrad": lambda g, x: g / np.square(np.abs(x) + 1),
}
_PAIRS = {**_OF_RESULT, **_OF_FEATURES}


def pair(op: View, inputs: Inputs, state: State) -> Outputs:
    """The function of `_PAIRS`, element by element."""
    return (computed(_PAIRS[str(op.name).removeprefix("Flex")], *inputs),)


flex_kernel(*_PAIRS)(pair)


@flex_kernel("LeakyReluGrad")
def leaky_relu(op: View, inputs: Inputs, state: State) -> Outputs:
    """The gradient, times the slope where the feature is not above 0."""
    slope = node_of(op)["alpha"]
    return (computed(lambda g, x: np.where(x > 0, g, g * g.dtype.type(slope)), *inputs),)


@flex_kernel("BiasAddGrad")
def bias(op: View, inputs: Inputs, state: State) -> Outputs:
    """The sum of all gradients of a channel; integers wrap."""
    (given,) = inputs
    axes = tuple(a for a, size in enumerate(per_channel(op, given.ndim)) if size == 1)
    return (computed(lambda x: x.sum(axis=axes, dtype=x.dtype), given),)


@flex_kernel("BroadcastGradientArgs")
def broadcast_axes(op: View, inputs: Inputs, state: State) -> Outputs:
    """The axes along which gradients of a broadcast result are summed, for both operands."""
    sizes = [each.tolist() for each in inputs]
    dtype = inputs[0].dtype
    return tuple(np.array(axes, dtype) for axes in broadcast_gradient_axes(op, *sizes))


# Layers -----------------------------------------------------------------------------------------


@flex_kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def batch_norm(op: View, inputs: Inputs, state: State) -> Outputs:
    """The gradients of the images, of the scale and of the offset."""
    given, x, scale, mean, variance = (each.astype(np.float32) for each in inputs[:5])
    node, shape = node_of(op), per_channel(op, x.ndim)
    axes = tuple(axis for axis, size in enumerate(shape) if size == 1)
    centred = x - mean.reshape(shape)
    factor = 1 / np.sqrt(variance + np.float32(node["epsilon"]))
    offset = given.sum(axis=axes, dtype=np.float64)
    products = (given * centred).sum(axis=axes, dtype=np.float64)
    whole = (scale * factor).reshape(shape)
    if node["is_training"]:
        count = max(x.size // max(scale.size, 1), 1)
        part = (products / count).astype(np.float32) * factor * factor
        less = (offset / count).astype(np.float32).reshape(shape)
        result = whole * (given - less - centred * part.reshape(shape))
    else:
        result = whole * given
    found = result, products.astype(np.float32) * factor, offset
    nothing = np.zeros(0, np.float32)
    outputs = zip((*found, nothing, nothing), op.outputs, strict=True)
    return tuple(np.asarray(each).astype(output.dtype) for each, output in outputs)


@flex_kernel("FakeQuantWithMinMaxArgsGradient")
def fake_quant_of_attributes(op: View, inputs: Inputs, state: State) -> Outputs:
    """The gradients of what is inside the range."""
    (given, x), node = inputs, node_of(op)
    low, high = fake_quant_ends(op, np.float32(node["min"]), np.float32(node["max"]))
    return (given * ((x >= low) & (x <= high)).astype(np.float32),)


@flex_kernel("FakeQuantWithMinMaxVarsGradient", "FakeQuantWithMinMaxVarsPerChannelGradient")
def fake_quant(op: View, inputs: Inputs, state: State) -> Outputs:
    """The gradients of what is inside the range, and the sums of those below and above."""
    given, x, low, high = inputs
    axes = tuple(range(x.ndim - low.ndim))
    if not low.any() and not high.any():
        return given.copy(), np.zeros_like(low), np.zeros_like(high)
    pairs = zip(low.reshape(-1), high.reshape(-1), strict=True)
    ends = np.array([fake_quant_ends(op, *each) for each in pairs], np.float32).reshape(-1, 2)
    least, most = (each.reshape(low.shape) for each in ends.T)
    below, above = x < least, x > most
    inside = given * (~below & ~above).astype(np.float32)
    sums = (np.where(where, given, 0).sum(axis=axes, dtype=np.float32) for where in (below, above))
    return (inside, *(np.asarray(each) for each in sums))


# Images -----------------------------------------------------------------------------------------


@flex_kernel("ResizeBilinearGrad", "ResizeBicubicGrad")
def resized(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each new pixel gives the old ones its gradient by their weights."""
    given, image = inputs
    matrix = bilinear_matrix if op.name == "FlexResizeBilinearGrad" else bicubic_matrix
    rows, columns = (
        matrix(op, old, new) for old, new in zip(image.shape[1:3], given.shape[1:3], strict=True)
    )
    wide = given.astype(image.dtype if image.dtype == np.float64 else np.float32)
    result = np.einsum("rh,nrsc,sw->nhwc", rows, wide, columns, optimize=True)
    return (result.astype(op.output.dtype),)


@flex_kernel("ResizeNearestNeighborGrad", state=of_types(FLOATS | {TensorType.INT32}))
def resized_nearest(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each new pixel gives its gradient to the old one that it was."""
    given, sizes = inputs
    result = given
    for axis, old in zip((1, 2), sizes.tolist(), strict=True):
        moved = np.moveaxis(result, axis, 0)
        total = np.zeros((old, *moved.shape[1:]), given.dtype)
        places = nearest_places(op, old, len(moved))
        combine_at(np.add, total, places, np.ascontiguousarray(moved))
        result = np.moveaxis(total, 0, axis)
    return (np.ascontiguousarray(result),)


@flex_kernel("MirrorPadGrad")
def mirrored(op: View, inputs: Inputs, state: State) -> Outputs:
    """The gradients of a cell and of its mirror images together."""
    given, pairs = inputs[0], inputs[1].reshape(-1, 2).tolist()
    inner = unpadded(op, given.shape, pairs)
    for axis, (size, pair) in enumerate(zip(inner, pairs, strict=True)):
        moved = np.moveaxis(given, axis, 0)
        total = np.zeros((size, *moved.shape[1:]), given.dtype)
        places = mirrored_places(op, size, pair)
        combine_at(np.add, total, places, np.ascontiguousarray(moved))
        given = np.moveaxis(total, 0, axis)
    return (np.ascontiguousarray(given),)


def _crops(
    op: View, inputs: Inputs, boxes: Array, sizes: tuple[int, int]
) -> tuple[Array, Array, Array]:
    """Where the rows and the columns of crops are in images of some sizes, and which pixels are
    inside."""
    rows, columns = inputs[0].shape[1:3]
    y = crop_places(boxes[:, 0], boxes[:, 2], sizes[0], rows)[:, :, None]
    x = crop_places(boxes[:, 1], boxes[:, 3], sizes[1], columns)[:, None, :]
    inside = (y >= 0) & (y <= sizes[0] - 1) & (x >= 0) & (x <= sizes[1] - 1)
    y, x = (np.broadcast_to(np.where(np.isfinite(v), v, 0), inside.shape) for v in (y, x))
    return y.clip(0, sizes[0] - 1), x.clip(0, sizes[1] - 1), inside


def _images_of(inputs: Inputs, place: int, count: int) -> Array:
    images: Array = inputs[place]
    if images.size and not (images.min() >= 0 and images.max() < count):
        raise KernelError(f"box_ind {shown(images)} of {count} images")
    return images[:, None, None]


@flex_kernel("CropAndResizeGradImage")
def cropped_image(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each pixel of a crop gives the pixels that it was made of its gradient by their weights."""
    given, boxes, _, sizes = inputs
    images, height, width, channels = sizes.tolist()
    number = _images_of(inputs, 2, images)
    y, x, inside = _crops(op, inputs, boxes, (height, width))
    total = np.zeros((images * height * width, channels), np.float32)

    def give(at_y: Array, at_x: Array, share: Array) -> None:
        rows = (number * height + at_y.astype(np.int64)) * width + at_x.astype(np.int64)
        values = np.where(inside[..., None], given * share[..., None], np.float32(0))
        combine_at(np.add, total, rows.reshape(-1), values.reshape(-1, channels))

    if node_of(op)["method"] == "nearest":
        half = np.float32(0.5)
        give(np.floor(y + half), np.floor(x + half), np.ones_like(y))
    else:
        past_y, past_x = y - np.floor(y), x - np.floor(x)
        for at_y, share_y in ((np.floor(y), 1 - past_y), (np.ceil(y), past_y)):
            give(at_y, np.floor(x), (1 - past_x) * share_y)
            give(at_y, np.ceil(x), past_x * share_y)
    return (total.reshape(images, height, width, channels).astype(op.output.dtype),)


@flex_kernel("CropAndResizeGradBoxes")
def cropped_boxes(op: View, inputs: Inputs, state: State) -> Outputs:
    """How the sums of the gradients change with the edges of each box."""
    given, image, boxes, _ = inputs
    _, height, width, _ = image.shape
    number = _images_of(inputs, 3, len(image))
    y, x, inside = _crops(op, inputs, boxes, (height, width))
    past_y, past_x = (y - np.floor(y))[..., None], (x - np.floor(x))[..., None]

    def pick(at_y: Array, at_x: Array) -> Array:
        place = (number, at_y.astype(np.int64), at_x.astype(np.int64))
        return np.asarray(image[place], np.float32)

    (top, bottom), (left, right) = ((np.floor(at), np.ceil(at)) for at in (y, x))
    (a, b), (c, d) = ((pick(at, left), pick(at, right)) for at in (top, bottom))
    along_y = (c - a) * (1 - past_x) + (d - b) * past_x
    along_x = (b - a) * (1 - past_y) + (d - c) * past_y
    found = []
    for slope, axis, size in ((along_y, 1, height), (along_x, 2, width)):
        change = np.where(inside[..., None], slope * given, np.float32(0))
        sums = change.sum(axis=tuple({1, 2, 3} - {axis}), dtype=np.float32)  # [boxes, rows]
        count = sums.shape[1]
        share: Array = np.full(1, 0.5, np.float32)
        if count > 1:
            share = np.arange(count, dtype=np.float32) / np.float32(count - 1)
        edge = np.float32(size - 1)
        found.append((sums * (1 - share) * edge).sum(axis=1, dtype=np.float32))
        found.append((sums * share * edge).sum(axis=1, dtype=np.float32))
    first_y, last_y, first_x, last_x = found
    return (np.stack([first_y, first_x, last_y, last_x], axis=1),)


# Rows and slices --------------------------------------------------------------------------------


@flex_kernel("StridedSliceGrad")
def strided_slice(op: View, inputs: Inputs, state: State) -> Outputs:
    """Zeros, but for the gradients at the places that were taken."""
    sizes, *bounds, given = inputs
    places = slice_places(op, tuple(sizes.tolist()), bounds)
    if given.shape != places.shape:
        raise KernelError(f"gradients of shape {given.shape}, expected {places.shape}")
    result = np.zeros(sizes.tolist(), given.dtype)
    result.reshape(-1)[places] = given
    return (result,)


@flex_kernel("SparseFillEmptyRowsGrad")
def filled_rows(op: View, inputs: Inputs, state: State) -> Outputs:
    """The gradients of the values that were there, and the sum of all others."""
    places, given = inputs
    if places.size and not (places.min() >= 0 and places.max() < len(given)):
        raise KernelError(f"rows {shown(places)} of {len(given)}")
    others = np.ones(len(given), np.bool_)
    others[places] = False
    return given[places], np.asarray(given[others].sum(dtype=given.dtype))


# How much of the gradient of a segment of a size each of its rows gets.
_SHARES: dict[str, Callable[[Array], Array]] = {
    "FlexSparseSegmentMeanGrad": lambda sizes: 1 / sizes,
    "FlexSparseSegmentSqrtNGrad": lambda sizes: 1 / np.sqrt(sizes),
    "FlexSparseSegmentSumGrad": np.ones_like,
}


@flex_kernel(
    *("SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", "SparseSegmentSumGrad"),
    state=of_types(FLOATS),
)
def segments(op: View, inputs: Inputs, state: State) -> Outputs:
    """Each row gets the gradients of the segments that it is in, divided as these were."""
    given, indices, ids, count = inputs
    rows = single(count)
    if ids.size and not (ids.min() >= 0 and ids.max() < len(given)):
        raise KernelError(f"segment ids {shown(ids)} of {len(given)}")
    if indices.size and not (indices.min() >= 0 and indices.max() < rows):
        raise KernelError(f"rows {shown(indices)} of {rows}")
    sizes = np.maximum(np.bincount(ids, minlength=len(given)), 1).astype(given.dtype)
    share = _SHARES[str(op.name)](sizes)[ids]
    values = given[ids] * share.reshape(-1, *(1,) * (given.ndim - 1))
    result = np.zeros((rows, *given.shape[1:]), given.dtype)
    combine_at(np.add, result, indices, values)
    return (result,)


refuse_rest("gradients")
