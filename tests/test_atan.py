"""The example of a custom operator from end to end: trained, refused, registered, run, exported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest
from typer.testing import CliRunner, Result

import atan
from tests.models import model_path
from tflite_ort import UnresolvedOperator, WellKnownOpResolver, export_onnx
from tflite_ort.command.cli import app
from tflite_ort.model.resolvers import load_resolver

Array = npt.NDArray[Any]

OFFSET = atan.trained_offset()
NAMES = ["Atan", "ATAN"]
RESOLVERS = [atan.resolver, WellKnownOpResolver()]


@pytest.fixture(params=NAMES)
def model(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "model.tflite"
    path.write_bytes(atan.atan_model(OFFSET, request.param))
    return path


def check(result: Array) -> None:
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, atan.Y, rtol=1e-6)


def test_the_offset_converges() -> None:
    assert abs(OFFSET - 1) < 1e-6


@pytest.mark.parametrize("name", [*NAMES, "atan"])
def test_without_a_registration_it_is_refused(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.tflite"
    path.write_bytes(atan.atan_model(OFFSET, name))
    resolver = atan.resolver if name == "atan" else None
    with pytest.raises(UnresolvedOperator, match=f"unresolved custom op: {name}\\.") as caught:
        atan.run(path, resolver=resolver)
    known = "Interpreter(..., resolver=tflite_ort.WellKnownOpResolver())"
    registered = f"resolver.add_custom('{name}', Registration(...))"
    assert (registered if name == "atan" else known) in str(caught.value)
    assert ("names are case-sensitive" in str(caught.value)) == (name == "atan")


@pytest.mark.parametrize("resolver", RESOLVERS, ids=["registered", "well known"])
@pytest.mark.parametrize("providers", [None, []], ids=["translated", "numpy"])
def test_it_runs(model: Path, providers: list[str] | None, resolver: Any) -> None:
    check(atan.run(model, resolver=resolver, providers=providers))


@pytest.mark.parametrize("resolver", RESOLVERS, ids=["registered", "well known"])
@pytest.mark.parametrize("providers", [None, []], ids=["translated", "numpy"])
def test_the_model_of_tensorflow_s_converter_runs(
    providers: list[str] | None, resolver: Any
) -> None:
    check(atan.run(model_path("tf__atan_custom.tflite"), resolver=resolver, providers=providers))


def test_it_is_exported(model: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    exported = export_onnx(model, path, resolver=atan.resolver)
    assert [node.op_type for node in exported.graph.node] == ["Add", "Atan"]
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (result,) = session.run(None, {"x": atan.X})
    check(result)


def test_the_example_runs_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    atan.main()
    printed = capsys.readouterr().out
    assert "offset 1.000000" in printed
    assert "Encountered unresolved custom op: Atan." in printed
    assert "Add -> Atan" in printed
    assert (tmp_path / "atan.onnx").exists()


# The command line --------------------------------------------------------------------------------


def call(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.fixture
def in_examples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory is where the registration's module is found."""
    monkeypatch.chdir(Path(atan.__file__).parent)


def test_the_command_runs_it(model: Path, tmp_path: Path, in_examples: None) -> None:
    assert call("run", model).exit_code == 1
    output = tmp_path / "out.npz"
    np.savez(tmp_path / "in.npz", x=atan.X)
    result = call(
        *("run", model, "--input", tmp_path / "in.npz", "--output", output),
        *("--resolver", "atan:resolver"),
    )
    assert result.exit_code == 0, result.output
    check(np.load(output)["y"])


def test_the_command_exports_it(model: Path, tmp_path: Path, in_examples: None) -> None:
    path = tmp_path / "out.onnx"
    refused = call("export", model, path)
    assert refused.exit_code == 1
    assert "Encountered unresolved custom op" in refused.stderr
    assert call("export", model, path, "--resolver", "atan:resolver").exit_code == 0
    assert call("export", model, path, "--custom-ops", "domain").exit_code == 0


def test_the_command_shows_where_it_would_run(model: Path, in_examples: None) -> None:
    assert "cannot run: Encountered unresolved custom op" in call("inspect", model).stdout
    shown = call("inspect", model, "--resolver", "atan:resolver").stdout
    (row,) = (line for line in shown.splitlines() if line.casefold().startswith("atan"))
    assert "CPUExecutionProvider" in row


def test_the_command_times_it(model: Path, in_examples: None) -> None:
    once = ("--rounds", "1", "--min-time", "0.001", "--threads", "1", "--no-memory", "--json", "-")
    result = call("bench", model, *once, "--resolver", "atan:resolver")
    assert result.exit_code == 0, result.output
    (record,) = json.loads(result.stdout)["results"]
    assert record["ours"]["invoke_ms"] > 0


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("atan", "'atan' is not module:name"),
        ("no_such_module:resolver", "No module named 'no_such_module'"),
        ("atan:missing", "has no attribute 'missing'"),
        ("atan:X", "'atan:X' is ndarray, not an OpResolver"),
        ("atan:trained_offset", "'atan:trained_offset' is float, not an OpResolver"),
    ],
)
def test_a_reference_to_no_resolver_is_refused(reference: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        load_resolver(reference)


def test_a_function_that_makes_a_resolver_is_called(in_examples: None) -> None:
    assert load_resolver("tflite_ort:WellKnownOpResolver").versions("Atan") == [1]


def test_the_command_refuses_what_is_no_resolver(model: Path, in_examples: None) -> None:
    for command in ("run", "export", "inspect", "bench"):
        result = call(command, model, "--resolver", "atan:X")
        assert result.exit_code == 2, result.output
        assert "--resolver" in result.stderr
