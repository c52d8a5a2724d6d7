"""Options that nothing would read are refused, not passed over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.made_bundles import adding, task
from tests.prediction.models import colours, sums
from tflite_ort.command.cli import app


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sums.tflite").write_bytes(sums())
    (tmp_path / "colours.tflite").write_bytes(colours())
    (tmp_path / "b.task").write_bytes(task({"a.tflite": adding(1)}))
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.json").write_text('{"mine": 1}')
    np.save("a.npy", np.ones((1, 4), np.float32))
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}


PREDICT = ("predict", "sums.tflite", "a.npy", "--out", "o.csv")
REFUSED = [
    ((*PREDICT, "--address", "auto"), "--address"),
    ((*PREDICT, "--gpus-per-worker", "1", "--engine", "processes"), "--gpus-per-worker"),
    ((*PREDICT, "--std", "2"), "--std"),
    ((*PREDICT, "--mean", ""), "--mean"),
    ((*PREDICT, "--std", "nan"), "--std"),
    ((*PREDICT, "--column", "x=a", "--column", "x=b"), "--column"),
    (("predict", "colours.tflite", "a.npy", "--out", "o.csv", "--rate", "8000"), "--rate"),
    (("run", "sums.tflite", "--mean", "1"), "--mean"),
    (("run", "colours.tflite", "--rate", "8000"), "--rate"),
    (("verify", "colours.tflite", "--mean", "1"), "--mean"),
    (("verify", "sums.tflite", "--input", "a.npy", "--mean", "1"), "--mean"),
    (("verify", "sums.tflite", "--input", "a.npy", "--samples", "3"), "--samples"),
    (("verify", "sums.tflite", "--map", "a.json"), "--map"),
    (("bench", "sums.tflite", "--profile", "--html", "a.html"), "--html"),
    (("bench", "sums.tflite", "--profile", "--rounds", "2", "--check"), "--rounds, --check"),
    (("bench", "sums.tflite", "--profile", "--threads", "1,2"), "--threads"),
    (("bench", "sums.tflite", "--no-litert", "--check"), "--check"),
    (("export", "sums.tflite", "--stateless", "--state-defaults"), "--state-defaults"),
    (("export", "sums.tflite", "--shape", "x=1,4", "--shape", "x=2,4"), "--shape"),
    (("export", "sums.tflite", "--shape", "x=1,,4"), "--shape"),
    (("export", "sums.tflite", "-", "--external-data"), "--external-data"),
    (("export", "sums.tflite", "colours.tflite"), "OUT"),
    (("bench", "--json", "sums.tflite", "colours.tflite"), "--json"),
    (("bench", "sums.tflite", "--html", "b.task"), "--html"),
    (("verify", "sums.tflite", "--json", "colours.tflite"), "--json"),
    (("verify", "sums.tflite", "--report", "colours.tflite"), "--report"),
    (("verify", "sums.tflite", "--extract", "sums.tflite"), "--extract"),
    (("bench", "sums.tflite", "--suite", "empty"), "--suite"),
    (("tune", "sums.tflite", "--out", "colours.tflite"), "--out"),
    (("tune", "sums.tflite", "--out", "notes.json"), "--out"),
    (("tune", "sums.tflite", "--out", "empty"), "--out"),
    (("export", "sums.tflite", "--budget", "tables=9", "--budget", "tables=8"), "--budget"),
    (("export", "sums.tflite", "--rename", "x=a", "--rename", "x=b"), "--rename"),
    (("inspect", "b.task", "--provider", "cpu"), "--provider"),
    (("triton", "sums.tflite", "models", "--max-batch", "0", "--delay", "9"), "--delay"),
    (("demo", "--most", "3", "--json"), "--most"),
]


@pytest.mark.parametrize(("arguments", "option"), REFUSED, ids=lambda each: str(each)[:60])
def test_refused(arguments: Sequence[str], option: str, folder: Path) -> None:
    before = contents(folder)
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 2, result.output
    assert f"for {option}" in result.output
    assert contents(folder) == before


FAILED = [
    (("run", "sums.tflite", "--json", "--output", "-"), "standard output takes one"),
    (("run", "sums.tflite", "--output", "-", "--output", "-"), "standard output takes one"),
    (("verify", "sums.tflite", "--runtime", "kernels", "--reference", "kernels"), "is compared"),
    (("bench", "sums.tflite", "--suite", "nothing"), "nothing: No such file"),
]


@pytest.mark.parametrize(("arguments", "message"), FAILED, ids=lambda each: str(each)[:60])
def test_failed(arguments: Sequence[str], message: str, folder: Path) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 1, result.output
    assert message in result.output
