"""Metadata of models: read by the interpreter, shown by inspect, carried into exports."""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.litert_models import permute_float
from tests.models import model_path
from tests.schema.test_model_metadata import METADATA
from tflite_ort import Interpreter, MalformedModel, export_onnx
from tflite_ort.command.cli import app
from tflite_ort.metadata import associated_files
from tflite_ort.schema import Buffer, Metadata, read_model, write_model
from tflite_ort.schema.file.model_metadata import NAME, write_metadata

SSD = "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite"


def described(metadata: bytes, files: dict[str, bytes] | None = None) -> bytes:
    """A model with `metadata` and, after it, a zip archive of `files`."""
    model = read_model(permute_float())
    buffer = Buffer(data=np.frombuffer(metadata, np.uint8))
    content = write_model(
        replace(
            model,
            buffers=(*model.buffers, buffer),
            metadata=(Metadata(NAME, len(model.buffers)),),
        )
    )
    stream = io.BytesIO(content)
    stream.seek(0, io.SEEK_END)
    if files is not None:
        with zipfile.ZipFile(stream, "a") as archive:
            for name, data in files.items():
                archive.writestr(name, data)
    return stream.getvalue()


FILES = {"labels.txt": "Katze\nHund\nÄsop\n".encode(), "index.bin": b"\xff\x00"}
MODEL = described(write_metadata(METADATA), FILES)


def test_what_the_interpreter_tells() -> None:
    metadata = Interpreter(model_content=MODEL).metadata
    assert (metadata.name, metadata.version, metadata.author) == ("finder", "v2", "somebody")
    assert metadata.files == FILES
    assert metadata.text("labels.txt").startswith("Katze")
    (image,), (boxes,) = metadata.inputs, metadata.outputs
    assert (image.mean, image.std) == ((127.5,), (127.5, 1.0, 2.0))
    assert boxes.labels == ("Katze", "Hund", "Äsop")
    assert metadata.table == METADATA


@pytest.mark.parametrize("by_path", [True, False])
def test_labels_of_a_real_model(by_path: bool) -> None:
    path = model_path(SSD)
    metadata = Interpreter(
        **{"model_path": path} if by_path else {"model_content": path.read_bytes()}
    ).metadata
    assert metadata.name == "Coco SSD MobileNetV1"
    (image,) = metadata.inputs
    assert (image.mean, image.std) == ((127.5,), (127.5,))
    assert metadata.outputs[1].labels[:2] == ("person", "bicycle")
    assert list(metadata.files) == ["labelmap.txt"]


def test_a_model_without_metadata() -> None:
    metadata = Interpreter(model_content=permute_float()).metadata
    assert metadata.table is None
    assert not (metadata.files or metadata.inputs or metadata.outputs)


def test_damage_is_named_and_keeps_nothing_from_running(tmp_path: Path) -> None:
    content = described(b"no metadata at all")
    interpreter = Interpreter(model_content=content)
    interpreter.allocate_tensors()
    with pytest.raises(MalformedModel, match="TFLITE_METADATA"):
        interpreter.metadata  # noqa: B018
    exported = {prop.key: prop.value for prop in export_onnx(content).metadata_props}
    assert "TFLITE_METADATA" in exported["tflite.metadata_error"]
    path = tmp_path / "damaged.tflite"
    path.write_bytes(content)
    result = CliRunner().invoke(app, ["inspect", str(path)])
    assert result.exit_code == 0
    assert "warning: " in result.output


def test_a_damaged_archive_is_refused() -> None:
    damaged = MODEL.replace(b"Katze\n", b"Katzn\n")
    with pytest.raises(MalformedModel, match="associated files"):
        associated_files(damaged)


def test_exports_carry_it() -> None:
    properties = {prop.key: prop.value for prop in export_onnx(MODEL).metadata_props}
    assert properties["tflite.file.labels.txt"] == FILES["labels.txt"].decode()
    assert "tflite.file.index.bin" not in properties
    (graph,) = json.loads(properties["tflite.metadata"])["subgraph_metadata"]
    (image,) = graph["input_tensor_metadata"]
    assert image["process_units"] == [{"options": {"mean": [127.5], "std": [127.5, 1.0, 2.0]}}]
    assert graph["custom_metadata"] == [{"name": "more", "data": "AAECAwQ="}]


def test_inspect_shows_it(tmp_path: Path) -> None:
    path = tmp_path / "finder.tflite"
    path.write_bytes(MODEL)
    output = CliRunner().invoke(app, ["inspect", str(path)]).output
    for text in ("name: finder", "license: Apache-2.0", "127.5 1 2", "3: Katze, ...", "labels.txt"):
        assert text in output
