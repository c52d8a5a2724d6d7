"""The options of well-known custom operators: fields of a flexbuffer map, or C structs as bytes.

As in TFLite an absent field is zero, unless it has another default here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.schema.file.enums import ActivationFunctionType, Padding
from tflite_ort.schema.file.errors import ModelError
from tflite_ort.schema.file.layer_options import Pool2DOptions, TransposeConvOptions
from tflite_ort.schema.values.operators import FLEX
from tflite_ort.schema.values.view import OperatorView

with late:
    from tflite_ort.schema.values import flex

T = TypeVar("T")
UInt64 = int


@record
class DetectionPostProcessOptions:
    """TFLite_Detection_PostProcess; `detections_per_class` is of the regular suppression only,
    `max_classes_per_detection` of the fast one."""

    max_detections: int = 0
    max_classes_per_detection: int = 0
    detections_per_class: int = 100
    use_regular_nms: bool = False
    nms_score_threshold: float = 0.0
    nms_iou_threshold: float = 0.0
    num_classes: int = 0
    y_scale: float = 0.0
    x_scale: float = 0.0
    h_scale: float = 0.0
    w_scale: float = 0.0


@record
class NumericVerifyOptions:
    """NumericVerify."""

    tolerance: float = 0.0
    log_if_failed: bool = False

    @property
    def checks(self) -> bool:
        """Whether a difference above the tolerance is an error."""
        return self.log_if_failed and self.tolerance >= 0.1


@record
class AudioSpectrogramOptions:
    """AudioSpectrogram."""

    window_size: int = 0
    stride: int = 0
    magnitude_squared: bool = False


@record
class MfccOptions:
    """Mfcc."""

    upper_frequency_limit: int = 0
    lower_frequency_limit: int = 0
    filterbank_channel_count: int = 0
    dct_coefficient_count: int = 0


@record
class HadamardRotationOptions:
    """aeq.hadamard_rotation."""

    hadamard_size: int = 0


@record
class TransformTensorOptions:
    """TransformTensorBilinear."""

    output_height: int = 0
    output_width: int = 0


@record
class LandmarksToMatrixOptions:
    """Landmarks2TransformMatrix, version 2."""

    left_rotation_idx: int = 0
    right_rotation_idx: int = 0
    target_rotation_radians: float = 0.0
    output_height: int = 0
    output_width: int = 0
    scale_x: float = 0.0
    scale_y: float = 0.0
    subset_idxs: tuple[int, ...] = ()


@record
class NGramHashOptions:
    """NGramHash."""

    seed: UInt64 = 0
    ngram_lengths: tuple[int, ...] = ()
    vocab_sizes: tuple[int, ...] = ()
    max_splits: int = 128
    lowercase_input: bool = True


@record
class BertNormalizeOptions:
    """FastBertNormalize."""

    get_offsets: bool = False


@record
class NgramsOptions:
    """TFText>NgramsStringJoin."""

    width: int = 0
    axis: int = 0
    string_separator: str = ""


@record
class BinarizeOptions:
    """TFText>Utf8Binarize."""

    word_length: int = 0
    bits_per_char: int = 0
    replacement_char: int = 0


def map_options(op: OperatorView[Any], kind: type[T]) -> T:
    """The fields of `kind` in the map that the options of `op` are, or in TensorFlow's node."""
    if op.name.startswith(FLEX):
        node = flex.node_of(op)
        return kind(**{field.name: node[field.name] for field in fields(kind)})  # type: ignore[arg-type]  # as below
    if not isinstance(op.options, Mapping):
        raise ModelError(f"{op.label}: the options are not a flexbuffer map")
    given = {}
    for field in fields(kind):  # type: ignore[arg-type]  # `kind` is one of the classes above
        value = op.options.get(field.name)
        if value is not None:
            given[field.name] = _converted(op, field.name, str(field.type), value)
    return kind(**given)


def _converted(op: OperatorView[Any], name: str, kind: str, value: Any) -> Any:
    try:
        return _CONVERTED[kind](value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"{op.label}: option {name!r} is {value!r}: {error}") from error


def _int32(value: Any) -> int:
    number = int(value)
    if not -(2**31) <= number < 2**31:
        raise ValueError("not an integer of 32 bits")
    return number


def _uint64(value: Any) -> int:
    number = int(value)
    if not -(2**63) <= number < 2**64:
        raise ValueError("not an integer of 64 bits")
    return number % 2**64


def _text(value: Any) -> str:
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else str(value)


def _int32s(values: Any) -> tuple[int, ...]:
    return tuple(map(_int32, values))


def _float32(value: Any) -> float:
    return float(np.float32(value))


_CONVERTED: dict[str, Callable[[Any], Any]] = {
    "bool": bool,
    "float": _float32,
    "UInt64": _uint64,
    "int": _int32,
    "str": _text,
    "tuple[int, ...]": _int32s,
}


def pool_options(op: OperatorView[Any]) -> Pool2DOptions:
    """The first words of TfLitePoolParams, checked."""
    padding, *sizes, activation = _words(op, 6)
    if min(sizes) < 1:
        raise ModelError(f"{op.label}: strides and filter are {sizes}, expected at least 1")
    stride_w, stride_h, filter_width, filter_height = sizes
    return Pool2DOptions(
        padding=_padding(op, padding),
        stride_w=stride_w,
        stride_h=stride_h,
        filter_width=filter_width,
        filter_height=filter_height,
        fused_activation_function=_activation(op, activation),
    )


def transpose_conv_options(op: OperatorView[Any]) -> TransposeConvOptions:
    """The first words of TfLiteTransposeConvParams, checked."""
    padding, *strides = _words(op, 3)
    if min(strides) < 1:
        raise ModelError(f"{op.label}: strides are {strides}, expected at least 1")
    return TransposeConvOptions(
        padding=_padding(op, padding), stride_w=strides[0], stride_h=strides[1]
    )


def _words(op: OperatorView[Any], count: int) -> tuple[int, ...]:
    """The first `count` words of the options; those after the end are 0."""
    data = b"" if op.custom_options is None else op.custom_options.tobytes()
    return struct.unpack(f"<{count}i", data[: 4 * count].ljust(4 * count, b"\0"))


def _padding(op: OperatorView[Any], code: int) -> Padding:
    """The C enumeration has an unknown padding first."""
    if code not in (1, 2):
        raise ModelError(f"{op.label}: padding {code} is neither 1 (SAME) nor 2 (VALID)")
    return Padding(code - 1)


def _activation(op: OperatorView[Any], code: int) -> ActivationFunctionType:
    try:
        return ActivationFunctionType(code)
    except ValueError as error:
        raise ModelError(f"{op.label}: no activation {code}") from error
