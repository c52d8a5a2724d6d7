"""`verify`: verdicts, planted faults, files of others, interruption, and the command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from tests.made_bundles import adding, task
from tests.models import model_path, newer_model_path
from tests.verification.fault_kinds import halves
from tests.verification.faults import operators, plant
from tflite_ort import Interpreter, export_onnx, verify
from tflite_ort.command.cli import app
from tflite_ort.comparison.differences import Tolerance
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.export.check import ExportMismatch, check_export
from tflite_ort.schema import read_model, write_model
from tflite_ort.verification import Random, Verdict, VerificationError
from tflite_ort.verification.comparing import Comparing
from tflite_ort.verification.html import to_html
from tflite_ort.verification.litert import LitertError, LitertProcess
from tflite_ort.verification.onnx_runtime import MismatchedFile

QUANTISED = "mlperf-tiny__kws_ref_model.tflite"
FLOAT = "tflite2onnx__conv.float32.tflite"
HYBRID = "tf__lstm_seq_dr.tflite"
STATEFUL = "pypi-pymicro-wakeword__hey_jarvis.tflite"
ONE, STRICT = Random(samples=1), Tolerance(relative=1e-4)


def faulty(name: str, operator: str, seed: int) -> onnx.ModelProto:
    path = model_path(name)
    model = export_onnx(path)
    arrays = random_inputs(Interpreter(path).get_input_details(), 0).values()
    names = [each.name for each in model.graph.input]
    print(f"seed {seed}")
    feeds = dict(zip(names, arrays, strict=True))
    fault = plant(model, operators(model)[operator], feeds, np.random.default_rng(seed))
    assert fault is not None
    print(fault.what)
    return fault.model


def test_a_network_that_is_exact() -> None:
    report = verify(model_path(QUANTISED), inputs=ONE)
    assert report.verdict is Verdict.EXACT and report.exit_code == 0 and report.complete
    assert [each.runtime for each in report.runtimes] == ["interpreter", "export"]
    for result in report.runtimes:
        assert result.named is None and all(op.within for op in result.operators)
        assert not any(tensor.unreadable for tensor in result.tensors)
        (output,) = result.outputs
        assert output.scores is not None and output.scores.top1 == 1


@pytest.mark.parametrize("operator", ["CONV_2D_0", "DEPTHWISE_CONV_2D_1", "FULLY_CONNECTED_11"])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_planted_fault_is_named(operator: str, seed: int) -> None:
    model = faulty(QUANTISED, operator, seed)
    (result,) = verify(model_path(QUANTISED), onnx_file=model, inputs=ONE).runtimes
    assert result.named is not None and result.named.label == operator
    assert result.named.isolated is not None and not result.named.isolated.exact
    assert operator in result.reason


def test_hybrid_layers_are_named_with_what_is_known_of_them() -> None:
    """The product of floats is another way to round: with it LiteRT gives these outputs."""
    report = verify(model_path(HYBRID), runtimes=["interpreter"], inputs=ONE, tolerance=STRICT)
    named = report.runtimes[0].named
    assert report.verdict is Verdict.KNOWN and report.exit_code == 0
    assert named is not None and named.rounds_otherwise
    assert named.name == "FULLY_CONNECTED" and "hybrid" in named.known
    assert str(report).splitlines()[1:] == [
        f"interpreter: a known difference. {report.runtimes[0].reason}"
    ]


def test_the_kernels_equal_litert_s_reference_kernels() -> None:
    report = verify(
        model_path(QUANTISED), runtimes=["kernels"], reference="litert-reference", inputs=ONE
    )
    assert report.verdict is Verdict.EXACT and report.reference == "litert-reference"


def test_state_over_steps() -> None:
    report = verify(model_path(STATEFUL), inputs=Random(1, steps=4))
    for result in report.runtimes:
        assert all(len(output.steps) == 4 for output in result.outputs)
        assert result.verdict is not Verdict.OFF, result.reason


def test_a_file_with_other_names_is_compared_by_outputs_alone(tmp_path: Path) -> None:
    model = export_onnx(model_path(FLOAT))
    names = {name: f"v{i}" for i, name in enumerate(_values(model))}
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for value in (*model.graph.input, *model.graph.output):
        value.name = names[value.name]
    onnx.save(model, tmp_path / "other.onnx")
    report = verify(model_path(FLOAT), onnx_file=tmp_path / "other.onnx", inputs=ONE)
    assert report.verdict is not Verdict.OFF
    assert report.runtimes[0].runtime == "other.onnx"


def _values(model: onnx.ModelProto) -> list[str]:
    made = [name for node in model.graph.node for name in node.output]
    return [*(each.name for each in model.graph.input), *made]


def test_a_map_says_which_value_is_which_tensor() -> None:
    model = export_onnx(model_path(QUANTISED))
    tensor = read_model(model_path(QUANTISED)).subgraphs[0].operators[1].outputs[0]
    old = next(
        n.output[0] for n in model.graph.node if n.name == "DEPTHWISE_CONV_2D_1/QuantizeLinear"
    )
    for node in model.graph.node:
        node.input[:] = ["renamed" if name == old else name for name in node.input]
        node.output[:] = ["renamed" if name == old else name for name in node.output]
        node.input[:] = [n.replace(old, "gone") if n.startswith(old) else n for n in node.input]
        node.output[:] = [n.replace(old, "gone") if n.startswith(old) else n for n in node.output]
    for mapping, found in (({}, False), ({"renamed": tensor}, True)):
        report = verify(model_path(QUANTISED), onnx_file=model, mapping=mapping, inputs=ONE)
        row = next(each for each in report.runtimes[0].tensors if each.index == tensor)
        assert (row.accumulated is not None) is found
        assert found or "fused away or renamed" in row.unreadable


def test_a_file_of_another_model_is_refused(tmp_path: Path) -> None:
    two = export_onnx(model_path("tflite2onnx__add.float32.tflite"))
    with pytest.raises(MismatchedFile, match="the file has 2 inputs, the model 1"):
        verify(model_path(QUANTISED), onnx_file=two, inputs=ONE)
    (tmp_path / "no.onnx").write_bytes(b"\xff" * 99)
    with pytest.raises(MismatchedFile, match="no ONNX file"):
        verify(model_path(QUANTISED), onnx_file=tmp_path / "no.onnx", inputs=ONE)


def test_a_model_without_outputs_is_judged_by_its_operators() -> None:
    """Nothing differs where there is nothing; an operator that is off makes it off."""
    whole = read_model(model_path(HYBRID))
    graph = replace(whole.subgraphs[0], outputs=())
    cut = replace(whole, subgraphs=(graph, *whole.subgraphs[1:]), signature_defs=())
    empty = replace(cut, subgraphs=(replace(graph, inputs=(), operators=(), tensors=()),))
    for model, verdict in ((empty, Verdict.EXACT), (cut, Verdict.OFF)):
        report = verify(write_model(model), runtimes=["interpreter"], inputs=ONE, tolerance=STRICT)
        assert report.verdict is verdict
        assert "The model has no output" in report.runtimes[0].reason


def test_nothing_of_it_is_kept_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each operator is run as a model of its own; nobody opens these again."""
    monkeypatch.setenv("TFLITE_ORT_CACHE", str(tmp_path / "cache"))
    verify(model_path("mlperf-tiny__kws_ref_model.tflite"), runtimes=("interpreter", "kernels"))
    assert not list(tmp_path.rglob("*"))


