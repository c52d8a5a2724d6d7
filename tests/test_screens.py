"""What the commands print fits a terminal of 80 and of 120 columns, and nothing of it is cut."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.made_networks import network
from tests.models import model_path
from tflite_ort.command.cli import app
from tflite_ort.command.verb_table import VERBS
from tflite_ort.schema import Op

WIDTHS = (80, 120)
# Command lines, in a folder with the files that they name.
COMMANDS: Sequence[str] = (
    "--help",
    *(f"{verb} --help" for verb in VERBS),
    "run classes.tflite cat.png",
    "run classes.tflite",
    "run classes.tflite cat.png --raw",
    "run vector.tflite cat.png",
    "run yolo.tflite cat.png",
    "run yolo.tflite missing.png",
    "run classes.tflite cat.png --decode yolo",
    "predict classes.tflite cat.png --out results.csv",
    "inspect classes.tflite",
    "inspect mobilenet.tflite",
    "inspect mobilenet.tflite --all",
    "verify mobilenet.tflite --samples 1",
    "verify classes.tflite --runtime kernels --samples 1",
    "export classes.tflite classes.onnx --check --verbose",
    "export yolo.tflite yolo.onnx --decode",
    "export vector.tflite batches.onnx --batch N",
    "export classes.tflite --for help",
    "extract classes.tflite part.tflite",
    "bench classes.tflite --rounds 1 --min-time 0",
    "bench classes.tflite --profile --threads 1",
    "versions mobilenet.tflite",
    "versions CONV_2D",
    "providers",
    "triton classes.tflite repository",
    "compile classes.tflite --cache cache",
    "cache list cache",
    "cache clear cache",
    "demo",
    "tune classes.tflite --seconds 0 --out tuning.json",
    "exprot classes.tflite",
    "inspect no_such_model_of_this_name.tflite",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("screens")
    scores = [np.arange(12.0).reshape(1, 12) / 4]
    (path / "classes.tflite").write_bytes(network(64, scores, last=Op.SOFTMAX))
    (path / "vector.tflite").write_bytes(network(64, scores))
    table = np.zeros((1, 4 + 80, 84))
    table[0, :6, 3] = [0.5, 0.5, 0.2, 0.1, 0.9, 0]
    (path / "yolo.tflite").write_bytes(network(64, [table]))
    model = model_path("coral__tf2_mobilenet_v2_1.0_224_ptq.tflite")
    (path / "mobilenet.tflite").symlink_to(model)
    Image.new("RGB", (200, 100), (90, 120, 30)).save(path / "cat.png")
    return path


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_screen(command: str, width: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    environment = {"COLUMNS": str(width), "TFLITE_ORT_CACHE": str(folder / "none")}
    outcome = CliRunner().invoke(app, command.split(), env=environment)
    assert "Traceback" not in outcome.output
    assert outcome.exception is None or isinstance(outcome.exception, SystemExit)
    lines = outcome.output.splitlines()
    assert lines
    long = [line for line in lines if len(line) > width and len(line.split()) > 1]
    assert not long, "\n".join(long)
    assert "\N{HORIZONTAL ELLIPSIS}" not in outcome.output
