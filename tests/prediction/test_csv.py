"""tflite-ort predict: CSV files, and texts in the cells of any table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from tests.one_op import T, one_op_model
from tests.prediction.models import colours, sums, two_inputs
from tests.prediction.test_predict import lines, predict, stopped, written
from tflite_ort.prediction.job import Job
from tflite_ort.schema import Op, TensorType


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Sums four numbers and adds one."""
    return written(tmp_path / "sums.tflite", sums())


def absolute(folder: Path, *shape: int) -> Path:
    tensor = T(shape)
    return written(folder / "abs.tflite", one_op_model(Op.ABS, [tensor], [tensor]))


def made(
    model: Path, table: Path, *options: object, code: int = 0
) -> list[tuple[int, Any, str | None]]:
    """(row, values, error) of each row."""
    out = table.with_suffix(".jsonl")
    predict(model, table, "--overwrite", "--out", out, *options, code=code)
    rows = lines(out)
    name = next(name for name in rows[0] if name not in ("source", "row", "error"))
    return [(each["row"], each[name], each["error"]) for each in rows]


def csv_of(folder: Path, text: str | bytes) -> Path:
    return written(folder / "in.csv", text.encode() if isinstance(text, str) else text)


def as_parquet(table: Path) -> Path:
    """The same texts as a parquet file."""
    head, *others = [line.split(",") for line in table.read_text("utf-8-sig").splitlines()]
    columns = {name: [row[place] for row in others] for place, name in enumerate(head)}
    pq.write_table(pa.table(columns), table.with_suffix(".parquet"))
    return table.with_suffix(".parquet")


def test_columns_of_numbers_are_a_row(tmp_path: Path, model: Path) -> None:
    table = csv_of(tmp_path, "a,b,c,d\n1,2,3,4\n-1.5,1e1, 2 ,0\n")
    assert made(model, table) == [(0, [11], None), (1, [11.5], None)]
    assert made(model, as_parquet(table)) == [(0, [11], None), (1, [11.5], None)]


def test_columns_that_are_named_are_a_row_in_their_order(tmp_path: Path) -> None:
    table = csv_of(tmp_path, 'id,"b, or not",a\nx,2,-1\ny,4,3\n')
    model = absolute(tmp_path, 1, 3)
    how = [f"--column=in0={name}" for name in ("a", "b, or not", "a")]
    assert [values for _, values, _ in made(model, table, *how)] == [[1, 2, 1], [3, 4, 3]]
    (_, _, error), _ = made(model, table, *how[:2], code=1)
    assert error is not None and "takes 3 values of shape (3,), and 2 columns" in error
    out = tmp_path / "other.jsonl"
    said = predict(model, table, *how, "--column", "in0=q", "--out", out, code=1)
    assert "no column 'q'; there are 'id', 'b, or not', 'a'" in said
    assert not out.exists()


@pytest.mark.filterwarnings("ignore:rows run one at a time")
def test_a_row_of_any_length(tmp_path: Path) -> None:
    tensor = T((1, 1), shape_signature=(1, -1))
    model = written(tmp_path / "m.tflite", one_op_model(Op.ABS, [tensor], [tensor]))
    table = csv_of(tmp_path, "a,b\n-1,2\n")
    assert made(model, table, "--column", "in0=b", "--column", "in0=a")[0][1] == [[2, 1]]


def test_an_empty_cell_and_one_that_is_no_number_are_errors_of_their_rows(
    tmp_path: Path, model: Path
) -> None:
    table = csv_of(tmp_path, "a,b,c,d\n1,,3,4\n1,1,1,1\n1,x,3,4\n1,1_0,3,4\n1,nan,3,4\n")
    for each in (table, as_parquet(table)):
        empty, fine, text, underscore, nan = made(model, each)
        assert empty[2] == "column 'b' has no value here" and fine[1] == [5]
        assert text[2] is not None and "column 'b' holds 'x': no value that" in text[2]
        assert underscore[2] is not None and "'1_0'" in underscore[2]
        assert nan[1:] == (["NaN"], None)


@pytest.mark.parametrize(
    ("dtype", "fits", "wrong"),
    [
        (TensorType.INT32, ["-7", "2147483647"], ["2147483648", "1.5", "1e3", ""]),
        (TensorType.INT64, ["9007199254740993"], ["9223372036854775808"]),
        (TensorType.FLOAT32, ["-1e-3", "16777216"], ["1e39", "1,5", "true"]),
    ],
)
def test_numbers_keep_their_values(
    tmp_path: Path, dtype: TensorType, fits: list[str], wrong: list[str]
) -> None:
    tensor = T((1,), dtype)
    model = written(tmp_path / "neg.tflite", one_op_model(Op.NEG, [tensor], [tensor]))
    table = csv_of(tmp_path, "in0,n\n" + "".join(f'"{each}",0\n' for each in fits + wrong))
    rows = made(model, table)
    for text, (_, values, error) in zip(fits, rows, strict=False):
        want = -np.float32(text) if dtype is TensorType.FLOAT32 else -int(text)
        assert error is None and values == want
    assert all(error for *_, error in rows[len(fits) :])


def test_lists_and_results_are_read(tmp_path: Path, model: Path) -> None:
    np.save(tmp_path / "rows.npy", np.arange(8, dtype=np.float32).reshape(2, 4))
    identity = absolute(tmp_path, 1, 4)
    predict(identity, tmp_path / "rows.npy", "--rows", "--out", tmp_path / "in.csv")
    rows = made(model, tmp_path / "in.csv", "--column", "x=out0")
    assert rows == [(0, [7], None), (1, [23], None)]
    table = csv_of(tmp_path, 'x,n\n"[1, 2",0\n"[1, null, 2, 3]",0\n"[[1, 2], [3, 4]]",0\n"[]",0\n')
    assert all(error for *_, error in made(model, table, code=1))


