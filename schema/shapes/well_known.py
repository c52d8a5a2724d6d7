"""Shape rules of well-known custom operators: detection, audio, MediaPipe's."""

from __future__ import annotations

from typing import Any

from tflite_ort.schema.arithmetic.audio_features import fft_length
from tflite_ort.schema.file.enums import Padding, TensorType
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.shapes.registry import Shapes, of_type, required, rule
from tflite_ort.schema.values.semantics import check_window, conv_output_size
from tflite_ort.schema.values.sizes import Shape
from tflite_ort.schema.values.view import OperatorView
from tflite_ort.schema.values.well_known_options import (
    AudioSpectrogramOptions,
    DetectionPostProcessOptions,
    LandmarksToMatrixOptions,
    MfccOptions,
    TransformTensorOptions,
    map_options,
    pool_options,
    transpose_conv_options,
)

FLOAT = TensorType.FLOAT32
# Options with more in them are damaged: nothing is allocated for them.
_MOST_CELLS = 1 << 26


def _shape(op: OperatorView[Any], position: int, rank: int, *types: TensorType) -> Shape:
    """The shape of an input of `rank` dimensions, of float32 or one of `types`."""
    shape = of_type(op, position, FLOAT, *types).shape
    if len(shape) != rank:
        raise ModelError(f"{op.label}: input {position} has rank {len(shape)}, expected {rank}")
    return shape


@rule("TFLite_Detection_PostProcess")
def tflite_detection_postprocess(op: OperatorView[Any]) -> Shapes:
    """Boxes [1, N, 4], classes and scores [1, N], and the number of detections [1]."""
    options = map_options(op, DetectionPostProcessOptions)
    _check_detections(op, options)
    encodings, scores = (_shape(op, position, 3, TensorType.UINT8) for position in (0, 1))
    anchors = _shape(op, 2, 2, TensorType.UINT8)
    if (encodings[0], scores[:2]) != (1, encodings[:2]) or encodings[2] < 4:
        raise ModelError(f"boxes {encodings} with scores {scores} are not [1, N, 4] and [1, N, C]")
    if anchors[0] < encodings[1] or anchors[1] != 4:
        raise ModelError(f"anchors {anchors} do not fit {encodings[1]} boxes")
    if options.num_classes < 1 or not 0 <= scores[2] - options.num_classes <= 1:
        raise ModelError(f"{scores[2]} scores a box for {options.num_classes} classes")
    # Of the regular suppression too, which fills only the first `max_detections`.
    count = options.max_detections * options.max_classes_per_detection
    return (1, count, 4), (1, count), (1, count), (1,)


def _check_detections(op: OperatorView[Any], options: DetectionPostProcessOptions) -> None:
    """TFLite refuses these too, some of them when it is invoked."""
    asked = (options.max_detections, options.max_classes_per_detection)
    least = 1 if options.use_regular_nms else 0
    if asked[0] < least or asked[1] < 1 or asked[0] * asked[1] > _MOST_CELLS:
        raise ModelError(f"{op.label}: max_detections, max_classes_per_detection are {asked}")
    if options.use_regular_nms and options.detections_per_class < 1:
        raise ModelError(f"{op.label}: detections_per_class is {options.detections_per_class}")
    if not 0 < options.nms_iou_threshold <= 1:
        threshold = options.nms_iou_threshold
        raise ModelError(f"{op.label}: nms_iou_threshold is {threshold}, expected in (0, 1]")


@rule("TransformLandmarks")
def transform_landmarks(op: OperatorView[Any]) -> Shapes:
    shape = _shape(op, 0, 3)
    if shape[0] != 1 or shape[2] not in (2, 3):
        raise ModelError(f"{op.label}: {shape} is no list of points of 2 or 3 coordinates")
    return (shape,)


@rule("NumericVerify", "aeq.hadamard_rotation")
def unchanged(op: OperatorView[Any]) -> Shapes:
    return (required(op, 0).shape,)


