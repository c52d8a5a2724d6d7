"""Rows, files and results that are odd: each is an error of its row, or has its own values."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image
from typer.testing import CliRunner

from tests.prediction.models import colours, described, sums, two_inputs
from tflite_ort.command.cli import app
from tflite_ort.prediction.array_files import InputError, cast, entry_names
from tflite_ort.prediction.images import decoded_image
from tflite_ort.prediction.job import JobError, opened_job
from tflite_ort.prediction.local import run_threads
from tflite_ort.prediction.predictor import Predictor
from tflite_ort.prediction.results import Block, ResultColumn
from tflite_ort.prediction.sound import Ear
from tflite_ort.prediction.units import Unit
from tflite_ort.prediction.work import Setup, Worker
from tflite_ort.prediction.writers import writer_for
from tflite_ort.schema import (
    BatchWarning,
    HashtableOptions,
    ModelBuilder,
    Op,
    ReshapeOptions,
    TensorType,
)
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    TensorMetadata,
)
from tflite_ort.tasks.image import Image as TaskImage

Array = npt.NDArray[Any]

SUFFIXES = (".csv", ".jsonl", ".npz", ".parquet")


def predict(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, ["predict", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def details(dtype: npt.DTypeLike, *shape: int) -> dict[str, Any]:
    sizes = {"shape": np.array(shape), "shape_signature": np.array(shape)}
    return {"name": "x", "dtype": np.dtype(dtype).type, "quantization": (0.0, 0), **sizes}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """[1, 4] floats -> their sum and 1."""
    path = tmp_path / "sums.tflite"
    path.write_bytes(sums())
    return path


# Arrays ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        (np.array([1, 2], ml_dtypes.bfloat16), np.array([1, 2], np.float16)),
        (np.array([1, 2], ml_dtypes.bfloat16).view("V2"), np.array([1, 2], ml_dtypes.bfloat16)),
        (np.array([1 + 2j]), np.array([1 + 2j], np.complex64)),
        (np.array([1.5], ">f4"), np.array([1.5], np.float32)),
    ],
)
def test_values_keep_their_meaning(given: Array, taken: Array) -> None:
    found = cast(given, details(taken.dtype, 2), "it")
    assert found.dtype == taken.dtype
    np.testing.assert_array_equal(found.astype(np.complex64), taken.astype(np.complex64))


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (np.array([1, 2], ml_dtypes.bfloat16).view("V2"), np.float16),
        (np.array([-1, 2], ml_dtypes.int4), np.int8),
        (np.array([-1, 2], ml_dtypes.float8_e4m3fn), np.int8),
        (np.array([(1, 2, 3, 4)], [(name, "u1") for name in "rgba"]), np.float32),
        (np.array([1j]), np.float32),
    ],
)
def test_bytes_are_not_taken_as_other_values(given: Array, dtype: npt.DTypeLike) -> None:
    with pytest.raises(InputError, match="takes"):
        cast(given, details(dtype, 2), "it")


def test_names_in_an_archive_are_distinct() -> None:
    names = [".", "_", "0__", "1__"]
    found = entry_names(names)
    assert len(set(found)) == len(names)
    assert found[2:] == names[2:]


# Pictures ----------------------------------------------------------------------------------------


def _file(pixels: Array, format: str) -> bytes:
    if format == "PPM":  # early versions of Pillow do not write it in 16 bits
        return b"P5 %d %d 65535\n" % pixels.shape[::-1] + pixels.astype(">u2").tobytes()
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format)
    return stream.getvalue()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("format", ["PNG", "TIFF", "PPM"])
def test_pictures_of_16_bits_have_their_higher_8(format: str, channels: int) -> None:
    pixels = (np.arange(16, dtype=np.uint16) * 4096 + 255).reshape(4, 4)
    told = details(np.uint8, 1, 4, 4, channels)
    found = decoded_image(_file(pixels, format), told, None, "it")
    np.testing.assert_array_equal(found[0, ..., 0], pixels >> 8)


def test_a_picture_of_a_task_with_16_bits(tmp_path: Path) -> None:
    pixels = (np.arange(16, dtype=np.uint16) * 4096).reshape(4, 4)
    path = tmp_path / "gray.png"
    path.write_bytes(_file(pixels, "PNG"))
    found = TaskImage.create_from_file(path).numpy_view()
    np.testing.assert_array_equal(found[..., 1], pixels >> 8)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_pictures_without_a_known_white(dtype: npt.DTypeLike, tmp_path: Path) -> None:
    content = _file(np.zeros((4, 4), dtype), "TIFF")
    with pytest.raises(InputError, match="32 bits"):
        decoded_image(content, details(np.uint8, 1, 4, 4, 1), None, "it")
    path = tmp_path / "gray.tif"
    path.write_bytes(content)
    with pytest.raises(OSError, match="32 bits"):
        TaskImage.create_from_file(path)


def test_sound_of_half_a_sample() -> None:
    with pytest.raises(InputError, match="whole number"):
        Ear.of(details(np.float32, 1, 15601), 8000, 2)


# Tables ------------------------------------------------------------------------------------------


def test_ragged_cells_are_errors_of_their_rows(model: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "t.parquet", tmp_path / "o.jsonl"
    pq.write_table(pa.table({"x": [[[1.0], [2.0, 3.0, 4.0]], [[1.0, 2.0, 3.0, 4.0]]]}), table)
    predict(model, table, "--out", out)
    first, second = rows(out)
    assert "different lengths" in first["error"]
    assert second["y"] == [11.0]


def test_text_that_is_none_is_an_error_of_its_row(model: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "t.parquet", tmp_path / "o.jsonl"
    ends, text = pa.py_buffer(np.int32([0, 2]).tobytes()), pa.py_buffer(b"\xff\xfe")
    pq.write_table(pa.table({"x": pa.StringArray.from_buffers(1, ends, text)}), table)
    predict(model, table, "--out", out, code=1)
    assert "cannot be read" in rows(out)[0]["error"]


@pytest.mark.parametrize("place", ["a page", "the footer"])
def test_a_damaged_table_is_named(place: str, model: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "t.parquet", tmp_path / "o.jsonl"
    pq.write_table(pa.table({"x": [[1.0, 2.0, 3.0, 4.0]]}), table)
    content = bytearray(table.read_bytes())
    length = int.from_bytes(content[-8:-4], "little")
    start = 4 if place == "a page" else len(content) - 8 - length
    content[start : start + 40] = bytes(40)
    table.write_bytes(content)
    predict(model, table, "--out", out, code=1)
    assert str(table) in rows(out)[0]["error"]


def test_a_table_with_a_column_twice(model: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "t.parquet", tmp_path / "o.jsonl"
    column = pa.array([[1.0, 2.0, 3.0, 4.0]])
    pq.write_table(pa.Table.from_arrays([column, column], names=["x", "x"]), table)
    predict(model, table, "--out", out, code=1)
    assert "several columns 'x'" in rows(out)[0]["error"]


def test_columns_of_archives_and_of_arrays_without_names(model: Path, tmp_path: Path) -> None:
    two = tmp_path / "two.tflite"
    two.write_bytes(two_inputs())
    sample, out = tmp_path / "sample.npz", tmp_path / "o.jsonl"
    np.savez(sample, p=np.ones((1, 2, 2), np.float32), q=np.arange(4, dtype=np.float32))
    predict(two, sample, "--column", "a=p", "--column", "b=q", "--out", out)
    assert rows(out)[0]["y"] == [1.0, 2.0, 3.0, 4.0]
    plain, table, both = tmp_path / "a.npy", tmp_path / "t.parquet", tmp_path / "both.jsonl"
    np.save(plain, np.ones((2, 4), np.float32))
    pq.write_table(pa.table({"v": [[1.0, 2.0, 3.0, 4.0]]}), table)
    predict(model, plain, table, "--rows", "--column", "x=v", "--out", both)
    assert [row["y"] for row in rows(both)] == [[5.0], [5.0], [11.0]]


def test_rows_that_are_gone_are_errors(model: Path, tmp_path: Path) -> None:
    """An array that is shorter than it was when the job was listed."""
    path = tmp_path / "a.npy"
    np.save(path, np.ones((2, 4), np.float32))
    block = Worker(Setup(model))([Unit(str(path), 0, 5, True)])
    assert len(block.sources) == 5 == block.failed
    assert "has changed" in str(block.errors[0])


def test_results_are_no_inputs(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    np.save(folder / "a.npy", np.ones((1, 4), np.float32))
    out = folder / "r.npz"
    for inputs in (folder, folder / "*.np?"):
        for _ in range(2):
            predict(model, inputs, "--out", out, "--overwrite")
            assert np.load(out)["source"].tolist() == [str(folder / "a.npy")]


# Results -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_names_that_are_no_text(suffix: str, tmp_path: Path) -> None:
    model, picture = tmp_path / "c.tflite", os.fsencode(tmp_path) + b"/bad\xff.png"
    model.write_bytes(colours())
    Path(os.fsdecode(picture)).write_bytes(b"no picture")
    out = tmp_path / f"r{suffix}"
    predict(model, os.fsdecode(picture), "--out", out, code=1)
    if suffix == ".npz":
        said = str(np.load(out)["error"][0])
    else:
        said = str(
            pq.read_table(out).to_pylist() if suffix == ".parquet" else out.read_text("utf-8")
        )
    assert "\\xff.png is not an image" in said


def test_no_rows_in_an_archive(model: Path, tmp_path: Path) -> None:
    table, out = tmp_path / "t.parquet", tmp_path / "o.npz"
    pq.write_table(pa.table({"x": pa.array([], pa.list_(pa.float32()))}), table)
    predict(model, table, "--out", out)
    shapes = {name: array.shape for name, array in np.load(out).items()}
    assert shapes == {"source": (0,), "row": (0,), "error": (0,), "y": (0, 1)}


def _ragged(*arrays: Array) -> Array:
    column = np.empty(len(arrays), np.object_)
    column[:] = arrays
    return column


def test_ranks_that_differ_from_part_to_part(tmp_path: Path) -> None:
    out = tmp_path / "o.npz"
    writer = writer_for(out, [ResultColumn("y", np.dtype(np.float32), None)])
    parts = [tmp_path / str(number) for number in range(3)]
    flat, square = np.ones(3, np.float32), np.ones((2, 2), np.float32)
    scalar = np.float32(1).reshape(())
    writer.part(parts[0], Block(["a"], [0], [None], [_ragged(flat)]))
    writer.part(parts[1], Block(["b"], [0], ["no"], [_ragged()]))
    writer.join(parts[:2], out)
    assert np.load(out)["y_shape"].tolist() == [[3], [0]]
    for other in (square, scalar):
        column = np.empty(1, np.object_)
        column[0] = other
        writer.part(parts[2], Block(["c"], [0], [None], [column]))
        with pytest.raises(InputError, match="different ranks"):
            writer.join(parts, out)


def test_an_interrupt_between_two_groups(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it comes, the parts that are written say which units are in them."""
    array, out = tmp_path / "a.npy", tmp_path / "o.jsonl"
    np.save(array, np.ones((96, 4), np.float32))
    worker = Worker(Setup(model))
    units = [Unit(str(array), first, 32, True) for first in range(0, 96, 32)]
    job = opened_job(out, writer_for(out, worker.columns), {}, iter(units), save_seconds=1e9)
    asked = []

    def size(block: Block) -> int:
        asked.append(block)
        if len(asked) == 2:
            raise KeyboardInterrupt
        return 1

    monkeypatch.setattr(Block, "size", property(size))
    with pytest.raises(KeyboardInterrupt):
        run_threads(job, worker, 1, lambda *_: None)
    again = opened_job(out, writer_for(out, worker.columns), {}, iter(units))
    monkeypatch.undo()
    run_threads(again, worker, 1, lambda *_: None)
    again.finish()
    assert [row["row"] for row in rows(out)] == [*range(96)]


