"""A file that somebody else writes while its model is in use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.models import model_path
from tflite_ort.schema import read_model
from tflite_ort.schema.file.plain_files import file_content

MODEL = "litert__mobilenet_like_model.tflite"

# Loads a model, lets go of its bytes in the file in one of two ways, and prints its result.
PROGRAM = """
import os, sys
import numpy as np
from tflite_ort import Interpreter
path, change = sys.argv[1:]
interpreter = Interpreter(path)
if change == "cut":
    os.truncate(path, 0)
elif change == "overwritten":
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.write(b"\\xff" * size)
interpreter.get_tensor_details()
interpreter.allocate_tensors()
for detail in interpreter.get_input_details():
    interpreter.set_tensor(detail["index"], np.ones(detail["shape"], detail["dtype"]))
interpreter.invoke()
print(interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).sum())
"""


def result_after(change: str, folder: Path) -> str:
    copy = folder / f"{change}.tflite"
    copy.write_bytes(model_path(MODEL).read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(copy), change], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_change_after_loading_changes_nothing(tmp_path: Path) -> None:
    results = {result_after(change, tmp_path) for change in ("none", "cut", "overwritten")}
    assert len(results) == 1


@pytest.mark.parametrize("limit", [0, 1 << 30])
def test_a_large_file_is_mapped(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tflite_ort.schema.file.plain_files.MAPPED_BYTES", limit)
    content = file_content(model_path(MODEL))
    assert content.tobytes() == model_path(MODEL).read_bytes()
    assert not content.flags.writeable
    assert isinstance(content.base, bytes) == (limit > 0)
    assert read_model(model_path(MODEL)) == read_model(model_path(MODEL).read_bytes())


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    np.testing.assert_array_equal(file_content(tmp_path / "empty"), [])