def test_unknown_runtimes_are_refused() -> None:
    with pytest.raises(VerificationError, match="no runtime 'tf'; there are interpreter"):
        verify(model_path(FLOAT), runtimes=["tf"])


def test_an_interrupt_leaves_what_was_done() -> None:
    def told(what: str, done: int, count: int) -> None:
        if what == "export: operators" and done == 3:
            raise KeyboardInterrupt

    report = verify(model_path(QUANTISED), inputs=ONE, progress=told)
    assert not report.complete and len(report.runtimes) == 2
    first, second = report.runtimes
    assert all(op.isolated for op in first.operators)
    assert [op.index for op in second.operators if op.isolated] == [0, 1, 2]


def test_a_model_that_ends_litert_ends_a_process_of_its_own() -> None:
    process = LitertProcess()
    try:
        running = process._process
        assert running is not None
        running.kill()
        model = read_model(model_path(FLOAT))
        with pytest.raises(LitertError, match="LiteRT ended with SIGKILL"):
            process.load(model, "default")
        process.load(model, "default")
    finally:
        process.close()


def test_the_report_as_json() -> None:
    record = json.loads(verify(model_path(QUANTISED), inputs=ONE).to_json())
    assert record["verdict"] == "exact" and record["runtimes"][1]["runtime"] == "export"
    operator = record["runtimes"][0]["operators"][0]
    assert operator["name"] == "CONV_2D" and operator["options"]["padding"] == "SAME"
    assert operator["isolated"]["quanta"] == 0


