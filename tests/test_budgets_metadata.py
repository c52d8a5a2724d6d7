"""What the files and labels that come with a model may take."""

from __future__ import annotations

import io
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tflite_ort import BudgetExceeded, Budgets, Interpreter
from tflite_ort.schema import AddOptions, Buffer, Op, read_model, write_model
from tflite_ort.schema.file.model import Metadata as MetadataEntry
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    ModelMetadata,
    SubGraphMetadata,
    TensorMetadata,
    write_metadata,
)


def added() -> bytes:
    return one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions())


@pytest.mark.parametrize("content", [b"\n" * (5 << 20), "\U0001f600".encode() + b"a" * (65 << 20)])
def test_labels_that_take_more_memory_than_their_file(content: bytes, tmp_path: Path) -> None:
    """Many empty lines; a line in which one letter needs four bytes, so that each takes four."""
    label_file = AssociatedFile(name="l.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    described = TensorMetadata(associated_files=(label_file,))
    table = ModelMetadata(
        subgraph_metadata=(SubGraphMetadata(output_tensor_metadata=(described,)),)
    )
    model = read_model(added())
    buffers = (*model.buffers, Buffer(data=np.frombuffer(write_metadata(table), np.uint8)))
    entry = MetadataEntry(name="TFLITE_METADATA", buffer=len(model.buffers))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("l.txt", content)
    path = tmp_path / "model.tflite"
    written = write_model(replace(model, buffers=buffers, metadata=(entry,)))
    path.write_bytes(written + archive.getvalue())
    with pytest.raises(BudgetExceeded, match="a label file"):
        _ = Interpreter(path).metadata


def test_a_file_of_an_archive_counts_more_than_its_bytes(tmp_path: Path) -> None:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as file:
        for number in range(100):
            file.writestr(f"{number}", b"")
    path = tmp_path / "model.tflite"
    path.write_bytes(added() + archive.getvalue())
    with pytest.raises(BudgetExceeded, match="the archive of files"):
        _ = Interpreter(path, budgets=Budgets(metadata_bytes=100_000)).metadata
    assert len(Interpreter(path).metadata.files) == 100
