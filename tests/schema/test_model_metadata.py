"""TFLite metadata: what is written is read, and damage is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.models import model_path
from tflite_ort.schema import Buffer, MalformedModel, Metadata, Model, read_model, write_model
from tflite_ort.schema.file.model_metadata import (
    NAME,
    AssociatedFile,
    AssociatedFileType,
    BoundingBoxProperties,
    Content,
    CustomMetadata,
    ImageProperties,
    ImageSize,
    ModelMetadata,
    NormalizationOptions,
    ProcessUnit,
    Stats,
    SubGraphMetadata,
    TensorGroup,
    TensorMetadata,
    ValueRange,
    read_metadata,
    write_metadata,
)

IMAGE = TensorMetadata(
    name="image",
    description="what the camera sees",
    dimension_names=("batch", "", "größe"),
    content=Content(content_properties=ImageProperties(default_size=ImageSize(32, 24))),
    process_units=(ProcessUnit(options=NormalizationOptions((127.5,), (127.5, 1.0, 2.0))),),
    stats=Stats(max=(1.0,), min=(-1.0,)),
)
BOXES = TensorMetadata(
    name="boxes",
    content=Content(
        content_properties=BoundingBoxProperties(index=(1, 0, 3, 2)), range=ValueRange(0, 9)
    ),
    associated_files=(
        AssociatedFile("labels.txt", "words", AssociatedFileType.TENSOR_VALUE_LABELS, "en", "1"),
    ),
)
METADATA = ModelMetadata(
    name="finder",
    description="finds",
    version="v2",
    subgraph_metadata=(
        SubGraphMetadata(
            name="main",
            input_tensor_metadata=(IMAGE,),
            output_tensor_metadata=(BOXES,),
            output_tensor_groups=(TensorGroup("found", ("boxes", "scores")),),
            custom_metadata=(CustomMetadata("more", np.arange(5, dtype=np.uint8)),),
        ),
    ),
    author="somebody",
    license="Apache-2.0",
    min_parser_version="1.0.0",
)


def model_with(content: bytes) -> Model:
    model = Model(
        version=3,
        buffers=(Buffer(), Buffer(data=np.frombuffer(content, np.uint8))),
        metadata=(Metadata("min_runtime_version", 0), Metadata(NAME, 1)),
    )
    return read_model(write_model(model))


def test_what_is_written_is_read() -> None:
    assert read_metadata(model_with(write_metadata(METADATA))) == METADATA
    assert read_metadata(replace(model_with(b""), metadata=())) is None


@pytest.mark.parametrize("content", [b"short", b"\0" * 64])
def test_another_kind_of_content_is_refused(content: bytes) -> None:
    with pytest.raises(MalformedModel, match="no metadata of version M001"):
        read_metadata(model_with(content))


def test_damage_is_refused_or_read() -> None:
    content = write_metadata(METADATA)
    refused = 0
    for at in range(0, len(content), 3):
        damaged = bytearray(content)
        damaged[at] ^= 0xFF
        try:
            read_metadata(model_with(bytes(damaged)))
        except MalformedModel as error:
            refused += 1
            assert "TFLITE_METADATA" in str(error)
    assert refused > 50


def test_metadata_of_a_real_model() -> None:
    metadata = read_metadata(read_model(model_path("tflite-support__deeplabv3.tflite")))
    assert metadata is not None
    (graph,) = metadata.subgraph_metadata
    (image,) = graph.input_tensor_metadata
    assert image.process_units[0].options == NormalizationOptions((127.5,), (127.5,))
    assert graph.output_tensor_metadata[0].associated_files[0].name == "labelmap.txt"