@rule("AudioSpectrogram")
def audio_spectrogram(op: OperatorView[Any]) -> Shapes:
    """Samples [S, C] to [C, windows, bins]."""
    options = map_options(op, AudioSpectrogramOptions)
    samples, channels = _shape(op, 0, 2)
    if options.window_size < 2 or options.stride < 1:
        raise ModelError(
            f"{op.label}: windows of {options.window_size} samples every {options.stride}"
        )
    count = max(0, (samples - options.window_size) // options.stride + 1)
    return ((channels, count, fft_length(options.window_size) // 2 + 1),)


@rule("Mfcc")
def mfcc(op: OperatorView[Any]) -> Shapes:
    """Spectrograms [C, windows, bins] to [C, windows, coefficients]."""
    options = map_options(op, MfccOptions)
    coefficients = options.dct_coefficient_count
    if not 1 <= coefficients <= options.filterbank_channel_count:
        filters = options.filterbank_channel_count
        raise ModelError(f"{op.label}: {coefficients} coefficients of {filters} filters")
    return ((*_shape(op, 0, 3)[:2], coefficients),)


@rule("Convolution2DTransposeBias")
def convolution_2d_transpose_bias(op: OperatorView[Any]) -> Shapes:
    """Filter [N, KH, KW, C], bias [N]; as large as the windows reach, less the padding."""
    options = transpose_conv_options(op)
    (batch, *size, channels), filter = _shape(op, 0, 4), _shape(op, 1, 4)
    if filter[3] != channels or _shape(op, 2, 1) != filter[:1]:
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
    batch, height, width, channels = _shape(op, 0, 4)
    rows = conv_output_size(options.padding, height, options.filter_height, options.stride_h)
    columns = conv_output_size(options.padding, width, options.filter_width, options.stride_w)
    if min(rows, columns) < 1:
        raise ModelError(f"{op.label}: no window fits in an image of {height, width}")
    return ((batch, rows, columns, channels),) * 2


@rule("MaxUnpooling2D")
def max_unpooling_2d(op: OperatorView[Any]) -> Shapes:
    """An image of as many windows as the input has cells."""
    options = pool_options(op)
    batch, height, width, channels = shape = _shape(op, 0, 4)
    if _shape(op, 1, 4, TensorType.INT32) != shape:
        raise ModelError(f"{op.label}: indices have another shape than {shape}")
    return ((batch, height * options.filter_height, width * options.filter_width, channels),)


@rule("TransformTensorBilinear")
def transform_tensor_bilinear(op: OperatorView[Any]) -> Shapes:
    options = map_options(op, TransformTensorOptions)
    shape, size = _shape(op, 0, 4), (options.output_height, options.output_width)
    if shape[0] != 1 or min(size) < 1 or size[0] * size[1] > _MOST_CELLS:
        raise ModelError(f"{op.label}: {shape} cannot become {size}; only a batch of 1 is defined")
    return ((1, *size, shape[3]),)


@rule("Landmarks2TransformMatrix")
def landmarks_to_transform_matrix(op: OperatorView[Any]) -> Shapes:
    options = map_options(op, LandmarksToMatrixOptions)
    batch, points, coordinates = _shape(op, 0, 3)
    if (batch, coordinates) != (1, 3):
        raise ModelError(f"{op.label}: landmarks are not one list of points of 3 coordinates")
    used = (options.left_rotation_idx, options.right_rotation_idx, *options.subset_idxs)
    if not options.subset_idxs or not 0 <= min(used) <= max(used) < points:
        raise ModelError(f"{op.label}: landmarks {min(used)} to {max(used)} of {points}")
    sizes = (options.output_height, options.output_width, options.scale_x, options.scale_y)
    if not min(sizes) > 0:
        raise ModelError(f"{op.label}: sizes and scales are {sizes}, expected more than 0")
    return ((1, 4, 4),)
