"""tflite-ort predict: files and tables in, one row for each in the results."""

from __future__ import annotations

import csv
import json
import random
import signal
import subprocess
import sys
import time
import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.one_op import T, one_op_model
from tests.prediction.models import above_zero, colours, loudness, picks, sums, two_inputs
from tflite_ort.command.cli import app
from tflite_ort.prediction.job import Job, JobError
from tflite_ort.schema import Op

Array = npt.NDArray[Any]


def predict(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return written(tmp_path / "sums.tflite", sums())


def arrays(path: Path) -> dict[str, Array]:
    with np.load(path) as archive:
        return dict(archive)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A red, a green and a blue picture, and a file that is none."""
    folder = tmp_path / "pictures"
    (folder / "more").mkdir(parents=True)
    for place, name in enumerate(("a.png", "b.jpg", "more/c.webp")):
        pixels = np.zeros((20, 10 + place, 3), np.uint8)
        pixels[..., place] = 255
        Image.fromarray(pixels).save(folder / name, quality=100)
    (folder / "bad.jpg").write_bytes(b"no picture")
    (folder / "notes.txt").write_text("not looked at")
    return folder


# Files -------------------------------------------------------------------------------------------


def test_pictures_of_a_folder(tmp_path: Path, pictures: Path) -> None:
    out = tmp_path / "out.jsonl"
    said = predict(written(tmp_path / "m.tflite", colours()), pictures, "--out", out)
    assert "4 rows" in said and "1 with an error" in said
    rows = lines(out)
    assert [Path(each["source"]).name for each in rows] == ["a.png", "b.jpg", "bad.jpg", "c.webp"]
    assert [each["y_label"] for each in rows] == ["red", "green", None, "blue"]
    assert "not an image" in rows[2]["error"] and rows[2]["y"] is None
    np.testing.assert_allclose(rows[0]["y"], [1, -1, -1], atol=1e-6)
    assert not list(tmp_path.glob("*.job")) and not list(tmp_path.glob(".*lock"))


@pytest.mark.parametrize(("engine", "workers"), [("threads", 1), ("threads", 3), ("processes", 2)])
def test_patterns_and_engines_keep_the_order(
    tmp_path: Path, model: Path, engine: str, workers: int
) -> None:
    for number in range(70):
        np.save(tmp_path / f"{number:03}.npy", np.full((1, 4) if number % 2 else 4, number, "f4"))
    out = tmp_path / "out.jsonl"
    how = ("--engine", engine, "--workers", workers)
    predict(model, tmp_path / "*.npy", "--out", out, *how)
    assert [each["y"][0] for each in lines(out)] == [number * 4 + 1 for number in range(70)]


def test_rows_of_arrays(tmp_path: Path, model: Path) -> None:
    given = np.random.default_rng(0).normal(size=(700, 4)).astype(np.float32)
    np.save(tmp_path / "rows.npy", given)
    out = tmp_path / "out.npz"
    predict(model, tmp_path / "rows.npy", "--rows", "--out", out)
    made = arrays(out)
    np.testing.assert_allclose(made["y"], given.sum(1, keepdims=True) + 1, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(made["row"], np.arange(700))
    assert set(made["source"]) == {str(tmp_path / "rows.npy")} and not any(made["error"])


def test_rows_that_were_not_told_are_not_taken_for_a_sample(tmp_path: Path) -> None:
    """Where a file leaves its first size open, many rows would fit it as well as one."""
    rows = T((1, 4), shape_signature=(-1, 4))
    model = written(tmp_path / "m.tflite", one_op_model(Op.ABS, [rows], [rows]))
    np.save(tmp_path / "many.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    np.save(tmp_path / "none.npy", np.zeros((0, 4), np.float32))
    np.save(tmp_path / "one.npy", np.ones((1, 4), np.float32))
    predict(model, tmp_path / "*.npy", "--out", tmp_path / "out.jsonl")
    many, none, one = lines(tmp_path / "out.jsonl")
    assert "3 samples: --rows" in many["error"] and "0 samples" in none["error"]
    assert one["out0"] == [1, 1, 1, 1]
    predict(model, tmp_path / "many.npy", "--rows", "--out", tmp_path / "rows.jsonl")
    made = [each["out0"] for each in lines(tmp_path / "rows.jsonl")]
    assert made == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_an_error_of_rows_names_their_file(tmp_path: Path, model: Path) -> None:
    np.save(tmp_path / "wide.npy", np.ones((2, 5), np.float32))
    predict(model, tmp_path / "wide.npy", "--rows", "--out", tmp_path / "out.jsonl", code=1)
    assert all("wide.npy has shape (5,)" in each["error"] for each in lines(tmp_path / "out.jsonl"))


def test_archives_name_the_inputs(tmp_path: Path) -> None:
    model = written(tmp_path / "m.tflite", two_inputs())
    a, b = np.ones((300, 2, 2), np.float32), np.arange(1200, dtype=np.float32).reshape(300, 4)
    np.savez(tmp_path / "many.npz", a=a, b=b)
    np.savez(tmp_path / "one.npz", a=a[:1], b=b[0])
    np.save(tmp_path / "alone.npy", a)
    predict(model, tmp_path / "many.npz", "--rows", "--out", tmp_path / "many.jsonl")
    made = [each["y"] for each in lines(tmp_path / "many.jsonl")]
    np.testing.assert_array_equal(made, b + 1)
    given = (tmp_path / "one.npz", tmp_path / "alone.npy")
    predict(model, *given, "--out", tmp_path / "one.jsonl")
    one, alone = lines(tmp_path / "one.jsonl")
    assert one["y"] == (b[0] + 1).tolist()
    assert "2 inputs" in alone["error"]


def test_archives_whose_arrays_do_not_agree(tmp_path: Path) -> None:
    model = written(tmp_path / "m.tflite", two_inputs())
    a, b = np.ones((5, 2, 2), np.float32), np.ones((5, 4), np.float32)
    np.savez(tmp_path / "a.npz", a=a, b=b, classes=np.arange(3), scale=np.float32(2))
    np.savez(tmp_path / "b.npz", a=a, b=b[:3])
    inputs = (tmp_path / "a.npz", tmp_path / "b.npz")
    predict(model, *inputs, "--rows", "--out", tmp_path / "out.jsonl")
    *whole, refused = lines(tmp_path / "out.jsonl")
    assert [each["row"] for each in whole] == [0, 1, 2, 3, 4]
    assert not any(each["error"] for each in whole)
    assert "different numbers of rows: 'a' 5, 'b' 3" in refused["error"]


def test_rows_of_another_shape_are_no_flat_lists(tmp_path: Path) -> None:
    model = written(tmp_path / "m.tflite", two_inputs())
    square, tall = np.arange(4.0).reshape(2, 2), np.arange(4.0).reshape(4, 1)
    for a, b, fits in (
        (square, tall, True),
        (square.reshape(4), tall.reshape(1, 1, 4), True),
        (tall, tall, False),
        (square, square, False),
    ):
        np.savez(tmp_path / "in.npz", a=np.float32([a] * 2), b=np.float32([b] * 2))
        table = pa.table({"a": [a.tolist()] * 2, "b": [b.tolist()] * 2})
        pq.write_table(table, tmp_path / "in.parquet")
        inputs = (tmp_path / "in.npz", tmp_path / "in.parquet")
        out = tmp_path / "out.jsonl"
        predict(model, *inputs, "--rows", "--overwrite", "--out", out, code=0 if fits else 1)
        made = lines(out)
        assert [each["error"] is None for each in made] == [fits] * 4


def test_sound_is_cut_into_stretches(tmp_path: Path) -> None:
    model = written(tmp_path / "m.tflite", loudness(rate=8000))
    seconds = np.arange(2000 * 2) / 16000  # at twice the rate, 2.5 stretches of 800 samples
    samples = (np.sin(2 * np.pi * 500 * seconds) * 16384).astype("<i2")
    with wave.open(str(tmp_path / "tone.wav"), "wb") as stream:
        stream.setnchannels(2), stream.setsampwidth(2), stream.setframerate(16000)
        stream.writeframes(np.repeat(samples[:, np.newaxis], 2, axis=1).tobytes())
    (tmp_path / "bad.wav").write_bytes(b"RIFF....WAVEfmt ")
    predict(model, tmp_path / "tone.wav", tmp_path / "bad.wav", "--out", tmp_path / "out.jsonl")
    *heard, bad = lines(tmp_path / "out.jsonl")
    assert [each["row"] for each in heard] == [0, 1, 2]
    powers = [each["power"] for each in heard]
    np.testing.assert_allclose(powers, [0.125, 0.125, 0.0625], rtol=0.02)
    assert "without samples" in bad["error"]


def test_a_model_that_asks_for_sound_at_a_rate_that_nothing_has(tmp_path: Path) -> None:
    """Two seconds of it would be 17 GB."""
    model = written(tmp_path / "m.tflite", loudness(rate=0xFFFFFFFF))
    with wave.open(str(tmp_path / "tone.wav"), "wb") as stream:
        stream.setnchannels(1), stream.setsampwidth(2), stream.setframerate(0xFFFFFFFF // 3)
        stream.writeframes(bytes(4000))
    predict(model, tmp_path / "tone.wav", "--out", tmp_path / "out.jsonl", code=1)
    (heard,) = lines(tmp_path / "out.jsonl")
    assert "sound at 4294967295 Hz is asked for" in heard["error"]


def test_arrays_that_do_not_fit(tmp_path: Path) -> None:
    model = written(tmp_path / "m.tflite", sums())
    good, long = np.ones(4, np.float32), np.ones(5, np.float32)
    for name, array in (("a", good), ("b", long), ("c", good)):
        np.save(tmp_path / f"{name}.npy", array)
    predict(model, tmp_path / "*.npy", "--out", tmp_path / "out.csv")
    rows = list(csv.DictReader((tmp_path / "out.csv").read_text().splitlines()))
    assert [each["y"] for each in rows] == ["[5.0]", "", "[5.0]"]
    assert "shape (1, 5)" in rows[1]["error"]


def test_rows_that_the_model_fails_over(tmp_path: Path) -> None:
    model = written(tmp_path / "m.tflite", picks())
    np.save(tmp_path / "in.npy", np.int32([[0], [2], [7], [1], [-9]]))
    predict(model, tmp_path / "in.npy", "--rows", "--out", tmp_path / "out.jsonl")
    rows = lines(tmp_path / "out.jsonl")
    assert [each["y"] for each in rows] == [10, 30, None, 20, None]
    assert [bool(each["error"]) for each in rows] == [False, False, True, False, True]


# Tables ------------------------------------------------------------------------------------------


def test_a_column_for_an_input_that_is_not_there(tmp_path: Path) -> None:
    model, out = written(tmp_path / "m.tflite", sums()), tmp_path / "out.csv"
    pq.write_table(pa.table({"a": [[1.0] * 4]}), tmp_path / "in.parquet")
    said = predict(model, tmp_path / "in.parquet", "--column", "xs=a", "--out", out, code=1)
    assert "no input 'xs'; there are 'x'; did you mean 'x'?" in " ".join(said.split())
    assert not out.exists()


def test_tables(tmp_path: Path, model: Path) -> None:
    given = np.random.default_rng(0).normal(size=(1000, 4)).astype(np.float32)
    lists: list[Any] = [row.tolist() for row in given]
    lists[7], lists[500] = None, [1.0]
    table = pa.table({"features": pa.array(lists, pa.list_(pa.float32())), "id": range(1000)})
    pq.write_table(table, tmp_path / "in.parquet", row_group_size=300)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 no table")
    inputs = (tmp_path / "in.parquet", tmp_path / "broken.parquet")
    predict(model, *inputs, "--column", "x=features", "--out", tmp_path / "out.parquet")
    made = pq.read_table(tmp_path / "out.parquet")
    assert made.column_names == ["source", "row", "y", "error"]
    assert made["row"].to_pylist() == [*range(1000), 0]
    wrong = {place for place, each in enumerate(made["error"].to_pylist()) if each}
    assert wrong == {7, 500, 1000}
    for place, each in enumerate(made["y"].to_pylist()[:1000]):
        if place not in wrong:
            np.testing.assert_allclose(each, given[place : place + 1].sum(1) + 1, atol=1e-4)
    assert made.schema.field("y").metadata == {b"shape": b"[1]"}


def test_tables_that_say_too_much(tmp_path: Path, model: Path) -> None:
    """Of their rows: a list of units of these would fill the disk."""
    np.savez(tmp_path / "rows.npz", x=np.zeros((2**60, 0), np.float32))
    predict(model, tmp_path / "rows.npz", "--rows", "--out", tmp_path / "out.jsonl", code=1)
    (row,) = lines(tmp_path / "out.jsonl")
    assert "cannot have 1152921504606846976 rows" in row["error"]


@pytest.mark.parametrize("said", [15, 2**62])
def test_a_table_of_fewer_rows_than_it_says(said: int, tmp_path: Path, model: Path) -> None:
    table, path = pa.table({"x": np.zeros((10, 4)).tolist()}), tmp_path / "in.parquet"
    pq.write_table(table, path, row_group_size=10)
    content = path.read_bytes()
    footer = int.from_bytes(content[-8:-4], "little") + 8
    # The number of rows of the file and of its one group, as a zigzag number of 64 bits.
    head, field = content[:-footer], content[-footer:-8]
    assert field.count(b"\x16\x14") > 1
    field = field.replace(b"\x16\x14", b"\x16" + varint(2 * said))
    path.write_bytes(head + field + len(field).to_bytes(4, "little") + b"PAR1")
    predict(model, path, "--out", tmp_path / "out.jsonl", code=1)
    assert all(row["error"] for row in lines(tmp_path / "out.jsonl"))


def varint(number: int) -> bytes:
    digits = []
    while number > 127:
        digits.append(number & 127 | 128)
        number >>= 7
    return bytes([*digits, number])


@pytest.mark.parametrize("suffix", ["npz", "parquet", "jsonl", "csv"])
def test_parts_that_are_damaged(
    suffix: str,
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They lost their end, or something in them changed."""
    np.save(tmp_path / "in.npy", np.ones((3, 4), np.float32))
    command = (model, tmp_path / "in.npy", "--rows", "--out", tmp_path / f"out.{suffix}")
    with monkeypatch.context() as patch:
        patch.setattr(Job, "finish", stopped)
        predict(*command, code=1)
    (part,) = (tmp_path / f"out.{suffix}.job").glob("*-*")
    content = part.read_bytes()
    for length in (0, len(content) // 3, len(content) - 1):
        part.write_bytes(content[:length])
        assert "cannot be joined" in predict(*command, code=1)
    for place in range(0, len(content), len(content) // 16):
        part.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert "cannot be joined" in predict(*command, code=1), place
    predict(*command, "--overwrite")


def stopped(job: Job) -> None:
    raise JobError("stopped")


def test_pictures_in_a_table(tmp_path: Path, pictures: Path) -> None:
    content = [(pictures / name).read_bytes() for name in ("a.png", "bad.jpg", "b.jpg")]
    kinds = {
        "bytes": pa.array(content),
        "files": pa.array([{"bytes": each, "path": "x"} for each in content]),
    }
    model = written(tmp_path / "m.tflite", colours())
    for name, column in kinds.items():
        pq.write_table(pa.table({name: column}), tmp_path / f"{name}.parquet")
        out = tmp_path / f"{name}.jsonl"
        predict(model, tmp_path / f"{name}.parquet", "--out", out)
        assert [each["y_label"] for each in lines(out)] == ["red", None, "green"]


def test_shapes_that_differ_in_every_format(tmp_path: Path) -> None:
    model = written(tmp_path / "m.tflite", above_zero())
    given = np.float32([[1, -1, 1, 0], [-1, -1, -1, -1], [0, 0, 0, 1]])
    np.save(tmp_path / "in.npy", given)
    expected = [np.argwhere(row > 0) for row in given]
    for suffix in ("jsonl", "parquet", "npz"):
        how = ("--rows", "--batch-size", 1, "--out", tmp_path / f"out.{suffix}")
        predict(model, tmp_path / "in.npy", *how)
    assert [each["where"] for each in lines(tmp_path / "out.jsonl")] == [
        each.tolist() for each in expected
    ]
    table = pq.read_table(tmp_path / "out.parquet")
    shapes = table["where_shape"].to_pylist()
    flat = table["where"].to_pylist()
    made = arrays(tmp_path / "out.npz")
    np.testing.assert_array_equal(made["where_shape"], shapes)
    np.testing.assert_array_equal(made["where"], np.concatenate(expected).ravel())
    for values, shape, want in zip(flat, shapes, expected, strict=True):
        np.testing.assert_array_equal(np.reshape(values, shape), want)


# Jobs --------------------------------------------------------------------------------------------


def test_results_are_not_overwritten_unasked(tmp_path: Path, model: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    command = (model, tmp_path / "a.npy", "--out", tmp_path / "out.jsonl")
    predict(*command)
    assert "is there already" in predict(*command, code=1)
    predict(*command, "--overwrite")


def test_another_job_is_not_gone_on_with(tmp_path: Path, model: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    out = tmp_path / "out.npz"
    folder = tmp_path / "out.npz.job"
    folder.mkdir()
    for number, said in ((2, "a job with another batch size"), (1, "no job of this version")):
        stored = {"format": number, "units": 1, "description": {"model": "another"}}
        (folder / "job.json").write_text(json.dumps(stored))
        assert said in predict(model, tmp_path / "a.npy", "--out", out, code=1)
    predict(model, tmp_path / "a.npy", "--out", out, "--overwrite")


@pytest.mark.parametrize("option", ["resolver", "external-root", "budget"])
def test_a_job_does_not_go_on_with_another_option(
    option: str, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = {
        "resolver": "tflite_ort:WellKnownOpResolver",
        "external-root": tmp_path,
        "budget": "folded_bytes=4000000000",
    }
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    command = (model, tmp_path / "a.npy", "--out", tmp_path / "out.csv")
    with monkeypatch.context() as patched:
        patched.setattr(Job, "finish", stopped)
        predict(*command, code=1)
    said = predict(*command, f"--{option}", values[option], code=1)
    assert f"a job with another {option.replace('-', ' ')}" in " ".join(said.split())
    predict(*command)


@pytest.mark.parametrize(
    ("out", "inputs", "message"),
    [
        ("out.txt", ["a.npy"], "results are written as .parquet, .csv, .jsonl, .npz"),
        ("out.csv", ["missing.npy"], "missing.npy"),
        ("out.csv", ["*.wav"], "no inputs"),
        ("folder/out.csv", ["a.npy"], "folder: No such file"),
    ],
)
def test_what_cannot_begin(
    tmp_path: Path,
    model: Path,
    monkeypatch: pytest.MonkeyPatch,
    out: str,
    inputs: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    assert message in predict(model, *inputs, "--out", out, code=1)
    assert not (tmp_path / out).exists()


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_a_killed_job_goes_on(tmp_path: Path, model: Path, suffix: str) -> None:
    """kill -9 at random moments: at the end every row is there once, and right."""
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    moments = random.Random(seed)
    given = np.random.default_rng(seed).normal(size=(30_000, 4)).astype(np.float32)
    np.save(tmp_path / "in.npy", given)
    out = tmp_path / f"out.{suffix}"
    job = tmp_path / f"{out.name}.job"
    command = [sys.executable, "-m", "tflite_ort", "predict", model, "in.npy", "--rows"]
    kills = 0
    while not out.exists() or job.exists():
        # Killed while it removed its parts: nothing is left to do.
        ended = out.exists() and not (job / "job.json").exists()
        process = subprocess.Popen(
            [*map(str, command), "--save-every", "0.1", "--batch-size", "4", "--out", str(out)],
            cwd=tmp_path,
            stdout=subprocess.DEVNULL,
        )
        try:
            code = process.wait(moments.uniform(0.4, 2.5) if kills < 3 else 120)
            assert code == int(ended) and not job.exists()
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            time.sleep(0.01)
    table = pq.read_table(out).to_pylist() if suffix == "parquet" else lines(out)
    assert [each["row"] for each in table] == list(range(len(given)))
    made = np.array([each["y"] for each in table])
    np.testing.assert_allclose(made, given.sum(1, keepdims=True) + 1, rtol=1e-4, atol=1e-4)
