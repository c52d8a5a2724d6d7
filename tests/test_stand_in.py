"""Programs that find this library under another name, though nobody touches their code."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import tflite_ort
from tests.litert_models import permute_float
from tflite_ort.command.cli import app
from tflite_ort.litert import waiting
from tflite_ort.litert.environment import install_as_told
from tflite_ort.litert.environment import told as told_arguments
from tflite_ort.litert.install import TFLITE_VERSION

# What it finds, what that gives, and how it was called; then the same of a process that it starts.
PROGRAM = """
import json, subprocess, sys
import numpy as np
from {name}.interpreter import Interpreter

interpreter = Interpreter(sys.argv[1])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.float32([[1, 2, 3, 4]]))
interpreter.invoke()
found = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
bases = [each.__module__ for each in Interpreter.__mro__]
kinds = bases.count("tflite_ort.interpreter.interpreter")  # 2 where it has arguments of its own
print(json.dumps([kinds, found.tolist(), sys.argv[2:], __name__]))
if sys.argv[2:]:
    subprocess.run([sys.executable, __file__, sys.argv[1]], check=True)
"""
REVERSED = [[4.0, 3.0, 2.0, 1.0]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m.tflite").write_bytes(permute_float())
    (tmp_path / "service.py").write_text(PROGRAM.format(name="tflite_runtime"))
    (tmp_path / "other.py").write_text(PROGRAM.format(name="ai_edge_litert"))
    return tmp_path


def run(*command: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TFLITE_ORT")}
    return subprocess.run(
        command, cwd=cwd, env={**environment, **variables}, capture_output=True, text=True
    )


def run_as(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "tflite_ort", "as", *command, cwd=cwd)


def told(done: subprocess.CompletedProcess[str]) -> list[Any]:
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_script_and_the_processes_that_it_starts(folder: Path) -> None:
    arguments = ["m.tflite", "--threads", "-h", "a b"]
    done = run_as("--threads", "2", "tflite_runtime", "service.py", *arguments, cwd=folder)
    assert told(done) == [
        [2, REVERSED, arguments[1:], "__main__"],
        [2, REVERSED, [], "__main__"],
    ]


def test_a_module_of_the_folder_and_two_names(folder: Path) -> None:
    names = "ai_edge_litert tflite_runtime"
    done = run_as(names, "-m", "other", "m.tflite", cwd=folder)
    assert told(done) == [[1, REVERSED, [], "__main__"]]


def test_a_command_and_its_exit_code(folder: Path) -> None:
    command = folder / "command"
    command.write_text(f"#!{sys.executable}\nimport sys, tflite_runtime\nsys.exit(7)\n")
    command.chmod(0o755)
    assert run_as("tflite_runtime", "./command", cwd=folder).returncode == 7


def test_the_sitecustomize_that_is_hidden_runs_too(folder: Path) -> None:
    (folder / "sitecustomize.py").write_text("print('mine')")
    command = [sys.executable, "-m", "tflite_ort", "as", "tflite_runtime"]
    done = run(*command, "-c", "import tflite_runtime", cwd=folder, PYTHONPATH=str(folder))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["mine", "mine"], "of the command itself, and of the program"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tflite_runtim", "x.py"], "did you mean 'tflite_runtime'"),
        (["tflite_runtime", "--threads", "2", "x.py"], "options come before NAME"),
        (["tflite_runtime", "nothing.py"], "no such program"),
        (["--provider", "nothing", "tflite_runtime", "x.py"], "no provider 'nothing'"),
        (["--provider-option", "a=b", "tflite_runtime", "x.py"], "is of no --provider"),
    ],
)
def test_what_cannot_be_is_refused_before_the_program_runs(
    folder: Path, arguments: list[str], message: str
) -> None:
    (folder / "x.py").write_text("print('ran')")
    done = CliRunner().invoke(app, ["as", *arguments])
    said = " ".join(done.stderr.replace("│", " ").split())
    assert done.exit_code in (1, 2) and not done.stdout, done
    assert message in said


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Packages that are waited for; afterwards all is as before."""
    path, modules = list(sys.meta_path), dict(sys.modules)
    yield monkeypatch
    sys.meta_path[:] = path
    for name in sys.modules.keys() - modules.keys():
        if name.partition(".")[0] in ("tflite_runtime", "tensorflow", "made_package"):
            del sys.modules[name]


