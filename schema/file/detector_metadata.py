"""What the metadata of a detector or a segmenter say of its raw outputs: anchors, how boxes are
decoded, and which activation is left to do.

It is a FlatBuffer of its own, custom metadata of a model's subgraph.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from tflite_ort.schema.file.declare import boolean, child, children, scalar, string
from tflite_ort.schema.file.errors import MalformedModel
from tflite_ort.schema.file.fields import FLOAT32, INT8, INT32
from tflite_ort.schema.file.file_bytes import Corrupt, File
from tflite_ort.schema.file.model_metadata import SubGraphMetadata
from tflite_ort.schema.file.tables import Table
from tflite_ort.schema.file.verify import read_table
from tflite_ort.schema.file.write import write_table

DETECTOR, SEGMENTER = "DETECTOR_METADATA", "SEGMENTER_METADATA"
_IDENTIFIER = b"V001"
_ACTIVATIONS = ("", "Sigmoid", "Softmax")

T = TypeVar("T", bound=Table)


class FixedAnchor(Table):
    """A box that others are told from, in 0..1 of the picture."""

    x_center: float = scalar(0, FLOAT32)
    y_center: float = scalar(1, FLOAT32)
    width: float = scalar(2, FLOAT32)
    height: float = scalar(3, FLOAT32)


class FixedAnchorsSchema(Table):
    """All anchors, in the order of the boxes."""

    anchors: tuple[FixedAnchor, ...] = children(0, FixedAnchor)


class SsdAnchorsOptions(Table):
    """Where the anchors come from."""

    fixed_anchors_schema: FixedAnchorsSchema | None = child(0, FixedAnchorsSchema)


class TensorsDecodingOptions(Table):
    """How boxes and scores are decoded."""

    num_classes: int = scalar(0, INT32)
    num_boxes: int = scalar(1, INT32)
    num_coords: int = scalar(2, INT32)
    keypoint_coord_offset: int = scalar(3, INT32)
    num_keypoints: int = scalar(4, INT32)
    num_values_per_keypoint: int = scalar(5, INT32)
    x_scale: float = scalar(6, FLOAT32)
    y_scale: float = scalar(7, FLOAT32)
    w_scale: float = scalar(8, FLOAT32)
    h_scale: float = scalar(9, FLOAT32)
    apply_exponential_on_box_size: bool = boolean(10)
    sigmoid_score: bool = boolean(11)


class ObjectDetectorOptions(Table):
    """What is said of a detector."""

    min_parser_version: str = string(0)
    ssd_anchors_options: SsdAnchorsOptions | None = child(1, SsdAnchorsOptions)
    tensors_decoding_options: TensorsDecodingOptions | None = child(2, TensorsDecodingOptions)


class ImageSegmenterOptions(Table):
    """What is said of a segmenter.

    Args:
        activation: what its output still needs: 0 for nothing, 1 for a sigmoid, 2 for a softmax.
    """

    activation: int = scalar(0, INT8)
    min_parser_version: str = string(1)

    @property
    def activation_name(self) -> str:
        """The ONNX operator; empty for none.

        Raises:
            MalformedModel: there is no such activation.
        """
        if not 0 <= self.activation < len(_ACTIVATIONS):
            raise MalformedModel(f"no activation {self.activation}", SEGMENTER)
        return _ACTIVATIONS[self.activation]


def read_detector(graph: SubGraphMetadata) -> ObjectDetectorOptions | None:
    """What a subgraph's metadata says of a detector; None where it says nothing.

    Raises:
        MalformedModel: it is damaged, or not of the version known here.
    """
    return _read(graph, DETECTOR, ObjectDetectorOptions)


def read_segmenter(graph: SubGraphMetadata) -> ImageSegmenterOptions | None:
    """As `read_detector`, of a segmenter."""
    return _read(graph, SEGMENTER, ImageSegmenterOptions)


def _read(graph: SubGraphMetadata, name: str, kind: type[T]) -> T | None:
    found = [each.data for each in graph.custom_metadata if each.name == name]
    if not found or found[0] is None:
        return None
    content = np.ascontiguousarray(found[0])
    if content[4:8].tobytes() != _IDENTIFIER:
        raise MalformedModel(f"no metadata of version {_IDENTIFIER.decode()}", name)
    file = File(content)
    try:
        return read_table(file, file.follow(0), kind)
    except Corrupt as corrupt:
        path = f"{name}.{corrupt.path}"
        raise MalformedModel(corrupt.reason, path, corrupt.offset) from None


def write_custom(options: ObjectDetectorOptions | ImageSegmenterOptions) -> bytes:
    """The bytes that `read_detector` and `read_segmenter` read."""
    return write_table(options, _IDENTIFIER)
