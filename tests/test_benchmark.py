"""Measurements: turns, ratios, differences, records."""

from __future__ import annotations

import gc
import json
import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from benchmarks import op_grid
from tests.models import model_path
from tests.one_op import T, one_op_model
from tflite_ort.command import benchmark
from tflite_ort.command.benchmark import Settings, difference, interleaved, measure
from tflite_ort.command.cli import app
from tflite_ort.command.demo import digits_model
from tflite_ort.schema import AddOptions, Op

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
QUICK = Settings(rounds=2, min_time=0.001, memory=False)


def test_turns_are_interleaved_without_garbage_collection(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, now = list[str](), 0

    def note(name: str, milliseconds: int) -> None:
        nonlocal now
        calls.append(f"{name}{'gc' if gc.isenabled() else ''}")
        now += milliseconds * 1_000_000

    clock = SimpleNamespace(perf_counter_ns=lambda: now, perf_counter=lambda: now / 1e9)
    monkeypatch.setattr(benchmark, "time", clock)
    seconds = interleaved([lambda: note("a", 2), lambda: note("b", 1)], rounds=3, min_time=0.002)
    turns = "".join(name for name in calls if not name.endswith("gc"))
    # Each turn begins with one call that is not measured; two short ones are as long as a long one.
    assert turns == "aabbbbbbaaaabbb"
    assert seconds == [[0.002] * 3, [0.001] * 3]
    assert gc.isenabled()


def test_a_model_is_measured_beside_litert(monkeypatch: pytest.MonkeyPatch) -> None:
    def turns(invokes: Sequence[Callable[[], None]], *_: float) -> list[list[float]]:
        for invoke in invokes:
            invoke()
        return [[0.002, 0.004], [0.006, 0.004]]

    monkeypatch.setattr(benchmark, "interleaved", turns)
    result = measure(digits_model("int8"), 1, Settings(check=True, memory=False))
    assert result.litert is not None
    assert (result.ours.invoke_ms, result.litert.invoke_ms, result.ratio) == (3.0, 5.0, 2.0)
    parts = result.read_ms + result.translate_ms + result.session_ms
    assert parts <= result.ours.load_ms * 1.05
    (found,) = result.differences
    assert found.max_steps is not None
    assert found.max_steps <= 1


def test_a_model_is_measured_alone() -> None:
    settings = Settings(2, 0.001, litert=False, memory=False)
    result = measure(digits_model("float32"), 1, settings)
    assert result.litert is None
    assert result.ratio is None
    assert not result.litert_error


def test_what_litert_cannot_run_is_measured_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise ValueError("no such operator\nand more")

    monkeypatch.setattr(benchmark, "litert_interpreter", refuse)
    result = measure(digits_model("float32"), 1, QUICK)
    assert result.litert is None
    assert result.litert_error == "no such operator"


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
@pytest.mark.parametrize("runtime", ["tflite-ort", "litert"])
def test_memory_is_measured_in_a_process_of_its_own(runtime: str) -> None:
    peak = benchmark.peak_memory(runtime, digits_model("float32"), 1, QUICK)
    assert peak is not None
    assert 0 < peak < 500


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_memory_that_cannot_be_measured_says_why(tmp_path: Path) -> None:
    with pytest.raises(benchmark.BenchmarkError, match=r"of tflite-ort failed: .*none.tflite"):
        benchmark.peak_memory("tflite-ort", tmp_path / "none.tflite", 1, QUICK)


def test_float_difference_is_relative_to_the_largest_magnitude() -> None:
    theirs = np.array([0.0, -4.0, np.nan, np.inf], np.float32)
    ours = np.array([1.0, -4.0, np.nan, np.inf], np.float32)
    found = difference("y", ours, theirs)
    assert found.relative == 0.25
    assert found.exact == 0.75


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.bool_])
def test_integer_difference_is_in_steps(dtype: type) -> None:
    found = difference("y", np.array([0, 0, 1, 1], dtype), np.array([1, 0, 1, 1], dtype))
    assert (found.max_steps, found.mean_steps, found.exact) == (1, 0.25, 0.75)
    assert found.relative is None


def test_extreme_codes_do_not_wrap() -> None:
    found = difference("y", np.array([127], np.int8), np.array([-128], np.int8))
    assert found.max_steps == 255


