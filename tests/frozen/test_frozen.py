"""Without a folder of files: from a zip archive here, and as a program in `.ci/frozen`."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

import tflite_ort
from tests.frozen import program
from tests.generation.models import bundle, library, llm_metadata
from tests.policy import PACKAGES
from tflite_ort.base import library_process
from tflite_ort.base import own_process as processes
from tflite_ort.base.shipped import shipped
from tflite_ort.cache import keys
from tflite_ort.generation.errors import GenerationError
from tflite_ort.schema import BridgeError
from tflite_ort.verification import litert

ROOT = Path(__file__).parents[2]


def archive(path: Path) -> Path:
    """The library in a zip archive."""
    with zipfile.ZipFile(path, "w") as file:
        for folder, package in PACKAGES.items():
            for each in sorted((ROOT / folder).rglob("*")):
                if each.is_file() and each.suffix != ".pyc":
                    place = Path(package.replace(".", "/"), each.relative_to(ROOT / folder))
                    file.write(each, str(place))
        about = f"Name: tflite-ort\nVersion: {tflite_ort.__version__}\n"
        file.writestr("tflite_ort-1.dist-info/METADATA", about)
    return path


def test_from_a_zip_archive(tmp_path: Path) -> None:
    for name in ("jinja2", "minijinja", "tokenizers"):
        library(name)
    found = []
    for folder, place in (("plain", ROOT), ("zipped", archive(tmp_path / "library.zip"))):
        (tmp_path / folder).mkdir()
        content = bundle(metadata=llm_metadata(template="{{ messages[0]['content'] }}"))
        (tmp_path / folder / "model.litertlm").write_bytes(content)
        code = "import sys; sys.path.insert(0, sys.argv.pop(1)); import program; program.main()"
        done = subprocess.run(
            [sys.executable, "-c", code, str(place), str(tmp_path / folder)],
            env={**os.environ, "PYTHONPATH": str(Path(program.__file__).parent)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert done.stderr.split()[1:] == ["-P", "-m" if folder == "plain" else "-c"]
        found.append(done.stdout.splitlines())
    assert found[1] == found[0]


def test_what_is_not_shipped_is_an_error_of_the_system() -> None:
    with pytest.raises(OSError, match=r"none\.json"):
        shipped("tflite_ort.tuning", "none.json")


def test_pyinstaller_is_told_where_the_hook_is() -> None:
    (entry,) = distribution("tflite-ort").entry_points.select(group="pyinstaller40")
    assert entry.name == "hook-dirs"
    (folder,) = map(Path, entry.load()())
    assert (folder / "hook-tflite_ort.py").is_file()
    hooks = ast.literal_eval((folder / "rthooks.dat").read_text())
    (script,) = hooks["tflite_ort"]
    text = (folder / "rthooks" / script).read_text()
    for module in (
        "tflite_ort.interpreter.device_trial",
        library_process._MODULE,
        litert.litert_worker.__name__,
    ):
        assert f'"{module}"' in text and f"from {module} import main" in text


def test_a_program_of_pyinstaller_is_its_own_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_MEIPASS", "folder", raising=False)
    words = [sys.executable, processes.MARK, "tflite_ort.interpreter.device_trial"]
    assert processes.own_process("tflite_ort.interpreter.device_trial") == words


def test_other_frozen_programs_do_not_start_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that starts itself as if it were Python does so again and again."""
    library("minijinja")
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    with pytest.raises(BridgeError, match="LiteRT cannot be asked: this program cannot start"):
        litert.LitertProcess()
    with pytest.raises(BridgeError, match="template failed: this program cannot start a process"):
        library_process.LibraryProcess("minijinja", "the template", error=GenerationError).ask(
            b"r", {}
        )


def test_plans_of_a_program_are_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program_file = tmp_path / "program"
    program_file.write_bytes(b"1")
    monkeypatch.setattr(keys, "__file__", str(tmp_path / "absent" / "tflite_ort" / "keys.pyc"))
    monkeypatch.setattr(keys, "_PACKAGE", str(tmp_path / "absent" / "tflite_ort"))
    monkeypatch.setattr(sys, "executable", str(program_file))
    monkeypatch.setattr(sys, "argv", [str(program_file)])
    stamps = [keys.library_stamp.__wrapped__() for _ in range(2)]
    program_file.write_bytes(b"22")
    changed = keys.library_stamp.__wrapped__()
    program_file.unlink()
    unknown = [keys.library_stamp.__wrapped__() for _ in range(2)]
    assert stamps[0] == stamps[1] != changed
    assert unknown[0] != unknown[1]
