"""Errors of the command line: they name the file, and advise in options."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.made_bundles import TASK
from tests.models import model_path
from tflite_ort import BudgetExceeded
from tflite_ort.bundles import bundle
from tflite_ort.command.advice import _SAYS, on_the_command_line
from tflite_ort.command.cli import app
from tflite_ort.command.demo import digits_model
from tflite_ort.export import exporting as export
from tflite_ort.generation import vocabulary
from tflite_ort.model import missing_operators
from tflite_ort.schema.file import plain_files

PYTHON = ("resolver=", "Interpreter(", "export_onnx(", "Budgets(", "custom_ops=")
MESSAGES = (
    missing_operators._REGISTER,
    missing_operators._ADVICE,
    "not registered; WellKnownOpResolver has it",
    missing_operators._WELL_KNOWN,
    export._ADVICE,
    str(BudgetExceeded("tables", 2, 1, "the model")),
)


def said(*arguments: object, code: int = 1) -> str:
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.stderr


def test_advice_of_python_becomes_options() -> None:
    for message in MESSAGES:
        told = on_the_command_line(message)
        assert told != message
        assert "--" in told
        assert not any(part in told for part in PYTHON)
    sources = [
        Path(m.__file__).read_text(encoding="utf-8") for m in (plain_files, vocabulary, bundle)
    ]
    used = [p for p, _ in _SAYS if any(p.search(each) for each in (*MESSAGES, *sources))]
    assert len(used) >= len(_SAYS) - 1  # the warning of a resize


def test_an_unresolved_operator_is_advised_an_option() -> None:
    path = model_path("litert__custom_sinh.tflite")
    text = said("run", path)
    assert text.startswith(f"error: {path}: Encountered unresolved custom op: Sinh.")
    assert "--resolver tflite_ort:WellKnownOpResolver has it" in text
    assert text.endswith("Add --resolver tflite_ort:WellKnownOpResolver.\n")
    assert "resolver=" not in text
    text = said("run", model_path("litert__custom_op.tflite"))
    assert "export --custom-ops domain writes it as it is" in text


def test_a_model_of_a_bundle_is_named_by_an_option(tmp_path: Path) -> None:
    path = tmp_path / "two.task"
    path.write_bytes(TASK)
    text = said("run", path)
    assert "the bundle has 2 models; name one with --model; there are 'a_detector.tflite'" in text


def test_a_budget_is_raised_by_an_option() -> None:
    text = said("run", digits_model("int8"), "--budget", "tables=1")
    assert "raise it with --budget tables=" in text


@pytest.mark.parametrize("verb", ["run", "export", "versions", "verify"])
def test_a_damaged_file_is_named(verb: str, tmp_path: Path) -> None:
    path = tmp_path / "broken.tflite"
    path.write_bytes(digits_model("int8").read_bytes()[:3000])
    assert said(verb, path).startswith(f"error: {path}: The model is not a valid Flatbuffer buffer")
