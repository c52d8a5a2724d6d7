"""MediaPipe's custom operators: pooling with positions, parts of faces cut out of images, and
groups of characters as numbers.

A transform is [1, 4, 4], of which the first two rows are used: x and y of a point from the point.
Float32, rounded where MediaPipe's kernels round.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.accumulator import real_bounds
from tflite_ort.fallback_kernels.idioms.short_texts import hashes, pieces
from tflite_ort.fallback_kernels.idioms.windows import Span, windows
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, custom_kernel
from tflite_ort.schema import KernelError, OperatorView, Padding
from tflite_ort.schema.shapes.mediapipe import transposed_padding
from tflite_ort.schema.values.semantics import explicit_padding
from tflite_ort.schema.values.well_known_options import (
    LandmarksToMatrixOptions,
    NGramHashOptions,
    map_options,
    pool_options,
    transpose_conv_options,
)

Floats = npt.NDArray[np.float32]

# Cells that are unpooled at once.
_CELLS = 1 << 18
# Of all groups of characters that are hashed, the bytes, and 8 for each group.
_HASHED_BYTES = 1 << 24


@custom_kernel("Convolution2DTransposeBias", versions=(1, 1))
def convolution2dtransposebias(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Each cell of [B, H, W, C] adds its product with the filter [N, KH, KW, C] to the cells of a
    window; windows stand `stride` apart, and the bias [N] is everywhere."""
    x, filter, bias = inputs
    options = transpose_conv_options(op)
    strides, kernel = (options.stride_h, options.stride_w), filter.shape[1:3]
    reach = [s * (n - 1) + k for s, n, k in zip(strides, x.shape[1:3], kernel, strict=True)]
    whole = np.zeros((x.shape[0], *reach, filter.shape[0]), np.float32)
    for row, column in np.ndindex(*kernel):
        ends = (row + reach[0] - kernel[0] + 1, column + reach[1] - kernel[1] + 1)
        whole[:, row : ends[0] : strides[0], column : ends[1] : strides[1]] += (
            x @ filter[:, row, column].T
        )
    (top, bottom), (left, right) = (
        transposed_padding(options.padding, *sizes)
        for sizes in zip(x.shape[1:3], kernel, strides, strict=True)
    )
    return (whole[:, top : reach[0] - bottom, left : reach[1] - right] + bias,)