def test_nothing_happens_before_the_import(waits: pytest.MonkeyPatch) -> None:
    waits.setenv(waiting.VARIABLE, "tflite_runtime tensorflow.lite")
    waiting.wait()
    waiting.wait()  # as a .pth file and `tflite-ort as` together
    assert not {"tflite_runtime", "tensorflow"} & sys.modules.keys()
    assert importlib.util.find_spec("json") is not None
    module = importlib.import_module("tflite_runtime.interpreter")
    assert module.Interpreter is tflite_ort.Interpreter
    assert importlib.import_module("tflite_runtime").__version__ == TFLITE_VERSION
    assert importlib.import_module("tensorflow").lite.Interpreter is tflite_ort.Interpreter


def test_a_package_that_is_there_is_imported_once(
    waits: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As TensorFlow: what is imported is the package itself, with its own spec, and ours inside."""
    (tmp_path / "tensorflow" / "lite").mkdir(parents=True)
    (tmp_path / "tensorflow" / "__init__.py").write_text(
        "import builtins, tensorflow.lite\nbuiltins.times = getattr(builtins, 'times', 0) + 1\n"
    )
    (tmp_path / "tensorflow" / "lite" / "__init__.py").write_text("TFLiteConverter = 'kept'")
    waits.syspath_prepend(tmp_path)
    waits.setenv(waiting.VARIABLE, "tensorflow.lite")
    waits.setattr("builtins.times", 0, raising=False)
    waiting.wait()
    tensorflow = importlib.import_module("tensorflow")
    assert importlib.import_module("builtins").times == 1  # type: ignore[attr-defined]
    assert tensorflow.__spec__ is not None and tensorflow.__spec__.origin == tensorflow.__file__
    assert tensorflow.lite.Interpreter is tflite_ort.Interpreter
    assert tensorflow.lite.TFLiteConverter == "kept"


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"TFLITE_ORT_THREADS": "many"}, "TFLITE_ORT_THREADS='many' is no number"),
        ({"TFLITE_ORT_THREADS": "0"}, "num_threads"),
        ({"TFLITE_ORT_HYBRID": "no"}, "hybrid"),
        ({"TFLITE_ORT_PRECISION": "no"}, "precision"),
        ({"TFLITE_ORT_PROVIDER": "nothing"}, "no provider 'nothing'"),
        ({"TFLITE_ORT_PROVIDER": "cpu", "TFLITE_ORT_PROVIDER_OPTION": "x"}, "KEY=VALUE"),
    ],
)
def test_variables_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises((ValueError, tflite_ort.DelegateError), match=message):
        install_as_told("tflite_runtime")
    assert "tflite_runtime" not in sys.modules


def test_variables_become_arguments() -> None:
    variables = {
        "TFLITE_ORT_PROVIDER": "cuda 'my plugin.so'",
        "TFLITE_ORT_PROVIDER_OPTION": "device_id=1 'my plugin.so:key=a b'",
        "TFLITE_ORT_THREADS": "3",
        "TFLITE_ORT_HYBRID": "float",
        "TFLITE_ORT_PRECISION": "",
    }
    assert told_arguments(variables) == {
        "providers": [("cuda", {"device_id": "1"}), ("my plugin.so", {"key": "a b"})],
        "num_threads": 3,
        "hybrid": "float",
    }
    assert told_arguments({}) == {}


@pytest.mark.stand_in
def test_the_distribution(folder: Path) -> None:
    version = importlib.metadata.version("tflite-runtime")
    assert version.partition("+")[0] == "2.14.0"
    done = run(sys.executable, "service.py", "m.tflite", "x", cwd=folder, TFLITE_ORT_THREADS="2")
    assert [each[0] for each in told(done)] == [2, 2]
    both = {"TFLITE_ORT_INSTALL_AS": "tflite_runtime ai_edge_litert"}
    assert told(run(sys.executable, "service.py", "m.tflite", cwd=folder, **both))[0][0] == 1
    assert told(run(sys.executable, "other.py", "m.tflite", cwd=folder, **both))[0][0] == 1
    wanted = ["tflite-runtime==2.14.0", "tflite-runtime>=2.8,<3"]
    done = run(
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--no-index", *wanted),
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.stand_in
def test_a_process_that_needs_nothing_imports_nothing() -> None:
    code = "import sys; print([name for name in sys.modules if name.startswith('tflite')])"
    done = run(sys.executable, "-c", code, cwd=Path.cwd().parent)
    assert done.stdout.strip() == "[]"