def test_difference_of_strings_and_of_nothing() -> None:
    words = np.array([b"a", b"b"], object)
    assert difference("y", words, np.array([b"a", b"c"], object)).exact == 0.5
    assert difference("y", np.zeros(0), np.zeros(0)).exact == 1.0


def test_outputs_of_two_shapes_are_refused() -> None:
    with pytest.raises(benchmark.BenchmarkError, match=r"\(2,\) here, \(3,\) in LiteRT"):
        difference("y", np.zeros(2), np.zeros(3))


def bench(*arguments: str) -> str:
    result = CliRunner().invoke(
        app, ["bench", "--rounds", "1", "--min-time", "0.001", "--no-memory", *arguments]
    )
    assert result.exit_code == 0, result.output
    return result.stdout


def test_bench_prints_a_table() -> None:
    output = bench(str(digits_model("int8")), "--check", "--threads", "1,2")
    assert "LiteRT / ours" in output
    assert "load, 2 threads: read " in output
    assert "quanta at most" in output
    assert output.count("int8.tflite\n") == 1  # its name, once
    assert max(map(len, output.splitlines()[:4])) <= 80
    assert [line.split()[0] for line in output.splitlines()[2:4]] == ["1", "2"]


def test_bench_writes_json(tmp_path: Path) -> None:
    model = str(digits_model("float32"))
    printed = json.loads(bench(model, "--json", "-"))
    bench(model, "--json", str(tmp_path / "r.json"))
    written = json.loads((tmp_path / "r.json").read_text())
    for record in (printed, written):
        assert [result["threads"] for result in record["results"]] == [1, 2]
        assert "onnxruntime" in record["packages"]


def test_bench_goes_on_after_a_model_that_cannot_run(tmp_path: Path) -> None:
    future = tmp_path / "future.tflite"
    model = one_op_model(Op.ADD, [T((2,)), T((2,))], [T((2,))], AddOptions(), version=99)
    future.write_bytes(model)
    quick = ["--rounds", "1", "--min-time", "0", "--no-memory", "--no-litert"]
    result = CliRunner().invoke(app, ["bench", str(future), str(digits_model("int8")), *quick])
    assert result.exit_code == 1
    assert "future.tflite" in result.stderr
    assert "int8.tflite" in result.stdout


def grid_model(folder: Path, content: bytes, *inputs: np.ndarray) -> None:
    folder.mkdir()
    (folder / "model.tflite").write_bytes(content)
    np.savez(folder / "inputs.npz", **{f"in_{i}": array for i, array in enumerate(inputs)})


def test_operator_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = np.array([1, 2], np.float32)
    grid_model(
        tmp_path / "add", one_op_model(Op.ADD, [T((2,))] * 2, [T((2,))], AddOptions()), row, row
    )
    future = one_op_model(Op.ADD, [T((2,))] * 2, [T((2,))], AddOptions(), version=99)
    grid_model(tmp_path / "future", future, row, row)
    record = tmp_path / "record.json"
    monkeypatch.setattr(sys, "argv", ["op_grid.py", str(tmp_path), "--json", str(record)])
    op_grid.main()
    printed = capsys.readouterr().out
    assert "100.00%" in printed
    assert "LiteRT does not run 1 more; of these, ours: refused 1" in printed
    found = json.loads(record.read_text())
    assert found["counts"]["export"]["all"] == {"right": 1}
    assert found["not right"] == []


SCRIPTS = [
    ["invoke_overhead.py", "--rounds", "2"],
    ["load_time.py", str(digits_model("int8")), "--repeats", "1"],
    ["accuracy.py", "mlperf-tiny__kws_ref_model", "--inputs", "1"],
]


@pytest.mark.parametrize("arguments", SCRIPTS, ids=lambda arguments: arguments[0])
def test_scripts_run(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if arguments[0] == "accuracy.py":
        model_path(f"{arguments[1]}.tflite")
    record = tmp_path / "record.json"
    monkeypatch.setattr(sys, "argv", [*arguments, "--json", str(record)])
    runpy.run_path(str(BENCHMARKS / arguments[0]), run_name="__main__")
    assert json.loads(record.read_text())["packages"]


def test_others_log_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    """LiteRT says on standard error which delegate it makes."""
    model = digits_model("float32")
    arguments = ["bench", str(model), "--rounds", "1", "--min-time", "0", "--no-memory"]
    assert CliRunner().invoke(app, arguments).exit_code == 0
    assert "INFO" not in "".join(capfd.readouterr())
