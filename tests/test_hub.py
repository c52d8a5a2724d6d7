"""Models of Hugging Face in the place of a path, out of a cache folder: nothing is asked here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import huggingface_hub.constants
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.made_bundles import adding, task
from tflite_ort import Interpreter, UnreadableModel, export_onnx, open_bundle
from tflite_ort.base import hub
from tflite_ort.command.cli import app

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of `huggingface_hub` with three repositories, without a network."""
    folder = tmp_path / "hub"
    files = {
        "litert-community/one": {"README.md": b"", "inner/one.tflite": adding(1)},
        "litert-community/two": {"a.tflite": adding(1), "b.tflite": adding(2)},
        "someone/bundle": {"both.task": task({"a.tflite": adding(3)})},
        "litert-community/none": {"README.md": b""},
    }
    for repository, contents in files.items():
        place = folder / f"models--{repository.replace('/', '--')}"
        (place / "refs").mkdir(parents=True)
        (place / "refs" / "main").write_text(COMMIT)
        for name, content in contents.items():
            path = place / "snapshots" / COMMIT / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    return folder


def added(interpreter: Interpreter) -> float:
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.zeros(2, np.float32))
    interpreter.invoke()
    return float(interpreter.get_tensor(interpreter.get_output_details()[0]["index"])[0])


@pytest.mark.parametrize(
    ("reference", "answer"),
    [
        ("litert-community/one", 1),
        ("hf://litert-community/one", 1),
        ("hf://litert-community/one@main/inner/one.tflite", 1),
        ("litert-community/two/b.tflite", 2),
        (f"litert-community/two@{COMMIT}/a.tflite", 1),
        ("hf://someone/bundle", 3),
        (Path("hf://someone/bundle"), 3),
    ],
)
@pytest.mark.usefixtures("cache")
def test_a_reference_is_a_file(reference: Any, answer: float) -> None:
    assert added(Interpreter(reference)) == answer
    names = [each.name for each in open_bundle(reference).models]
    assert len(names) == 1 and names[0].endswith(".tflite")


@pytest.mark.usefixtures("cache")
def test_of_a_bundle_a_model_is_named() -> None:
    assert added(Interpreter("hf://someone/bundle", model="a.tflite")) == 3
    assert export_onnx("litert-community/one").graph.node


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("litert-community/two", r"has 2 models \(a.tflite, b.tflite: name one behind"),
        ("litert-community/none", r"has no models \(none\)"),
        ("litert-community/one/other.tflite", "cannot be had of Hugging Face"),
        ("litert-community/unknown", "cannot be had of Hugging Face"),
        ("hf://someone/bundle@other", "cannot be had of Hugging Face"),
    ],
)
@pytest.mark.usefixtures("cache")
def test_what_is_not_there_is_an_error(reference: str, why: str) -> None:
    for opens in (Interpreter, open_bundle):
        with pytest.raises(UnreadableModel, match=why):
            opens(reference)


def test_a_path_is_no_reference(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*given: Any, **named: Any) -> None:
        raise AssertionError("Hugging Face was asked")

    here = Path("litert-community/one")
    here.parent.mkdir()
    here.write_bytes(adding(9))
    for name in ("hf_hub_download", "snapshot_download", "list_repo_files"):
        monkeypatch.setattr(huggingface_hub, name, asked)
    assert added(Interpreter("litert-community/one")) == 9
    for path in ("someone/bundle", "models/typo.tflite", "a/litert-community/one", "x", "hf:one"):
        with pytest.raises(UnreadableModel, match="Could not open"):
            Interpreter(path)


def test_with_a_network_the_repository_is_asked_for_its_files(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file may be in the cache, and others beside it in the repository."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    listed = ["README.md", "inner/one.tflite", "inner/other.tflite"]
    monkeypatch.setattr(huggingface_hub, "list_repo_files", lambda *_, **__: listed)
    with pytest.raises(UnreadableModel, match="has 2 models"):
        Interpreter("litert-community/one")


def test_without_the_library(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "optional_module", lambda name: None)
    with pytest.raises(UnreadableModel, match="pip install huggingface_hub"):
        Interpreter("litert-community/one")


def test_on_the_command_line(cache: Path) -> None:
    variables = {**os.environ, "HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "tflite_ort", "inspect", "hf://litert-community/one"]
    done = subprocess.run(command, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "ADD" in done.stdout


@pytest.mark.usefixtures("cache")
def test_an_export_is_not_written_into_the_cache(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["export", "litert-community/one"])
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.glob("**/*.onnx")] == ["one.onnx"]
    assert (tmp_path / "one.onnx").is_file()
