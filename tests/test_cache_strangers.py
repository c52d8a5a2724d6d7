"""A folder of the cache in which others have files: those stay."""

from __future__ import annotations

import os
import time
from pathlib import Path

from typer.testing import CliRunner

from tests.one_op import T, one_op_model
from tflite_ort.cache.folder import CacheFolder
from tflite_ort.cache.names import STAGING, fresh_name
from tflite_ort.command.cli import app
from tflite_ort.schema import Op


def test_files_of_others_stay(tmp_path: Path) -> None:
    """Names as the cache gives them, a document that is none of ours, and links."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept")
    folder = tmp_path / "folder"
    folder.mkdir()
    key = "0123456789abcdef" * 2 + "01234567"
    theirs = [key, f"{key}.json", f"{'a' * 40}.{'b' * 24}.1", f"{'a' * 40}.{'b' * 16}.1"]
    for name in theirs:
        (folder / name).write_text("{}")
    (folder / "staging-area").mkdir()
    (folder / "staging-area" / "kept").write_text("kept")
    proved = fresh_name(STAGING)
    (folder / proved).symlink_to(outside)
    old = time.time() - 7200
    for each in (*folder.iterdir(), *outside.iterdir()):
        os.utime(each, (old, old), follow_symlinks=False)
    before = {path: path.is_file() and path.read_text() for path in folder.rglob("*")}
    model = tmp_path / "model.tflite"
    model.write_bytes(one_op_model(Op.RELU, [T((4,))], [T((4,))]))
    for command in (["cache", "clear"], ["compile", str(model), "--cache"], ["cache", "clear"]):
        result = CliRunner().invoke(app, [*command, str(folder)])
        assert result.exit_code == 0, result.output
    assert {path: path.is_file() and path.read_text() for path in folder.rglob("*")} == before
    assert (outside / "kept").read_text() == "kept"


def test_an_interrupted_write_is_cleared(tmp_path: Path) -> None:
    """Files without a document, and a folder that was not moved: the names prove who made them."""
    name = f"{fresh_name('a' * 40 + '.')}.1"
    (tmp_path / name).write_bytes(b"x" * 100)
    stage = tmp_path / fresh_name(STAGING)
    stage.mkdir()
    (stage / name).write_bytes(b"x" * 10)
    assert CacheFolder(tmp_path, lambda: 0).clear() == 110
    assert not list(tmp_path.iterdir())