@custom_kernel("MaxPoolingWithArgmax2D", versions=(1, 1))
def maxpoolingwithargmax2d(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """(the greatest cell of each window, its position in the window row by row).

    Positions are of the type that the model says; as floats a tenth is added to them.
    """
    (x,), options = inputs, pool_options(op)
    rows = Span.over(x.shape[1], options.padding, options.filter_height, options.stride_h)
    columns = Span.over(x.shape[2], options.padding, options.filter_width, options.stride_w)
    lowest = -np.inf
    cells = windows(windows(x, 1, rows, lowest), 2, columns, lowest)
    cells = cells.reshape(*cells.shape[:4], options.filter_height * options.filter_width)
    position = cells.argmax(axis=-1)
    greatest = np.take_along_axis(cells, position[..., None], -1)[..., 0]
    greatest = np.clip(greatest, *real_bounds(options.fused_activation_function))
    dtype = op.outputs[1].dtype
    tenth = np.float32(0.1) if dtype == np.float32 else dtype.type(0)
    return greatest.astype(np.float32), position.astype(dtype) + tenth


@custom_kernel("MaxUnpooling2D", versions=(1, 1))
def maxunpooling2d(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Each cell at its position in the window that it came from, and zeros elsewhere."""
    (x, positions), options = inputs, pool_options(op)
    filter, padding = (options.filter_height, options.filter_width), options.padding
    batch, height, width, channels = x.shape
    sides = height * filter[0], width * filter[1]
    output = np.zeros((batch, *sides, channels), np.float32)
    for first in range(0, x.size, _CELLS):
        cells = np.arange(first, min(first + _CELLS, x.size))
        image, y, x_, channel = np.unravel_index(cells, x.shape)
        row, column = np.divmod(positions.reshape(-1)[cells].astype(np.int64), filter[1])
        row = _unpooled(row, y, height, padding, filter[0], options.stride_h)
        column = _unpooled(column, x_, width, padding, filter[1], options.stride_w)
        output[image, row, column, channel] = x.reshape(-1)[cells]
    return (output,)


def _unpooled(
    inside: Array, window: Array, count: int, padding: Padding, filter: int, stride: int
) -> Array:
    """Where cells go along an axis of `count` windows from where in their windows they were."""
    before, _ = explicit_padding(padding, count * filter, filter, stride)
    place = inside + window * stride - before
    if place.size and not 0 <= place.min() <= place.max() < count * filter:
        raise KernelError(f"a cell at {place.min()} or {place.max()} of {count * filter}")
    return np.asarray(place)


@custom_kernel("TransformTensorBilinear", versions=(2, 2))
def transformtensorbilinear(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The image [1, H, W, C] at the transformed centres of the output's cells, interpolated
    between the four nearest; zero outside of it."""
    image, transform = inputs[0][0], inputs[1].reshape(-1)
    size, sides = op.output.shape[1:3], image.shape[:2]
    y, x = (axis.astype(np.float32) for axis in np.indices(size))
    across, down = (_moved(transform[at : at + 4], x, y) for at in (0, 4))
    inside = (across >= 0) & (across <= sides[1] - 1) & (down >= 0) & (down <= sides[0] - 1)
    across, down = (np.where(inside, place, np.float32(0)) for place in (across, down))
    left, top = np.floor(across).astype(np.int64), np.floor(down).astype(np.int64)
    right, bottom = np.minimum(left + 1, sides[1] - 1), np.minimum(top + 1, sides[0] - 1)
    to_right, to_bottom = ((place - np.floor(place))[..., None] for place in (across, down))
    upper = _between(image[top, left], image[top, right], to_right)
    lower = _between(image[bottom, left], image[bottom, right], to_right)
    return (np.where(inside[..., None], _between(upper, lower, to_bottom), np.float32(0))[None],)


def _moved(row: Floats, x: Floats, y: Floats) -> Floats:
    """One coordinate of the points (x, y), moved from corners of cells to their centres."""
    shift = row[3] + (float(row[0]) * 0.5 + float(row[1]) * 0.5 - 0.5)
    return np.asarray(row[0] * x + row[1] * y + np.float32(shift))


def _between(first: Floats, second: Floats, share: Floats) -> Floats:
    return ((1.0 - share.astype(np.float64)) * first + share * second).astype(np.float32)


@custom_kernel("TransformLandmarks", versions=(2, 2))
def transformlandmarks(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Points [1, N, 2] or [1, N, 3] with x and y transformed, and z as it is."""
    landmarks, transform = inputs[0], inputs[1].reshape(-1)
    x, y = landmarks[..., 0], landmarks[..., 1]
    rows = (transform[at : at + 4] for at in (0, 4))
    moved = [row[0] * x + row[1] * y + row[3] for row in rows]
    return (np.concatenate([np.stack(moved, axis=-1), landmarks[..., 2:]], axis=-1),)


@custom_kernel("Landmarks2TransformMatrix", versions=(2, 2))
def landmarks2transformmatrix(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The transform [1, 4, 4] from an upright crop to the image: the crop holds some of the
    points [1, N, 3], turned so that two of them stand at the angle asked for."""
    options = map_options(op, LandmarksToMatrixOptions)
    points = inputs[0][0, :, :2]
    turned = options.target_rotation_radians - _angle(
        points[options.right_rotation_idx] - points[options.left_rotation_idx]
    )
    cos, sin = np.cos(turned), np.sin(turned)
    there = np.array([[cos, -sin], [sin, cos]], np.float32)
    upright = points[list(options.subset_idxs)] @ there.T
    highest, lowest = upright.max(axis=0), upright.min(axis=0)
    centre = there.T @ ((highest + lowest) / np.float32(2))
    size = np.array([options.output_width, options.output_height], np.float32)
    scale = np.array([options.scale_x, options.scale_y], np.float32) * (highest - lowest) / size
    matrix = np.eye(4, dtype=np.float32)
    matrix[:2, :2] = there.T * scale
    matrix[:2, 3] = centre - matrix[:2, :2] @ (size / np.float32(2))
    return (matrix[None],)


def _angle(difference: Floats) -> np.float32:
    return np.float32(np.arctan2(difference[1], difference[0]))


@custom_kernel("NGramHash", versions=(1, 1))
def ngramhash(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Of the text's pieces each group of following ones as a number from 1 to the size of a
    vocabulary: int32 [1, lengths, pieces], by length of a group. At the end groups are shorter."""
    (texts,), options = inputs, map_options(op, NGramHashOptions)
    if not texts.size or op.output.dtype != np.int32:
        raise KernelError(f"{texts.size} texts as {op.output.dtype}, expected one or more as int32")
    found = pieces(texts.reshape(-1)[0], options.lowercase_input, options.max_splits)
    ends = np.cumsum([0, *map(len, found)])
    last, rows, whole, spent = len(found), [], b"".join(found), 0
    for length, size in zip(options.ngram_lengths, options.vocab_sizes, strict=True):
        starts = np.arange(last)
        stops = np.minimum(starts + max(length, 0), last)
        spent += int((ends[stops] - ends[starts] + 8).sum())
        if spent > _HASHED_BYTES:
            raise KernelError(
                f"groups of {length} of {last} characters are more than can be hashed"
            )
        bounds = zip(ends[starts].tolist(), ends[stops].tolist(), strict=True)
        numbers = hashes([whole[first:end] for first, end in bounds], options.seed)
        rows.append((numbers % np.uint64(size)).astype(np.int64) + 1)
    return (np.stack(rows)[np.newaxis].astype(np.int32),)


@custom_kernel("KmeansEmbeddingLookup", versions=(1, 1))
def kmeansembeddinglookup(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The mean of the vectors of the tokens before the first 0; a vector is the blocks of the
    codebook that the token's codes name. Summed token by token."""
    tokens, codes, codebook = inputs
    row = tokens.reshape(-1)
    ends = np.flatnonzero(row == 0)
    row = row[: ends[0]] if len(ends) else row
    for what, values, count in (("token", row, len(codes)), ("code", codes, len(codebook))):
        if values.size and not 0 <= values.min() <= values.max() < count:
            raise KernelError(f"{what} {values.min()} or {values.max()} of {count}")
    total = np.zeros((codes.shape[1], codebook.shape[1]), np.float32)
    for token in row.tolist():
        total += codebook[codes[token]]
    return ((total / np.float32(max(len(row), 1))).reshape(1, -1),)
