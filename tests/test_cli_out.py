"""Where results go may be said as other tools say it."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tflite_ort.command.cli import app
from tflite_ort.command.demo import digits_model

MODEL = str(digits_model("float32"))


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    return result.exit_code, result.output


@pytest.mark.parametrize("name", ["-o", "--out", "--output"])
def test_out_after_a_name(name: str, tmp_path: Path) -> None:
    written = [tmp_path / f"{number}.onnx" for number in range(4)]
    calls = [
        ("export", MODEL, str(written[0])),
        ("export", MODEL, name, str(written[1])),
        ("export", name, str(written[2]), MODEL),
        ("export", MODEL, f"{name}={written[3]}"),
    ]
    assert [run(*each)[0] for each in calls] == [0] * 4
    contents = {each.read_bytes() for each in written}
    assert len(contents) == 1


@pytest.mark.parametrize("name", ["-o", "--out", "--output"])
def test_a_verb_whose_option_has_another_name(name: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer.npy"
    assert run("run", MODEL, name, str(answer))[0] == 0
    assert answer.exists()


def test_a_name_without_a_path_is_an_error() -> None:
    status, output = run("export", MODEL, "-o")
    assert status == 2
    assert "No such option: -o" in output


def test_a_verb_that_writes_nothing_has_no_such_option() -> None:
    status, output = run("inspect", MODEL, "-o", "x")
    assert status == 2
    assert "No such option: -o" in output


def test_a_model_in_place_of_a_verb(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.tflite").write_bytes(b"")
    status, output = run("m.tflite")
    assert status == 2
    assert "did you mean 'run m.tflite'?" in output