def test_the_report_as_a_page() -> None:
    report = verify(model_path(FLOAT), runtimes=["interpreter"], inputs=ONE)
    assert report.to_html() == to_html(report) and report.model in report.to_html()


# The command -------------------------------------------------------------------------------------


def test_the_command_names_extracts_and_shows_the_difference_again(tmp_path: Path) -> None:
    out, told = tmp_path / "part.tflite", tmp_path / "told.json"
    arguments = ["--runtime", "interpreter", "--tolerance", "1e-4", "--samples", "1"]
    given = ["verify", str(model_path(HYBRID)), *arguments, "--extract", str(out)]
    done = CliRunner().invoke(app, [*given, "--json", str(told)])
    assert done.exit_code == 0 and "FULLY_CONNECTED_2 rounds otherwise" in done.output
    assert json.loads(told.read_text())["runtimes"][0]["first"] is not None
    again = ["verify", str(out), *arguments[:4], "--input", str(out.with_suffix(".npz"))]
    assert "FULLY_CONNECTED_0 rounds otherwise" in CliRunner().invoke(app, again).output


def test_the_command_says_once_what_is_known_of_several_operators() -> None:
    model = str(newer_model_path("vit_dyn8.tflite"))
    given = ["verify", model, "--runtime", "interpreter", "--reference", "kernels"]
    said = CliRunner().invoke(app, [*given, "--samples", "1"]).output
    assert said.count("known of ") == 1 and said.count("FULLY_CONNECTED_") > 2
    assert said.count("TFLite rounds each row of activations") == 1