@pytest.mark.parametrize("removed", [0, 1, 3])
def test_an_interrupt_while_parts_are_removed(
    removed: int, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The results are written; the next command removes what is left."""
    array, out = tmp_path / "a.npy", tmp_path / "o.jsonl"
    np.save(array, np.ones((96, 4), np.float32))
    worker = Worker(Setup(model))
    units = [Unit(str(array), 0, 96, True)]
    job = opened_job(out, writer_for(out, worker.columns), {}, iter(units))
    run_threads(job, worker, 1, lambda *_: None)
    unlink, gone = Path.unlink, []

    def interrupted(self: Path, missing_ok: bool = False) -> None:
        if self.parent == job.folder:
            if len(gone) == removed:
                raise KeyboardInterrupt
            gone.append(self)
        unlink(self, missing_ok)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "unlink", interrupted)
        job.finish()
    assert job.folder.exists()
    if removed:
        with pytest.raises(JobError, match="is there already"):
            opened_job(out, writer_for(out, worker.columns), {}, iter(units))
    else:
        opened_job(out, writer_for(out, worker.columns), {}, iter(units)).finish()
    assert not job.folder.exists()
    assert [row["row"] for row in rows(out)] == [*range(96)]


# Predictors --------------------------------------------------------------------------------------


def test_columns_that_are_no_inputs_may_be_ragged() -> None:
    predictor = Predictor(sums())
    found = predictor({"x": np.ones((2, 4), np.float32), "boxes": [np.ones(1), np.ones((2, 3))]})
    assert [each.shape for each in found["boxes"]] == [(1,), (2, 3)]
    with pytest.raises(InputError, match="different lengths"):
        predictor({"x": [[1.0, [2.0], 3.0, 4.0]]})


def test_a_table_is_filled_by_each_row_anew() -> None:
    """The keys are an input, and a table keeps what it was filled with first."""
    builder = ModelBuilder()
    main = builder.subgraph("main")
    main.tensor("t", (1,), TensorType.RESOURCE).tensor("x", (2,), TensorType.INT64)
    main.constant("values", np.array([b"a", b"b"], np.object_)).constant("q", np.int64([1, 2]))
    main.constant("none", np.array([b"-"], np.object_)).tensor("found", (2,), TensorType.STRING)
    options = HashtableOptions(
        table_id=3, key_dtype=TensorType.INT64, value_dtype=TensorType.STRING
    )
    main.operator(Op.HASHTABLE, [], ["t"], options)
    main.operator(Op.HASHTABLE_IMPORT, ["t", "x", "values"], [])
    main.operator(Op.HASHTABLE_FIND, ["t", "q", "none"], ["found"])
    main.inputs("x").outputs("found")
    with pytest.warns(BatchWarning, match="HASHTABLE_IMPORT"):
        predictor = Predictor(builder.write())
    found = predictor(np.int64([[1, 2], [2, 1], [7, 2]]))
    assert found.tolist() == [[b"a", b"b"], [b"b", b"a"], [b"-", b"b"]]


def test_text_has_no_labels(tmp_path: Path) -> None:
    labels = AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    builder = ModelBuilder()
    main = builder.subgraph("main")
    for name in "xy":
        main.tensor(name, (1, 3), TensorType.STRING)
    main.constant("shape", np.int32([1, 3]))
    main.operator(Op.RESHAPE, ["x", "shape"], ["y"], ReshapeOptions(new_shape=(1, 3)))
    main.inputs("x").outputs("y")
    made = TensorMetadata(name="y", associated_files=(labels,))
    content = described(
        builder.write(), TensorMetadata(name="x"), [made], {"labels.txt": "red\ngreen\nblue"}
    )
    words = np.array([[b"a", b"bb", b""]], np.object_)
    assert list(Predictor(content)({"x": words})) == ["y"]
