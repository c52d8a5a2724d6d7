"""Shape rules of MediaPipe's custom operators."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.file.enums import Padding
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import MOST_CELLS, Shapes, of_rank, rule
from tflite_ort.schema.values.semantics import check_window, conv_output_size
from tflite_ort.schema.values.sizes import unknown_size
from tflite_ort.schema.values.view import OperatorView
from tflite_ort.schema.values.well_known_options import (
    LandmarksToMatrixOptions,
    NGramHashOptions,
    TransformTensorOptions,
    map_options,
    pool_options,
    transpose_conv_options,
)


@rule("TransformLandmarks")
def transform_landmarks(op: OperatorView[Any]) -> Shapes:
    """The landmarks' shape, [1, points, 2 or 3]."""
    shape = of_rank(op, "landmarks", 3)
    if shape[0] != 1 or shape[2] not in (2, 3):
        raise ModelError(f"{op.label}: {shape} is no list of points of 2 or 3 coordinates")
    return (shape,)


@rule("Convolution2DTransposeBias")
def convolution_2d_transpose_bias(op: OperatorView[Any]) -> Shapes:
    """Filter [N, KH, KW, C], bias [N]; as large as the windows reach, less the padding."""
    options = transpose_conv_options(op)
    (batch, *size, channels), filter = (
        of_rank(op, "input", 4),
        of_rank(op, "filter", 4),
    )
    if filter[3] != channels or of_rank(op, "bias", 1) != filter[:1]:
        raise ModelError(f"{op.label}: filter {filter} does not fit {channels} input channels")
    padding = options.padding
    windows = list(zip(size, filter[1:3], (options.stride_h, options.stride_w), strict=True))
    for _, kernel, stride in windows:
        check_window(padding, kernel, stride)
    reached = (
        stride * (count - 1) + kernel - sum(transposed_padding(padding, count, kernel, stride))
        for count, kernel, stride in windows
    )
    return ((batch, *reached, filter[0]),)


def transposed_padding(padding: Padding, count: int, kernel: int, stride: int) -> tuple[int, int]:
    """(before, after) that is cut off what the windows reach; the odd cell goes after."""
    total = max(0, kernel - (count - 1) % stride - 1) if padding is Padding.SAME else 0
    return total // 2, total - total // 2


@rule("MaxPoolingWithArgmax2D")
def max_pooling_with_argmax_2d(op: OperatorView[Any]) -> Shapes:
    """The greatest cells, and where in its window each stands."""
    options = pool_options(op)
    batch, height, width, channels = of_rank(op, "input", 4)
    rows = conv_output_size(options.padding, height, options.filter_height, options.stride_h)
    columns = conv_output_size(options.padding, width, options.filter_width, options.stride_w)
    if min(rows, columns) < 1:
        raise ModelError(f"{op.label}: no window fits in an image of {height, width}")
    return ((batch, rows, columns, channels),) * 2


@rule("MaxUnpooling2D")
def max_unpooling_2d(op: OperatorView[Any]) -> Shapes:
    """An image of as many windows as the input has cells."""
    options = pool_options(op)
    batch, height, width, channels = shape = of_rank(op, "input", 4)
    if of_rank(op, "indices", 4) != shape:
        raise ModelError(f"{op.label}: indices have another shape than {shape}")
    return ((batch, height * options.filter_height, width * options.filter_width, channels),)


@rule("TransformTensorBilinear")
def transform_tensor_bilinear(op: OperatorView[Any]) -> Shapes:
    """[1, height, width, C], which the options say."""
    options = map_options(op, TransformTensorOptions)
    shape, size = (
        of_rank(op, "image", 4),
        (options.output_height, options.output_width),
    )
    if shape[0] != 1 or min(size) < 1 or size[0] * size[1] > MOST_CELLS:
        raise ModelError(f"{op.label}: {shape} cannot become {size}; only a batch of 1 is defined")
    return ((1, *size, shape[3]),)


@rule("Landmarks2TransformMatrix")
def landmarks_to_transform_matrix(op: OperatorView[Any]) -> Shapes:
    """[1, 4, 4]."""
    options = map_options(op, LandmarksToMatrixOptions)
    batch, points, coordinates = of_rank(op, "landmarks", 3)
    if (batch, coordinates) != (1, 3):
        raise ModelError(f"{op.label}: landmarks are not one list of points of 3 coordinates")
    used = (options.left_rotation_idx, options.right_rotation_idx, *options.subset_idxs)
    if not options.subset_idxs or not 0 <= min(used) <= max(used) < points:
        raise ModelError(f"{op.label}: landmarks {min(used)} to {max(used)} of {points}")
    sizes = (options.output_height, options.output_width, options.scale_x, options.scale_y)
    if not min(sizes) > 0:
        raise ModelError(f"{op.label}: sizes and scales are {sizes}, expected more than 0")
    return ((1, 4, 4),)


@rule("NGramHash")
def ngram_hash(op: OperatorView[Any]) -> Shapes:
    """[1, lengths of groups, pieces of the text]."""
    options = map_options(op, NGramHashOptions)
    if not options.ngram_lengths or len(options.ngram_lengths) != len(options.vocab_sizes):
        raise ModelError(
            f"{op.label}: {len(options.ngram_lengths)} lengths of groups of characters with "
            f"{len(options.vocab_sizes)} vocabularies, expected as many, and at least one"
        )
    if options.max_splits < 1 or min(options.vocab_sizes) < 1:
        raise ModelError(f"{op.label}: a vocabulary, or max_splits, is less than 1")
    return ((1, len(options.ngram_lengths), unknown_size()),)


@rule("KmeansEmbeddingLookup")
def kmeans_embedding_lookup(op: OperatorView[Any]) -> Shapes:
    """[1, codes of a row * length of a block]."""
    batch, _ = of_rank(op, "tokens", 2)
    if batch != 1:
        raise ModelError(f"{op.label}: a batch of {batch}, expected 1")
    (_, codes), (_, block) = of_rank(op, "codes", 2), of_rank(op, "codebook", 2)
    return ((1, codes * block),)
