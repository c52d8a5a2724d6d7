"""``providers="auto"``: which device is chosen, and what is no candidate."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.delegated import allocated
from tests.one_op import ours
from tests.test_partition import SHAPE, chain
from tflite_ort import (
    BuiltinOpResolver,
    DelegateError,
    DelegateWarning,
    Interpreter,
    Predictor,
    Registration,
)
from tflite_ort.base.records import replace
from tflite_ort.command.cli import app
from tflite_ort.command.demo import digits_model
from tflite_ort.interpreter import device_choice
from tflite_ort.interpreter.device_trial import RELATIVE, off, tried
from tflite_ort.providers import candidates as candidates_module
from tflite_ort.providers.candidates import Candidate, candidates, device_order
from tflite_ort.providers.delegates import of_candidate
from tflite_ort.providers.provider import Device
from tflite_ort.providers.traits import CPU, TRAITS

FAST, SLOW, WRONG = (Candidate(f"{name}ExecutionProvider") for name in ("Fast", "Slow", "Wrong"))
ON_CPU = Candidate(CPU)
# It is compiled into every wheel and takes none of our nodes.
AZURE = Candidate("AzureExecutionProvider")
ANSWERS = {
    FAST: {"seconds": 0.001, "cpu_seconds": 0.004, "operators": [3, 3], "others": []},
    SLOW: {"seconds": 0.003, "cpu_seconds": 0.004, "operators": [2, 3], "others": []},
    WRONG: {"problem": "its 'y' differs from the CPU's by 0.5 of the largest value"},
}
DIGITS = digits_model("float32")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache folder of the test, and nothing that this process found before."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("TFLITE_ORT_CACHE", raising=False)
    monkeypatch.setattr(device_choice, "_FOUND", {})
    return tmp_path / "tflite-ort"


def here(monkeypatch: pytest.MonkeyPatch, *found: Candidate) -> None:
    monkeypatch.setattr(device_choice, "candidates", lambda: list(found))


def answers(monkeypatch: pytest.MonkeyPatch) -> list[Candidate]:
    """Let trials have these answers; the candidates that were tried."""
    asked: list[Candidate] = []

    def answer(request: dict[str, Any], end: float) -> dict[str, Any]:
        asked.append(Candidate(*request["candidate"]))
        return ANSWERS[asked[-1]]

    monkeypatch.setattr(device_choice, "_tried", answer)
    return asked


def choice_of(**arguments: Any) -> device_choice.DeviceChoice:
    return device_choice.device_choice({"model_path": DIGITS, **arguments})


# What is chosen ----------------------------------------------------------------------------------


def test_a_machine_with_the_cpu_alone_says_so(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    here(monkeypatch)
    rows = allocated(chain(), providers="auto").delegation()
    assert {row.provider for row in rows} == {CPU}
    assert {row.choice for row in rows} == {f"{CPU}; there is no other device here"}
    assert {row.reason for row in rows} == {""}
    assert not own_cache.exists()


def test_the_fastest_that_is_right_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, WRONG, SLOW, FAST)
    asked = answers(monkeypatch)
    found = choice_of()
    assert asked == [WRONG, SLOW, FAST]
    assert found.candidate == FAST
    assert found.why == (
        f"{FAST}; tried {WRONG}: its 'y' differs from the CPU's by 0.5 of the largest value; "
        f"{SLOW}: 3 ms an invoke, the CPU 4 ms, with 2 of 3 operators; "
        f"{FAST}: 1 ms an invoke, the CPU 4 ms, with 3 of 3 operators"
    )


@pytest.mark.parametrize("seconds", [0.0039, 0.004, 0.1])
def test_one_that_is_not_faster_is_not_chosen(
    monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    here(monkeypatch, FAST)
    monkeypatch.setitem(ANSWERS[FAST], "seconds", seconds)
    answers(monkeypatch)
    assert choice_of().candidate is None


def test_a_choice_is_kept_for_other_processes(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    here(monkeypatch, FAST)
    asked = answers(monkeypatch)
    first = choice_of()
    monkeypatch.setattr(device_choice, "_FOUND", {})
    assert choice_of() == first
    assert asked == [FAST]
    assert len(list(own_cache.glob("*.json"))) == 1
    here(monkeypatch, FAST, SLOW)  # another device
    choice_of()
    choice_of(num_threads=2)
    choice_of(model_path=digits_model("int8"))
    assert len(asked) == 1 + 3 * 2


def test_without_a_cache_a_choice_is_kept_in_the_process(
    monkeypatch: pytest.MonkeyPatch, own_cache: Path
) -> None:
    here(monkeypatch, FAST)
    asked = answers(monkeypatch)
    assert choice_of(cache=False) == choice_of(cache=False)
    assert asked == [FAST]
    assert not own_cache.exists()


def test_a_damaged_entry_is_made_anew(monkeypatch: pytest.MonkeyPatch, own_cache: Path) -> None:
    here(monkeypatch, FAST)
    asked = answers(monkeypatch)
    first = choice_of()
    (entry,) = own_cache.glob("*.json")
    entry.write_bytes(entry.read_bytes()[:-3])
    monkeypatch.setattr(device_choice, "_FOUND", {})
    assert choice_of() == first
    assert asked == [FAST, FAST]


def test_a_resolver_of_ones_own_cannot_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, FAST)
    resolver = BuiltinOpResolver()
    resolver.add_custom("Double", Registration(function=lambda x: x * 2))
    found = choice_of(resolver=resolver)
    assert found.candidate is None
    assert "a resolver of one's own" in found.why


# Trials ------------------------------------------------------------------------------------------


def test_a_trial_in_a_process_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, ON_CPU)
    interpreter = Interpreter(model_content=DIGITS.read_bytes(), providers="auto")
    interpreter.allocate_tensors()
    rows = interpreter.delegation()
    assert {row.provider for row in rows if row.runs_on == "ort"} == {CPU}
    assert f"with {len(rows)} of {len(rows)} operators" in rows[0].choice


@pytest.mark.parametrize(
    ("code", "seconds", "problem"),
    [
        ("import os; os.abort()", "60", "it ended its process with SIGABRT"),
        ("raise SystemExit(3)", "60", "it ended its process with exit code 3"),
        ("import time; time.sleep(60)", "2", "not ready within [0-2] s"),  # after what comes before
    ],
)
def test_one_that_ends_its_process_or_hangs_is_passed_over(
    monkeypatch: pytest.MonkeyPatch, code: str, seconds: str, problem: str
) -> None:
    here(monkeypatch, FAST)
    monkeypatch.setattr(device_choice, "own_process", lambda module: [sys.executable, "-c", code])
    monkeypatch.setenv(device_choice.SECONDS_VARIABLE, seconds)
    found = choice_of()
    assert found.candidate is None
    assert re.fullmatch(f"{CPU}; tried {FAST}: {problem}", found.why)


def test_after_the_time_no_more_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, FAST, SLOW)
    monkeypatch.setenv(device_choice.SECONDS_VARIABLE, "0")
    assert choice_of().why.count("not tried, for the time was over") == 2


def request(candidate: Candidate, **arguments: Any) -> dict[str, Any]:
    asked = device_choice._request(arguments, "BuiltinOpResolver")
    asked["arguments"]["model_path"] = str(DIGITS)
    text = json.dumps({**asked, "candidate": astuple(candidate)})
    return dict(json.loads(text))


def test_a_provider_that_is_not_there_is_a_problem() -> None:
    (answer,) = tried(request(FAST))
    assert f"Failed to load delegate from {FAST}" in answer["problem"]


def test_one_that_takes_no_operator_is_a_problem() -> None:
    (found,) = tried(request(AZURE))
    assert "ONNX Runtime gave it none of the nodes" in found["problem"]


def test_less_precision_is_tried_too_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the CPU's provider stands for one that has it, and an empty row for its options."""
    row = replace(TRAITS[CPU], precisions={"full": {}, "bf16": {}})
    monkeypatch.setitem(TRAITS, CPU, row)  # type: ignore[arg-type]
    first, second = (json.loads(json.dumps(each)) for each in tried(request(ON_CPU)))
    assert (first["others"], second["seconds"]) == ([], first["seconds"])
    (told,) = second["others"]
    assert "ms with precision='bf16', which is off by 0 of the largest value" in told
    assert len(list(tried(request(ON_CPU, precision="bf16")))) == 1


