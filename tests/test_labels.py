"""Names of classes out of a file: one reader for every verb that takes them."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from PIL import Image

from tests.made_networks import network
from tests.test_cli import call
from tflite_ort import export_onnx, quick, tasks
from tflite_ort.prediction.array_files import InputError
from tflite_ort.schema import ExportError, Op
from tflite_ort.tasks import vision

SIZE = 32
NAMES = ("wolf", "lynx", "bear")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    content = network(SIZE, [np.array([[1.0, 4.0, 2.0]])], last=Op.SOFTMAX)
    (tmp_path / "net.tflite").write_bytes(content)
    (tmp_path / "names").mkdir()
    (tmp_path / "names" / "labels.txt").write_text("\n".join(NAMES))
    (tmp_path / "names" / "two.txt").write_text("a\nb\n")
    Image.new("RGB", (40, 30), (10, 200, 30)).save(tmp_path / "cat.png")
    return tmp_path


def test_one_file_names_the_classes_everywhere(folder: Path) -> None:
    model, picture, labels = (folder / name for name in ("net.tflite", "cat.png", "names"))
    labels /= "labels.txt"
    assert call("run", model, picture, "--labels", labels).stdout.splitlines()[2].startswith("lynx")
    found = quick.run(model, picture, labels=labels)
    assert found.answer is not None
    assert found.answer.classes[0].label == "lynx"
    out = folder / "out.csv"
    assert call("predict", model, picture, "--labels", labels, "--out", out).exit_code == 0
    (row,) = csv.DictReader(out.read_text().splitlines())
    assert "lynx" in row.values()
    options = vision.ImageClassifierOptions(
        tasks.BaseOptions(model_asset_path=model, labels=labels), max_results=1
    )
    with vision.ImageClassifier.create_from_options(options) as task:
        result = task.classify(tasks.Image.create_from_file(str(picture)))
    assert result.classifications[0].categories[0].category_name == "lynx"


@pytest.mark.parametrize("decode", [(), ("--decode",)], ids=["plain", "decoded"])
def test_exports_have_names_in_their_metadata(decode: tuple[str, ...], folder: Path) -> None:
    model, out, labels = folder / "net.tflite", folder / "net.onnx", folder / "names" / "labels.txt"
    outcome = call("export", model, out, "--labels", labels, *decode)
    assert outcome.exit_code == 0, outcome.output
    said = {each.key: each.value for each in onnx.load(out).metadata_props}
    assert json.loads(said["tflite.labels"]) == [*NAMES]
    if decode:
        assert json.loads(said["tflite.decoded"])["labels"] == [*NAMES]
        with pytest.raises(ExportError, match="there are 2 labels, and the model has 3 classes"):
            export_onnx(model, decode=True, labels=["a", "b"])
    with pytest.raises(TypeError, match="labels is a list of names"):
        export_onnx(model, labels="wolf")


def test_a_repository_of_triton_has_names(folder: Path) -> None:
    model, labels = folder / "net.tflite", folder / "names" / "labels.txt"
    assert call("triton", model, folder / "repository", "--labels", labels).exit_code == 0
    written = folder / "repository" / "net"
    assert (written / "labels_0.txt").read_text().split() == [*NAMES]
    assert 'label_filename: "labels_0.txt"' in (written / "config.pbtxt").read_text()
    wrong = call("triton", model, folder / "other", "--labels", folder / "names" / "two.txt")
    assert wrong.exit_code == 1
    assert "there are 2 labels, and the outputs have" in wrong.output


def test_labels_that_are_too_few(folder: Path) -> None:
    base = tasks.BaseOptions(model_asset_path=folder / "net.tflite", labels=["a", "b"])
    with pytest.raises(InputError, match="there are 2 labels, and the model has 3 classes"):
        vision.ImageClassifier.create_from_options(vision.ImageClassifierOptions(base))
