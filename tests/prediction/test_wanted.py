"""What a first user wants of predict: an early word, columns kept, best classes, drawings."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.made_networks import network
from tests.one_op import T, one_op_model
from tests.prediction.models import described
from tests.prediction.test_predict import lines, predict
from tests.test_answers import SIZE, cells
from tflite_ort.prediction import local
from tflite_ort.schema import Op
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    TensorMetadata,
)

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("pyarrow")


def absolute(tmp_path: Path, count: int) -> Path:
    tensor = T((1, count))
    (tmp_path / "abs.tflite").write_bytes(one_op_model(Op.ABS, [tensor], [tensor]))
    return tmp_path / "abs.tflite"


def scores(tmp_path: Path, count: int, *, named: bool) -> Path:
    """A model of `count` scores, which are those that are given."""
    labels = AssociatedFile(name="labels.txt", type=AssociatedFileType.TENSOR_AXIS_LABELS)
    tensor = T((1, count))
    content = described(
        one_op_model(Op.ABS, [tensor], [tensor]),
        TensorMetadata(name="x"),
        [TensorMetadata(name="y", associated_files=(labels,) if named else ())],
        {"labels.txt": "\n".join(f"thing {n}x" for n in range(count))} if named else {},
    )
    (tmp_path / "scores.tflite").write_bytes(content)
    return tmp_path / "scores.tflite"


def table(tmp_path: Path, text: str) -> Path:
    (tmp_path / "in.csv").write_text(text)
    return tmp_path / "in.csv"


def test_a_table_without_the_column_stops_before_anything_is_written(tmp_path: Path) -> None:
    model = absolute(tmp_path, 2)
    given = table(tmp_path, "id,width,height\n" + "a,1,2\n" * 3)
    said = predict(model, given, "--out", tmp_path / "out.csv", code=1)
    assert "no column for the inputs 'in0'" in said
    assert "add, for example, --column in0=id --column in0=width" in said
    assert {each.name for each in tmp_path.iterdir()} == {"abs.tflite", "in.csv"}
    how = ("--column", "in0=width", "--column", "in0=height")
    predict(model, given, *how, "--out", tmp_path / "out.csv")


@pytest.mark.parametrize("bad", [15, 16])
def test_many_rows_of_another_type_stop_it(tmp_path: Path, bad: int) -> None:
    given = table(tmp_path, "in0\n" + "word\n" * bad + "1\n" * 5)
    out, stops = tmp_path / "out.jsonl", bad == 16
    said = predict(absolute(tmp_path, 1), given, "--out", out, code=int(stops))
    assert out.exists() is not stops
    if stops:
        assert "none of the first 16 rows of" in said
        assert "holds 'word'" in said


def test_columns_are_kept(tmp_path: Path) -> None:
    given = table(tmp_path, "id,x,customer\n7,1,Ann\n8,word,Bob\n9,-3,Cy\n")
    out, how = tmp_path / "out.csv", ("--column", "in0=x", "--keep", "id, customer")
    predict(absolute(tmp_path, 1), given, *how, "--out", out)
    with out.open() as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["id"], row["customer"], row["out0"]) for row in rows] == [
        ("7", "Ann", "[1.0]"),
        ("", "", ""),
        ("9", "Cy", "[3.0]"),
    ]
    wrong = ("--column", "in0=x", "--keep", "name")
    said = predict(absolute(tmp_path, 1), given, *wrong, "--out", tmp_path / "b.csv", code=1)
    assert "no column 'name' to keep; there are 'id', 'x', 'customer'" in said
    ours = ("--column", "in0=x", "--keep", "source")
    assert "such a column already" in predict(
        absolute(tmp_path, 1), given, *ours, "--out", tmp_path / "b.csv", code=1
    )


def test_long_vectors_are_shown_by_their_best_classes(tmp_path: Path) -> None:
    given = np.random.default_rng(5).permutation(40).astype(np.float32).reshape(2, 20)
    np.save(tmp_path / "x.npy", given)

    def made(model: Path, *how: Any) -> list[dict[str, Any]]:
        out = tmp_path / "out.jsonl"
        predict(model, tmp_path / "x.npy", "--rows", "--overwrite", "--out", out, *how)
        return lines(out)

    model = scores(tmp_path, 20, named=True)
    for row, numbers in zip(made(model, "--top", 3), given, strict=True):
        order = np.argsort(-numbers)[:3]
        assert row["out0_top"] == "; ".join(f"thing {n}x {numbers[n]:.4g}" for n in order)
        assert row["out0_label"] == f"thing {order[0]}x"
        assert "out0" not in row
    assert made(model, "--raw")[0]["out0"] == given[0].tolist()
    bare = scores(tmp_path, 20, named=False)
    assert made(bare)[0]["out0"] == given[0].tolist()  # numbers of which nothing is known
    (tmp_path / "names.txt").write_text("\n".join(f"n{n}" for n in range(20)))
    assert (
        made(bare, "--labels", tmp_path / "names.txt")[0]["out0_label"] == f"n{given[0].argmax()}"
    )
    (tmp_path / "few.txt").write_text("a\nb")
    how = ("--labels", tmp_path / "few.txt", "--rows", "--out", tmp_path / "c.csv")
    said = predict(bare, tmp_path / "x.npy", *how, code=1)
    assert "there are 2 labels, and the outputs are out0 [20]" in said


def test_pictures_are_drawn_into_a_folder(tmp_path: Path) -> None:
    outputs = np.zeros((1, 4 + 2, cells((8, 16, 32))))
    outputs[0, :, 3] = [0.5, 0.5, 0.2, 0.1, 0.9, 0]
    (tmp_path / "yolo.tflite").write_bytes(network(SIZE, [outputs]))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        Image.new("RGB", (200, 100), (10, 200, 30)).save(tmp_path / name / "p.png")
    how = ("--out", tmp_path / "out.csv", "--draw", tmp_path / "drawn")
    predict(tmp_path / "yolo.tflite", tmp_path / "a", tmp_path / "b", *how)
    files = sorted((tmp_path / "drawn").iterdir())
    assert len(files) == 2
    for file in files:
        assert (np.asarray(Image.open(file)) != [10, 200, 30]).any()


def test_an_interrupt_says_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(job: Any, *_: Any) -> None:
        raise KeyboardInterrupt

    given = table(tmp_path, "in0\n1\n2\n")
    command = (absolute(tmp_path, 1), given, "--out", tmp_path / "out.csv")
    with monkeypatch.context() as patched:
        patched.setattr(local, "_run", interrupted)
        said = predict(*command, code=130)
    assert "interrupted: results of 0 of 1 inputs are kept in" in said
    assert "the same command goes on with it" in said
    predict(*command)