def test_what_was_told_before_an_end_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, FAST)
    answer = json.dumps({**ANSWERS[FAST], "others": ["2 ms in bf16"]})
    code = f"import os; os.write(1, b'{answer}\\n{{\"seconds'); os.abort()"
    monkeypatch.setattr(device_choice, "own_process", lambda _: (sys.executable, "-c", code))
    found = choice_of()
    assert found.candidate == FAST
    assert found.why.endswith("with 3 of 3 operators, 2 ms in bf16")


# For the process of a trial: the compiler of a provider fails on an operator.
COMPILER_FAILS = """
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import EPFail

class Session(onnxruntime.InferenceSession):
    def __init__(self, content, *arguments, providers=None, **more):
        if providers[0][0] == {provider!r} and {operator!r} in content:
            raise EPFail("its compiler has failed")
        super().__init__(content, *arguments, providers=providers, **more)

onnxruntime.InferenceSession = Session
"""
TRIAL = "from tflite_ort.interpreter import device_trial; device_trial.main()"


@pytest.mark.parametrize(
    ("operator", "problem"),
    [
        (b"Mul", "failed: ONNX Runtime could not load the graph: its compiler has failed"),
        # Of every graph, also of the one by which a provider is checked.
        (b"", "cannot be used: ONNX Runtime could not load the graph: its compiler has failed"),
    ],
)
def test_auto_passes_over_what_cannot_be_compiled(
    monkeypatch: pytest.MonkeyPatch, operator: bytes, problem: str
) -> None:
    """The next candidate is the CPU's provider, of which any time is good enough here."""
    here(monkeypatch, AZURE, ON_CPU)
    monkeypatch.setattr(device_choice, "_LEAST_GAIN", -1e9)
    fault = COMPILER_FAILS.format(provider=AZURE.provider, operator=operator)
    program = [sys.executable, "-c", fault + TRIAL]
    monkeypatch.setattr(device_choice, "own_process", lambda _: program)
    interpreter = allocated(chain(), providers="auto")
    rows = interpreter.delegation()
    assert {row.provider for row in rows} == {CPU}
    said = f"{ON_CPU}; tried {AZURE}: {AZURE} {problem}; {ON_CPU}: "
    assert {row.choice.startswith(said) for row in rows} == {True}, rows[0].choice


