"""TFLite metadata: what the author of a model says about it, a FlatBuffer of its own.

It stands in the buffer that the model's metadata names ``TFLITE_METADATA``; the files it speaks
of are in a zip archive that follows the model in its file.
"""

from __future__ import annotations

from enum import IntEnum

import numpy as np

from tflite_ort.schema.file.declare import (
    child,
    children,
    enum,
    one_of,
    scalar,
    string,
    strings,
    vector,
    view,
)
from tflite_ort.schema.file.errors import MalformedModel
from tflite_ort.schema.file.fields import FLOAT32, INT32, UINT8, UINT32, Union
from tflite_ort.schema.file.file_bytes import Corrupt, File
from tflite_ort.schema.file.model import Model
from tflite_ort.schema.file.tables import Array, Table
from tflite_ort.schema.file.verify import read_table
from tflite_ort.schema.file.write import write_table

NAME = "TFLITE_METADATA"
_IDENTIFIER = b"M001"


class AssociatedFileType(IntEnum):
    """What a file is for."""

    UNKNOWN = 0
    DESCRIPTIONS = 1
    TENSOR_AXIS_LABELS = 2
    TENSOR_VALUE_LABELS = 3
    TENSOR_AXIS_SCORE_CALIBRATION = 4
    VOCABULARY = 5
    SCANN_INDEX_FILE = 6


class ColorSpaceType(IntEnum):
    """The channels of a picture."""

    UNKNOWN = 0
    RGB = 1
    GRAYSCALE = 2


class BoundingBoxType(IntEnum):
    """Which four numbers a box is: its sides, a corner or its centre with width and height."""

    UNKNOWN = 0
    BOUNDARIES = 1
    UPPER_LEFT = 2
    CENTER = 3


class CoordinateType(IntEnum):
    """Parts of the picture's size, or pixels."""

    RATIO = 0
    PIXEL = 1


class ScoreTransformationType(IntEnum):
    """What is done to a score before it is calibrated."""

    IDENTITY = 0
    LOG = 1
    INVERSE_LOGISTIC = 2


class AssociatedFile(Table):
    """A file packed with the model, such as labels: one a line."""

    name: str = string(0)
    description: str = string(1)
    type: AssociatedFileType = enum(2, AssociatedFileType)
    locale: str = string(3)
    version: str = string(4)


class FeatureProperties(Table):
    """The tensor is a vector of features."""


class ImageSize(Table):
    """In pixels."""

    width: int = scalar(0, UINT32)
    height: int = scalar(1, UINT32)


class ImageProperties(Table):
    """The tensor is a picture."""

    color_space: ColorSpaceType = enum(0, ColorSpaceType)
    default_size: ImageSize | None = child(1, ImageSize)


class BoundingBoxProperties(Table):
    """The tensor is boxes; `index` is where left, top, right and bottom stand."""

    index: tuple[int, ...] = vector(0, UINT32, default=())
    type: BoundingBoxType = enum(1, BoundingBoxType)
    coordinate_type: CoordinateType = enum(2, CoordinateType)


class AudioProperties(Table):
    """The tensor is sound."""

    sample_rate: int = scalar(0, UINT32)
    channels: int = scalar(1, UINT32)


class ValueRange(Table):
    """From `min` to `max`, both included."""

    min: int = scalar(0, INT32)
    max: int = scalar(1, INT32)


ContentProperties = Union(
    "ContentProperties",
    (FeatureProperties, ImageProperties, BoundingBoxProperties, AudioProperties),
)


class Content(Table):
    """What a tensor is of."""

    content_properties: (
        FeatureProperties | ImageProperties | BoundingBoxProperties | AudioProperties | None
    ) = one_of((1, ContentProperties))
    range: ValueRange | None = child(2, ValueRange)


class NormalizationOptions(Table):
    """(value - mean) / std, per channel or for all; of the values before they are quantized."""

    mean: tuple[float, ...] = vector(0, FLOAT32, default=())
    std: tuple[float, ...] = vector(1, FLOAT32, default=())


class ScoreCalibrationOptions(Table):
    """Scores are calibrated by the parameters in an associated file."""

    score_transformation: ScoreTransformationType = enum(0, ScoreTransformationType)
    default_score: float = scalar(1, FLOAT32)


class ScoreThresholdingOptions(Table):
    """Results of a lower score are left out."""

    global_score_threshold: float = scalar(0, FLOAT32)


