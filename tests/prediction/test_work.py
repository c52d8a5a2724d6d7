"""How the rows of a job are shared out, and in which turns they are read and run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.prediction.models import sums
from tflite_ort.prediction import work
from tflite_ort.prediction.job import opened_job
from tflite_ort.prediction.results import result_columns
from tflite_ort.prediction.row_model import LARGEST_BATCH, RowModel
from tflite_ort.prediction.tensors import OutputColumn
from tflite_ort.prediction.units import Unit
from tflite_ort.prediction.work import Setup, Worker
from tflite_ort.prediction.writers import writer_for


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_the_last_groups_are_small(tmp_path: Path, workers: int) -> None:
    out = tmp_path / "out.jsonl"
    job = opened_job(out, writer_for(out, []), {}, (Unit(str(n)) for n in range(1000)))
    groups = [*job.groups(32, workers)]
    assert [int(unit.path) for _, units in groups for unit in units] == [*range(1000)]
    assert all(int(units[0].path) == first for first, units in groups)
    sizes = [len(units) for _, units in groups]
    assert sizes[0] == 32 and sizes == sorted(sizes, reverse=True)
    assert max(sizes[-workers:]) <= 4


def test_rows_are_read_before_they_are_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events: list[str] = []
    read, run = Worker._rows, RowModel.run

    def reading(self: Worker, *arguments: Any) -> Iterator[Any]:
        for each in read(self, *arguments):
            events.append("read")
            yield each

    def running(self: RowModel, columns: Any) -> Any:
        events.append(f"run {len(columns[0])}")
        return run(self, columns)

    monkeypatch.setattr(Worker, "_rows", reading)
    monkeypatch.setattr(RowModel, "run", running)
    worker = Worker(Setup(_written(tmp_path, sums()), 4))
    paths = [tmp_path / f"{number:03}.npy" for number in range(70)]
    for number, path in enumerate(paths):
        np.save(path, np.full(4, number, np.float32))
    units = [Unit(str(path)) for path in paths]
    block = worker(units)
    turn = ["read"] * LARGEST_BATCH + ["run 4"] * (LARGEST_BATCH // 4)
    assert events == [*turn, *turn, *["read"] * 6, "run 4", "run 2"]
    assert block.values[0].reshape(-1).tolist() == [number * 4 + 1 for number in range(70)]

    events.clear()
    monkeypatch.setattr(work, "_AHEAD_BYTES", 160)  # ten rows of four floats
    worker(units[:20])
    assert events == (["read"] * 10 + ["run 4", "run 4", "run 2"]) * 2

    events.clear()
    Worker(Setup(str(tmp_path / "model.tflite"), 1))(units[:20])  # one by one, given together
    assert events == (["read"] * 10 + ["run 10"]) * 2


def _written(folder: Path, model: bytes) -> str:
    path = folder / "model.tflite"
    path.write_bytes(model)
    return str(path)


def test_columns_of_labels_and_shapes_leave_outputs_their_names() -> None:
    scores = OutputColumn("y", np.dtype(np.float32), (2,), True, 2, labels=("a", "b"))
    outputs = [scores, replace(scores, name="y_label", labels=())]
    assert [each.name for each in result_columns(outputs)] == [
        "y",
        "y_label_",
        "y_score",
        "y_label",
    ]
    ragged = [replace(scores, row=None, labels=()), replace(scores, name="y_shape", labels=())]
    assert [each.name for each in result_columns(ragged)] == ["y", "y_shape_"]