def test_what_fails_after_its_trial_goes_to_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, AZURE)
    monkeypatch.setitem(ANSWERS, AZURE, ANSWERS[FAST])
    answers(monkeypatch)
    feeds = [np.full(SHAPE, value, np.float32) for value in (2, 3)]
    with pytest.warns(DelegateWarning, match=f"{AZURE} failed: .* the next delegate takes over"):
        (got,), runners = ours(chain(), feeds, providers="auto")
    assert runners == {"ort"}
    np.testing.assert_array_equal(got, np.full(SHAPE, (2 + 3) * 3 - 2, np.float32))
    with pytest.raises(DelegateError, match=f"{AZURE} was not given"):
        allocated(chain(), providers="auto", strict=True)


@pytest.mark.parametrize(("scale", "wrong"), [(1.0, False), (1.0005, False), (1.002, True)])
def test_floats_may_be_off_by_a_thousandth(scale: float, wrong: bool) -> None:
    interpreter = allocated(DIGITS.read_bytes())
    right = [np.linspace(0, 1, 10, dtype=np.float32)[None]]
    got = [(right[0] * scale).astype(np.float32)]
    assert bool(off(interpreter, right, got, RELATIVE["full"])) == wrong
    assert not off(interpreter, right, got, RELATIVE["bf16"])