class BertTokenizerOptions(Table):
    """Words and their parts."""

    vocab_file: tuple[AssociatedFile, ...] = children(0, AssociatedFile)


class SentencePieceTokenizerOptions(Table):
    """Sentence pieces."""

    sentence_piece_model: tuple[AssociatedFile, ...] = children(0, AssociatedFile)
    vocab_file: tuple[AssociatedFile, ...] = children(1, AssociatedFile)


class RegexTokenizerOptions(Table):
    """Text cut where an expression matches."""

    delim_regex_pattern: str = string(0)
    vocab_file: tuple[AssociatedFile, ...] = children(1, AssociatedFile)


ProcessUnitOptions = Union(
    "ProcessUnitOptions",
    (
        NormalizationOptions,
        ScoreCalibrationOptions,
        ScoreThresholdingOptions,
        BertTokenizerOptions,
        SentencePieceTokenizerOptions,
        RegexTokenizerOptions,
    ),
)


class ProcessUnit(Table):
    """One step before or after the model."""

    options: Table | None = one_of((1, ProcessUnitOptions))


class Stats(Table):
    """The least and the largest value, per channel or of all."""

    max: tuple[float, ...] = vector(0, FLOAT32, default=())
    min: tuple[float, ...] = vector(1, FLOAT32, default=())


class TensorMetadata(Table):
    """An input or output."""

    name: str = string(0)
    description: str = string(1)
    dimension_names: tuple[str, ...] = strings(2)
    content: Content | None = child(3, Content)
    process_units: tuple[ProcessUnit, ...] = children(4, ProcessUnit)
    stats: Stats | None = child(5, Stats)
    associated_files: tuple[AssociatedFile, ...] = children(6, AssociatedFile)


class TensorGroup(Table):
    """Tensors that belong together."""

    name: str = string(0)
    tensor_names: tuple[str, ...] = strings(1)


class CustomMetadata(Table):
    """Named bytes."""

    name: str = string(0)
    data: Array | None = view(1, UINT8, align=16)


class SubGraphMetadata(Table):
    """A subgraph; inputs and outputs in its order."""

    name: str = string(0)
    description: str = string(1)
    input_tensor_metadata: tuple[TensorMetadata, ...] = children(2, TensorMetadata)
    output_tensor_metadata: tuple[TensorMetadata, ...] = children(3, TensorMetadata)
    associated_files: tuple[AssociatedFile, ...] = children(4, AssociatedFile)
    input_process_units: tuple[ProcessUnit, ...] = children(5, ProcessUnit)
    output_process_units: tuple[ProcessUnit, ...] = children(6, ProcessUnit)
    input_tensor_groups: tuple[TensorGroup, ...] = children(7, TensorGroup)
    output_tensor_groups: tuple[TensorGroup, ...] = children(8, TensorGroup)
    custom_metadata: tuple[CustomMetadata, ...] = children(9, CustomMetadata)


class ModelMetadata(Table):
    """A model."""

    name: str = string(0)
    description: str = string(1)
    version: str = string(2)
    subgraph_metadata: tuple[SubGraphMetadata, ...] = children(3, SubGraphMetadata)
    author: str = string(4)
    license: str = string(5)
    associated_files: tuple[AssociatedFile, ...] = children(6, AssociatedFile)
    min_parser_version: str = string(7)


def read_metadata(model: Model) -> ModelMetadata | None:
    """The TFLite metadata of a model; None when it has none.

    Raises:
        MalformedModel: it is damaged, or not of the version known here.
    """
    for entry in model.metadata:
        data = model.buffers[entry.buffer].data
        if entry.name == NAME and data is not None:
            return _read(data)
    return None


def _read(content: Array) -> ModelMetadata:
    if content[4:8].tobytes() != _IDENTIFIER:
        raise MalformedModel(f"no metadata of version {_IDENTIFIER.decode()}", NAME)
    file = File(np.ascontiguousarray(content))
    try:
        return read_table(file, file.follow(0), ModelMetadata)
    except Corrupt as corrupt:
        path = f"{NAME}.{corrupt.path}"
        raise MalformedModel(corrupt.reason, path, corrupt.offset) from None


def write_metadata(metadata: ModelMetadata) -> bytes:
    """The bytes that `read_metadata` reads, for a buffer of that name."""
    return write_table(metadata, _IDENTIFIER)
