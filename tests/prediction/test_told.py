"""tflite-ort predict: what the command says of guesses and of errors."""

from __future__ import annotations

import json
import wave
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.one_op import T, one_op_model
from tests.prediction.models import colours, loudness
from tests.prediction.test_predict import lines, predict, stopped, written
from tflite_ort.prediction.job import Job
from tflite_ort.schema import Op


def _of_one(folder: Path, *shape: int) -> Path:
    """A model without metadata."""
    tensor = T(shape)
    return written(folder / "plain.tflite", one_op_model(Op.ABS, [tensor], [tensor]))


def _sound(folder: Path) -> Path:
    with wave.open(str(folder / "a.wav"), "wb") as stream:
        stream.setparams((1, 2, 44_100, 0, "NONE", ""))
        stream.writeframes(bytes(2 * 2000))
    return folder / "a.wav"


def _lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _pictures(folder: Path) -> list[Path]:
    paths = [folder / "a.png", folder / "b.png"]
    for path in paths:
        Image.new("RGB", (8, 8)).save(path)
    return paths


def test_a_rate_that_is_guessed_is_told_once(tmp_path: Path) -> None:
    sound = _sound(tmp_path)
    twice = tmp_path / "b.wav"
    twice.write_bytes(sound.read_bytes())
    model = _of_one(tmp_path, 1, 800)
    said = predict(model, sound, twice, "--out", tmp_path / "kept.csv")
    assert said.count("keeps the rate of its file") == 1
    assert len(_lines_of(tmp_path / "kept.csv")) == 1 + 2 * 3
    said = predict(model, sound, "--rate", 8000, "--out", tmp_path / "other.csv")
    assert "note" not in said and len(_lines_of(tmp_path / "other.csv")) == 2
    told = written(tmp_path / "told.tflite", loudness())
    assert "note" not in predict(told, sound, "--out", tmp_path / "told.csv")


def test_pixels_that_are_guessed_are_told_once(tmp_path: Path) -> None:
    pictures = _pictures(tmp_path)
    model = _of_one(tmp_path, 1, 8, 8, 3)
    said = predict(model, *pictures, "--out", tmp_path / "guessed.csv")
    assert said.count("pixels from 0 to 1, assumed") == 1
    assert "note" not in predict(model, *pictures, "--mean", 0, "--out", tmp_path / "mean.csv")
    told = written(tmp_path / "told.tflite", colours())
    assert "note" not in predict(told, *pictures, "--out", tmp_path / "told.csv")
    np.save(tmp_path / "values.npy", np.zeros((8, 8, 3), np.float32))
    assert "note" not in predict(model, tmp_path / "values.npy", "--out", tmp_path / "values.csv")


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_the_first_error_is_told(tmp_path: Path, engine: str) -> None:
    model = _of_one(tmp_path, 1, 8, 8, 3)
    _pictures(tmp_path)
    (tmp_path / "aa.png").write_bytes(b"no picture")
    (tmp_path / "c.png").write_bytes(b"nor this")
    how = ("--engine", engine)
    said = predict(model, tmp_path / "*.png", "--out", tmp_path / "out.csv", *how)
    assert "2 with an error (column 'error'), such as: " in said
    assert "aa.png is not an image" in "".join(said.split("\n"))
    how = (*how, "--json", "--mean", 0)
    found = json.loads(predict(model, tmp_path / "*.png", "--out", tmp_path / "again.csv", *how))
    assert found["errors"] == 2 and "aa.png is not" in found["first_error"]
    found = json.loads(predict(model, tmp_path / "a.png", "--out", tmp_path / "one.csv", *how))
    assert found["errors"] == 0 and found["first_error"] is None


def test_a_file_of_another_kind_says_which_there_are(tmp_path: Path) -> None:
    (tmp_path / "table.txt").write_text("x,y\n1,2\n")
    (tmp_path / "bad.png").write_bytes(b"no picture")
    model = _of_one(tmp_path, 1, 8, 8, 3)
    inputs, out = (tmp_path / "table.txt", tmp_path / "bad.png"), tmp_path / "out.jsonl"
    predict(model, *inputs, "--out", out, code=1)
    table, picture = (row["error"] for row in lines(tmp_path / "out.jsonl"))
    assert table.endswith("have the suffix .npy, .npz, .wav, .parquet, .csv")
    assert picture.endswith("bad.png is not an image that can be read")


# Jobs without a result ---------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["threads", "processes"])
@pytest.mark.parametrize("as_json", [False, True])
def test_a_job_without_a_result_is_an_error(tmp_path: Path, engine: str, as_json: bool) -> None:
    """The rows are written all the same, with what each is wrong with."""
    model, out = _of_one(tmp_path, 1, 8, 8, 3), tmp_path / "out.jsonl"
    for name in ("a.png", "b.png"):
        (tmp_path / name).write_bytes(b"no picture")
    how = ("--engine", engine, *["--json"] * as_json)
    said = predict(model, tmp_path / "*.png", "--mean", 0, "--out", out, *how, code=1)
    assert "error: all 2 rows have an error (column 'error'), such as: " in said
    assert "a.png is not an image" in said
    assert len(lines(out)) == 2 and not list(tmp_path.glob("*.job"))
    _pictures(tmp_path)  # among them another a.png
    predict(model, tmp_path / "*.png", "--mean", 0, "--out", out, "--overwrite", *how)


def test_what_went_before_an_interrupt_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command that goes on with a job tells of all its rows."""
    model, out = _of_one(tmp_path, 1, 8, 8, 3), tmp_path / "out.csv"
    _pictures(tmp_path)
    (tmp_path / "aa.png").write_bytes(b"no picture")
    command = (model, tmp_path / "*.png", "--mean", 0, "--out", out)
    with monkeypatch.context() as patched:
        patched.setattr(Job, "finish", stopped)
        predict(*command, code=1)
    said = predict(*command)
    assert "0 of 3 rows in" in said and "1 with an error (column 'error'), such as: " in said
    assert "aa.png is not an image" in said


def test_a_single_row_is_one_row(tmp_path: Path) -> None:
    model = _of_one(tmp_path, 1, 8, 8, 3)
    _pictures(tmp_path)
    picture = sorted(tmp_path.glob("*.png"))[0]
    assert ": 1 row in " in predict(model, picture, "--mean", 0, "--out", tmp_path / "one.csv")