@pytest.mark.parametrize(
    ("steps", "wrong"),
    [([0] * 10, False), ([9] + [0] * 9, False), ([2] * 10, True), ([20] + [0] * 9, True)],
)
def test_codes_may_be_off_by_one_in_the_mean(steps: Sequence[int], wrong: bool) -> None:
    interpreter = allocated(digits_model("int8").read_bytes())
    right = [np.zeros((1, 10), np.int8)]
    assert bool(off(interpreter, right, [np.array([steps], np.int8)], 0.0)) == wrong


def test_not_a_number_is_wrong() -> None:
    interpreter = allocated(DIGITS.read_bytes())
    right = [np.ones((1, 10), np.float32)]
    assert "10 NaN" in off(interpreter, right, [right[0] * np.float32(np.nan)], 1.0)


# Candidates --------------------------------------------------------------------------------------


def test_candidates_are_in_the_order_of_onnx_runtime(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [
        Device(CPU, "CPU", "AMD", "1", ""),
        Device("ep", "CPU", "AMD", "2", "/lib/ep.so"),
        Device("ep", "GPU", "Intel", "2", "/lib/ep.so"),
        Device("ep", "GPU", "Intel", "2", "/lib/ep.so"),
        Device("other", "NPU", "AMD", "3", "/lib/other.so"),
    ]
    order = [("ep", "GPU"), ("other", "NPU"), ("ep", "CPU"), (CPU, "CPU")]
    names = [CPU, "AzureExecutionProvider", "OldExecutionProvider"]
    monkeypatch.setattr(candidates_module, "load_plugins", lambda: None)
    monkeypatch.setattr(candidates_module, "devices", lambda: found)
    monkeypatch.setattr(candidates_module, "device_order", lambda: order)
    monkeypatch.setattr(candidates_module, "available_providers", lambda: names)
    assert [str(each) for each in candidates()] == [
        "ep on GPU",
        "other on NPU",
        "ep on CPU",
        "OldExecutionProvider",
    ]
    delegate = of_candidate(candidates()[0])
    assert (delegate.library, delegate.device) == ("/lib/ep.so", "GPU")


def test_the_order_of_onnx_runtime_ends_with_the_cpu() -> None:
    assert device_order()[-1] == (CPU, "CPU")


# Who else takes providers ------------------------------------------------------------------------


def test_one_name_needs_no_list() -> None:
    assert {row.delegate for row in allocated(chain(), providers="cpu").delegation()} == {CPU}


@pytest.mark.parametrize("providers", ["auto", ["cpu"], "cpu", None])
def test_a_predictor_knows_what_is_on_the_cores(
    monkeypatch: pytest.MonkeyPatch, providers: Any
) -> None:
    here(monkeypatch)
    assert Predictor(DIGITS, providers=providers).rows.on_cpu


def test_the_command_line_tells_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, FAST, WRONG)
    monkeypatch.setitem(ANSWERS[FAST], "seconds", 1.0)
    answers(monkeypatch)
    arguments = ["inspect", str(DIGITS), "--provider", "auto"]
    found = CliRunner().invoke(app, arguments)
    assert found.exit_code == 0, found.output
    assert f"auto: {CPU}; tried {FAST}: 1e+03 ms an invoke" in found.stdout
    record = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert record["choice"].startswith(f"{CPU}; tried")


@pytest.mark.parametrize("more", [["--provider", "cpu"], ["--provider-option", "a=b"]])
def test_auto_stands_alone_on_the_command_line(more: list[str]) -> None:
    arguments = ["run", str(DIGITS), "--provider", "auto", *more]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "'auto' chooses the provider" in result.output


def test_verify_tries_once(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, SLOW)
    monkeypatch.setitem(ANSWERS[SLOW], "seconds", 1.0)
    asked = answers(monkeypatch)
    arguments = ["verify", str(DIGITS), "--provider", "auto", "--runtime", "interpreter"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert asked == [SLOW]