def test_paths_are_looked_up_beside_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, folder = written(tmp_path / "m.tflite", colours()), tmp_path / "data"
    (folder / "more").mkdir(parents=True)
    for place, name in enumerate(("a.png", "more/b with, comma.jpg")):
        pixels = np.zeros((20, 10, 3), np.uint8)
        pixels[..., place] = 255
        Image.fromarray(pixels).save(folder / name, quality=100)
    (folder / "bad.png").write_bytes(b"no picture")
    names = ["a.png", "more/b with, comma.jpg", f"{folder}/a.png", "no.png", "bad.png", "/dev/zero"]
    listed = "file,label\n" + "".join(f'"{name}",0\n' for name in names)
    table = csv_of(folder, listed)
    monkeypatch.chdir(tmp_path)
    for path in (table, Path("data/in.csv")):
        red, green, again, missing, bad, endless = made(model, path, "--column", "image=file")
        np.testing.assert_allclose([red[1], green[1]], [[1, -1, -1], [-1, 1, -1]], atol=0.05)
        assert again[1] == red[1]
        assert missing[2] is not None and "'no.png'" in missing[2] and "no file in" in missing[2]
        assert bad[2] is not None and "not an image" in bad[2]
        assert endless[2] is not None and "no file in" in endless[2]


def test_a_folder_of_pictures_with_a_list_of_them(tmp_path: Path) -> None:
    """The list is no input, unless it is named."""
    model, folder = written(tmp_path / "m.tflite", colours()), tmp_path / "data"
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "a.png")
    csv_of(folder, "file,label\na.png,0\n")
    predict(model, folder, "--out", tmp_path / "out.jsonl")
    assert [Path(each["source"]).name for each in lines(tmp_path / "out.jsonl")] == ["a.png"]
    predict(model, folder / "*.csv", "--column", "image=file", "--out", tmp_path / "b.jsonl")
    (row,) = lines(tmp_path / "b.jsonl")
    assert row["source"] == str(folder / "in.csv") and row["error"] is None


def test_two_inputs(tmp_path: Path) -> None:
    model = written(tmp_path / "two.tflite", two_inputs())
    np.save(tmp_path / "b.npy", np.ones(4, np.float32))
    table = csv_of(tmp_path, 'a,b\n"[[1, 2], [3, 4]]",b.npy\n"[1, 2, 3, 4]",a.npy\n')
    first, second = made(model, table)
    assert first[2] is None and second[2] is not None and "a.npy" in second[2]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "Empty CSV file"),
        (b"a,b,c,d\n1,2,3\n", "Expected 4 columns, got 3"),
        (b"a,b,c,d\n1,2,3,\xff\n", "UTF8"),
        (b"caf\xe9,b,c,d\n1,2,3,4\n", "codec can't decode byte 0xe9"),
        (b"a" * 200_000 + b",b,c,d\n1,2,3,4\n", "no line of names"),
        (b"a,a,b,c\n1,2,3,4\n", "several columns 'a'"),
    ],
)
def test_a_file_that_is_none_is_named(
    tmp_path: Path, model: Path, content: bytes, said: str
) -> None:
    ((_, _, error),) = made(model, csv_of(tmp_path, content), code=1)
    assert error is not None and said in error and "in.csv" in error


def test_odd_lines(tmp_path: Path, model: Path) -> None:
    """A mark of the order of bytes, ends of lines in cells, no end of the last line."""
    table = csv_of(tmp_path, b'\xef\xbb\xbfa,b,c,d\r\n1,"\r\n2",3,4\r\n1,1,1,1')
    assert made(model, table) == [(0, [11], None), (1, [5], None)]
    table = csv_of(tmp_path, "a,b,c,d\n")
    predict(model, table, "--out", tmp_path / "none.jsonl")
    assert lines(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("engine", ["threads", "processes"])
def test_many_rows_go_on(
    tmp_path: Path, model: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that was interrupted enters the file in its middle."""
    values = np.random.default_rng(0).integers(-9, 9, (3000, 4))
    text = "a,b,c,d\n" + "".join(",".join(map(str, row)) + "\n" for row in values)
    table, out = csv_of(tmp_path, text), tmp_path / "out.jsonl"
    command = (model, table, "--out", out, "--save-every", 0, "--engine", engine)
    with monkeypatch.context() as patched:
        patched.setattr(Job, "finish", stopped)
        predict(*command, code=1)
    parts = sorted((tmp_path / "out.jsonl.job").glob("*-*"))
    assert len(parts) > 2
    for part in parts[1::2]:
        part.unlink()
    predict(*command)
    rows = lines(out)
    assert [each["row"] for each in rows] == [*range(3000)]
    assert [each["y"][0] for each in rows] == [int(row.sum()) + 1 for row in values]


def test_a_table_that_changed(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, out = csv_of(tmp_path, "a,b,c,d\n" + "1,2,3,4\n" * 600), tmp_path / "out.jsonl"
    command = (model, table, "--out", out)
    with monkeypatch.context() as patched:
        patched.setattr(Job, "finish", stopped)
        predict(*command, code=1)
    for part in (tmp_path / "out.jsonl.job").glob("*-*"):
        part.unlink()
    table.write_text("a,b,c,d\n" + "1,2,3,4\n" * 300)
    predict(*command)
    wrong = [json.dumps(each["error"]) for each in lines(out) if each["error"]]
    assert len(wrong) == 344 and all("fewer rows than it says" in each for each in wrong)
