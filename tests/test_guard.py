"""No verb writes over what it reads, through a link, or two results into one file."""

from __future__ import annotations

import os
import re
import sys
import typing
from collections.abc import Iterator
from inspect import unwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.one_op import T, one_op_model
from tflite_ort.base import files, guard
from tflite_ort.command.cli import VERBS, app, command
from tflite_ort.command.paths import CACHE, READ, WRITTEN
from tflite_ort.schema import Op

# By verb and parameter, a command line that writes OUT, and the suffix that it takes. FOLDER is a
# folder that is written into.
COMMANDS: dict[tuple[str, str], tuple[list[str], str]] = {
    ("run", "output"): (["MODEL", "--input", "INPUT", "--output", "OUT"], ".npz"),
    ("predict", "out"): (["MODEL", "INPUT", "--overwrite", "--out", "OUT"], ".csv"),
    ("predict", "draw"): (["MODEL", "INPUT", "--out", "unwritten.csv", "--draw", "FOLDER"], ""),
    ("embed", "out"): (["MODEL", "a text", "--out", "OUT"], ".npy"),
    ("export", "out"): (["MODEL", "OUT"], ".onnx"),
    ("triton", "repository"): (["MODEL", "FOLDER"], ""),
    ("verify", "json_file"): (["MODEL", "--input", "INPUT", "--json", "OUT"], ".json"),
    ("verify", "html"): (["MODEL", "--input", "INPUT", "--report", "OUT"], ".html"),
    ("verify", "overlay"): (["MODEL", "--input", "INPUT", "--overlay", "FOLDER"], ""),
    ("verify", "extract"): (["MODEL", "--input", "INPUT", "--extract", "OUT"], ".tflite"),
    ("extract", "out"): (["MODEL", "OUT"], ".tflite"),
    ("bench", "json_file"): (["MODEL", "--json", "OUT"], ".json"),
    ("bench", "html"): (["MODEL", "--html", "OUT"], ".html"),
    ("tune", "out"): (["MODEL", "--out", "OUT"], ".json"),
    ("versions", "fix"): (["MODEL", "--fix", "OUT"], ".tflite"),
    ("demo", "out"): (["--camera", "INPUT", "--bundle", "MODEL", "--out", "FOLDER"], ""),
}


def verbs() -> Iterator[tuple[str, Any]]:
    for name in VERBS:
        found = command(name)
        yield from getattr(found, "commands", {name: found}).items()


def test_every_parameter_that_names_files_is_known() -> None:
    """A new one has to say whether it is read or written, and how it is tried here."""
    tables = [set(READ), set(WRITTEN), set(CACHE)]
    assert sum(map(len, tables)) == len(set().union(*tables))
    written = set()
    for verb, found in verbs():
        hints = typing.get_type_hints(unwrap(found.callback))
        for parameter in found.params:
            name = str(parameter.name)
            told = f"{parameter.metavar or ''} {name.upper()}"
            if getattr(parameter, "is_flag", False):
                continue
            if "Path" in str(hints.get(name)) or re.search(
                r"\b(FILE|FOLDER|DIR|PATH|OUT|INPUTS)\b", told
            ):
                assert name in set().union(*tables), f"{verb} {name}"
            if name in WRITTEN:
                written.add((verb, name))
    assert written == set(COMMANDS)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    (tmp_path / "model.tflite").write_bytes(one_op_model(Op.RELU, [T((4,))], [T((4,))]))
    np.save(tmp_path / "input.npy", np.ones(4, np.float32))
    return tmp_path


def call(key: tuple[str, str], folder: Path, out: Path) -> Any:
    names = {"MODEL": folder / "model.tflite", "INPUT": folder / "input.npy"}
    names |= {"OUT": out, "FOLDER": out}
    line = [str(names.get(each, each)) for each in COMMANDS[key][0]]
    return CliRunner().invoke(app, [key[0], *line])


each_command = pytest.mark.parametrize("key", COMMANDS, ids=" ".join)


@each_command
def test_nothing_is_written_through_a_link(key: tuple[str, str], made: Path) -> None:
    line, suffix = COMMANDS[key]
    kept = made / f"kept{suffix}"
    kept.mkdir() if "FOLDER" in line else kept.write_text("kept")
    for name, target in (("there", kept), ("nowhere", made / "nothing")):
        link = made / f"{name}{suffix}"
        link.symlink_to(target)
        before = sorted(made.rglob("*"))
        result = call(key, made, link)
        assert result.exit_code == 1, result.output
        assert f"{link}: is a link" in result.output
        assert sorted(made.rglob("*")) == before and link.is_symlink()
    assert kept.is_dir() or kept.read_text() == "kept"


@each_command
def test_nothing_that_is_read_is_written(key: tuple[str, str], made: Path) -> None:
    line, suffix = COMMANDS[key]
    read = {"MODEL": "model.tflite", "INPUT": "input.npy"}
    for name in (file for word, file in read.items() if word in line):
        other = made / f"other_{name}{suffix}"
        os.link(made / name, other)
        content = other.read_bytes()
        result = call(key, made, other)
        assert result.exit_code == 2 and "lost" in result.output, result.output
        assert [each.read_bytes() for each in (other, made / name)] == [content] * 2


@pytest.mark.parametrize(
    "line",
    [
        "verify MODEL --json R --report R",
        "verify MODEL --json R --report r",
        "verify MODEL --json below/../R --report R",
        "verify MODEL --report R --extract R",
        "bench MODEL --json R --html R",
        "run MODEL --output R.npy --output out0=R.npy",
    ],
)
def test_two_results_are_not_written_into_one_file(
    line: str, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made / "below").mkdir()
    monkeypatch.chdir(made)
    result = CliRunner().invoke(app, line.replace("MODEL", "model.tflite").split())
    assert result.exit_code == 2 and "is written by" in " ".join(result.output.split())
    assert {each.name for each in made.iterdir()} == {"model.tflite", "input.npy", "below"}


def test_a_result_in_the_folder_of_others(made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That two have one name is found where the second is written."""
    (made / "out").mkdir()
    monkeypatch.chdir(made)
    line = "run model.tflite --output out0=out/out0.npy --output out"
    result = CliRunner().invoke(app, line.split())
    assert result.exit_code == 1 and "two results would go there" in result.output


def test_what_a_verb_finds_in_a_folder_is_read_too(tmp_path: Path) -> None:
    picture = tmp_path / "a.png"
    picture.write_text("kept")
    with guard.guarding():
        guard.protect([picture])
        with pytest.raises(OSError, match="is not written, since it is read too"):
            files.write_text(picture, "lost")
        with pytest.raises(OSError, match="is not written"):
            files.move(tmp_path / "b", picture)
    assert picture.read_text() == "kept"
    files.write_text(picture, "by another command")


def test_folders_of_a_result_are_no_links(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="is a link"):
        files.made_folder(tmp_path / "out", "1")
    assert files.made_folder(tmp_path / "out", "2", "3").is_dir()


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/stdout is a link on Linux")
def test_links_of_the_system_are_followed() -> None:
    guard.check_no_link("/dev/stdout")
    guard.check_no_link("/dev/fd/1")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such pipes")
@pytest.mark.parametrize(
    "line",
    [
        "tune MODEL --out pipe",
        "verify MODEL --onnx MODEL --map pipe",
        "run MODEL --input pipe",
        "verify MODEL --input pipe",
    ],
)
def test_no_verb_waits_for_a_pipe(line: str, made: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(made / "pipe")
    monkeypatch.chdir(made)
    result = CliRunner().invoke(app, line.replace("MODEL", "model.tflite").split())
    assert result.exit_code in (1, 2), result.output