@pytest.mark.parametrize("installed", [True, False])
def test_the_command_says_what_litert_would_add(
    installed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rounding is nothing that the kernels alone can judge."""
    for place in ("command.verify_tables", "verification.judgement", "verification.verifying"):
        monkeypatch.setattr(f"tflite_ort.{place}.litert_installed", lambda: installed)
    model = tmp_path / "halves.tflite"
    model.write_bytes(halves())
    given = ["verify", str(model), "--runtime", "interpreter", "--reference", "kernels"]
    done = CliRunner().invoke(app, [*given, "--samples", "1"])
    assert done.exit_code == 0 and "interpreter: inconclusive." in done.output
    assert ("nstall ai-edge-litert" in done.output) is not installed


def test_a_damaged_name_in_an_onnx_file_is_told_escaped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """ONNX Runtime's error has the bytes of the name, which are no UTF-8."""
    path = model_path(FLOAT)
    content, kind = export_onnx(path).SerializeToString(), b"\x22\x04Conv"
    assert kind in content
    damaged = tmp_path / "damaged.onnx"
    damaged.write_bytes(content.replace(kind, b"\x22\x04C\x88nv"))
    result = CliRunner().invoke(app, ["verify", str(path), "--onnx", str(damaged)])
    assert result.exit_code == 4
    assert "could not load it" in result.output and r"C\x88nv" in result.output
    assert capfd.readouterr().out == ""


def test_the_part_of_an_onnx_file_shows_the_difference_again(tmp_path: Path) -> None:
    out, file = tmp_path / "part.tflite", tmp_path / "faulty.onnx"
    onnx.save(faulty(QUANTISED, "DEPTHWISE_CONV_2D_3", 1), file)
    given = ["verify", str(model_path(QUANTISED)), "--onnx", str(file), "--samples", "1"]
    CliRunner().invoke(app, [*given, "--extract", str(out)])
    part = ["--onnx", str(out.with_suffix(".onnx")), "--input", str(out.with_suffix(".npz"))]
    told = tmp_path / "told.json"
    again = CliRunner().invoke(app, ["verify", str(out), *part, "--json", str(told)])
    assert again.exit_code == 4, again.output
    (operator,) = json.loads(told.read_text())["runtimes"][0]["operators"]
    assert operator["name"] == "DEPTHWISE_CONV_2D" and operator["within"] is False


@pytest.mark.parametrize("option", ["--profile", "--no-profile"])
def test_the_command_times_operators(option: str, tmp_path: Path) -> None:
    told = tmp_path / "told.json"
    given = [str(model_path(FLOAT)), "--runtime", "interpreter", "--json", str(told), option]
    done = CliRunner().invoke(app, ["verify", *given])
    assert done.exit_code == 0 and ("slowest operators" in done.output) == (option == "--profile")
    (operator,) = json.loads(told.read_text())["runtimes"][0]["operators"]
    assert (operator["milliseconds"] is not None) == (option == "--profile")


def test_an_interrupted_command_writes_what_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Comparing, "_run_operators", interrupted)
    told = tmp_path / "told.json"
    done = CliRunner().invoke(app, ["verify", str(model_path(FLOAT)), "--json", str(told)])
    assert done.exit_code == 130 and "interrupted: this is what was done so far" in done.output
    assert json.loads(told.read_text())["complete"] is False


def test_the_command_cuts_a_part_out(tmp_path: Path) -> None:
    out = tmp_path / "part.tflite"
    done = CliRunner().invoke(
        app, ["extract", str(model_path(QUANTISED)), str(out), "--from", "input_1"]
    )
    assert done.exit_code == 0 and "1 input, 1 output" in done.output
    Interpreter(out).allocate_tensors()
    refused = CliRunner().invoke(
        app, ["extract", str(model_path(QUANTISED)), str(out), "--to", "x"]
    )
    assert refused.exit_code == 1 and "no tensor named 'x'" in refused.output


def test_export_check(tmp_path: Path) -> None:
    out = tmp_path / "model.onnx"
    done = CliRunner().invoke(app, ["export", str(model_path(QUANTISED)), str(out), "--check"])
    assert done.exit_code == 0 and "the same as the interpreter's" in done.output
    export_onnx(model_path(FLOAT), tmp_path / "f.onnx", check=True)


def test_a_network_that_amplifies_passes_the_check() -> None:
    export_onnx(model_path("npm-mediapipe-holistic__pose_landmark_lite.tflite"), check=True)


def test_an_export_that_is_off_gets_another_name(tmp_path: Path) -> None:
    out = tmp_path / "model.onnx"
    model = faulty(QUANTISED, "CONV_2D_0", 3)
    onnx.save(model, out)
    with pytest.raises(ExportMismatch, match="differs from the interpreter's by") as refused:
        check_export(model, out, read_model(model_path(QUANTISED)))
    assert refused.value.kept == tmp_path / "model.off.onnx"
    assert refused.value.kept.exists() and not out.exists()


def test_a_model_of_a_bundle_is_compared(tmp_path: Path) -> None:
    path = tmp_path / "two.task"
    path.write_bytes(task({"one.tflite": adding(1), "two.tflite": adding(2)}))
    arguments = ["verify", str(path), "--runtime", "kernels", "--json"]
    outcome = CliRunner().invoke(app, [*arguments, "--model", "two"])
    assert outcome.exit_code == 0, outcome.output
    assert json.loads(outcome.stdout)["runtimes"]
    unnamed = CliRunner().invoke(app, arguments)
    assert unnamed.exit_code == 1
    assert "one.tflite" in unnamed.output and "two.tflite" in unnamed.output
