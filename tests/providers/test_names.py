"""What people may say in `providers=`, what is there, and what to change."""

from __future__ import annotations

from collections import Counter

import pytest
from typer.testing import CliRunner

from tests.delegated import allocated
from tests.test_partition import chain
from tflite_ort import MissingDelegate
from tflite_ort.command.cli import app
from tflite_ort.command.provider_advice import provider_advice
from tflite_ort.providers import candidates, plugins
from tflite_ort.providers.available import ProviderReport, missing_providers, provider_reports
from tflite_ort.providers.candidates import Candidate
from tflite_ort.providers.delegates import OpResolverType, chosen_delegates, what_to_change
from tflite_ort.providers.names import canonical, known_short_names, providers_of_kind
from tflite_ort.providers.traits import CPU, TRAITS

QNN = "QNNExecutionProvider"


def here(monkeypatch: pytest.MonkeyPatch, *found: Candidate) -> None:
    monkeypatch.setattr(candidates, "candidates", lambda: list(found))


@pytest.mark.parametrize("asked", ["npu", "NPU", ["npu"], [("npu", {})]])
def test_a_kind_of_device_is_the_first_of_it_and_the_cpu(
    monkeypatch: pytest.MonkeyPatch, asked: object
) -> None:
    here(monkeypatch, Candidate(CPU, device="GPU"), Candidate(CPU, device="NPU"))
    first, second = chosen_delegates(OpResolverType.AUTO, (), asked)  # type: ignore[arg-type]
    assert (first.name, first.provider.device) == (CPU, "NPU")
    assert (second.name, second.provider.device) == (CPU, "")
    assert {row.delegate for row in allocated(chain(), providers=asked).delegation()} == {CPU}


def test_a_kind_in_a_list_is_followed_by_what_the_list_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here(monkeypatch, Candidate(CPU, device="GPU"), Candidate(CPU, device="NPU"))
    both = chosen_delegates(OpResolverType.AUTO, (), ["npu", "gpu"])
    assert [each.provider.device for each in both] == ["NPU", "GPU", ""]
    named = chosen_delegates(OpResolverType.AUTO, (), ["gpu", CPU])
    assert [each.provider.device for each in named] == ["GPU", ""]


def test_a_provider_for_a_kind_that_tells_no_device(monkeypatch: pytest.MonkeyPatch) -> None:
    here(monkeypatch, Candidate("CUDAExecutionProvider"))
    assert candidates.first_on("GPU").provider == "CUDAExecutionProvider"
    with pytest.raises(MissingDelegate, match=r"device NPU.*qnn: pip install 'tflite-ort\[qnn\]'"):
        candidates.first_on("NPU")


def test_what_is_for_a_kind_and_what_it_is_called() -> None:
    assert QNN in providers_of_kind("NPU")
    assert "OpenVINOExecutionProvider" in providers_of_kind("NPU")
    assert "CUDAExecutionProvider" in providers_of_kind("GPU")
    assert {"qnn", "tensorrt-rtx", "directml"} <= set(known_short_names())
    assert canonical("qnn") == QNN
    assert canonical("ggml") == "ggml"
    assert canonical("of tomorrow") == "of tomorrow"


def test_what_is_missing_has_a_line_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = dict(missing_providers([ProviderReport(CPU, "onnxruntime", "1", ())]))
    assert lines["qnn"] == "pip install 'tflite-ort[qnn]'"
    assert lines["directml"].endswith("onnxruntime-directml")
    assert "cpu" not in lines
    monkeypatch.setattr(plugins, "plugin_packages", list)
    result = CliRunner().invoke(app, ["providers"])
    assert "directml is not installed: pip uninstall" in result.stdout.replace("\n", " ")
    (cpu,) = (row for row in provider_reports() if row.name == CPU)
    assert (cpu.short, cpu.precisions) == ("cpu", ["full"])


def test_advice_says_what_is_left_why_and_what_to_change() -> None:
    why = f"wrong in {QNN}: it takes fixed sizes alone"
    rows = Counter(
        {
            ("ADD", 1, f"{QNN} (full)", ""): 5,
            ("MUL", 1, f"{CPU}", why): 2,
            ("QUANTIZE", 1, f"{QNN} ({CPU}, full)", "it leaves the codes of inputs"): 1,
            ("SHAPE", 1, "constant", ""): 3,
        }
    )
    first, second, third = provider_advice(rows)
    assert first == f"{QNN} runs 5 of 8 operators."
    assert second.startswith(f"It leaves 2 MUL: {why}. Give the inputs fixed sizes: batch=1")
    assert third.startswith("It leaves 1 QUANTIZE: it leaves the codes")
    assert not list(provider_advice(Counter({("ADD", 1, CPU, ""): 5})))


def test_what_to_change_is_of_the_row() -> None:
    known = [each for row in TRAITS.values() for each in row.wrong if each.instead]
    assert known
    for name, row in TRAITS.items():
        for each in row.wrong:
            assert what_to_change(name, f"wrong in {name}: {each.why}") == each.instead
