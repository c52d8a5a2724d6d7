"""How precisely providers compute floats: full precision unless less is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.delegated import allocated
from tests.generation.models import bundle
from tests.models import model_path
from tests.one_op import ours
from tests.providers.samples import CUDA, OPENVINO
from tests.test_partition import chain
from tflite_ort import (
    ExecutionProviderDelegate,
    Interpreter,
    LanguageModel,
    MissingDelegate,
    Predictor,
    tasks,
)
from tflite_ort.cache.keys import settings_of
from tflite_ort.command.cli import app
from tflite_ort.providers import native_libraries, precision, settings
from tflite_ort.providers.delegates import OpResolverType, chosen_delegates
from tflite_ort.providers.precision import OWN_OPTIONS, PRECISIONS, options_in, precision_of
from tflite_ort.providers.processor import processor
from tflite_ort.providers.provider import Provider
from tflite_ort.providers.provider_traits import ProviderTraits
from tflite_ort.providers.traits import CPU, TRAITS
from tflite_ort.schema.file.budgets import DEFAULT
from tflite_ort.tasks import vision

HINT = "INFERENCE_PRECISION_HINT"
TENSORRT, QNN = "TensorrtExecutionProvider", "QNNExecutionProvider"
# Of each provider, an option that is there in full precision.
IN_FULL: Mapping[str, tuple[str, Any]] = {
    CUDA: ("use_tf32", "0"),
    QNN: ("enable_htp_fp16_precision", "0"),
    TENSORRT: ("trt_fp16_enable", "0"),
    "MIGraphXExecutionProvider": ("migraphx_fp16_enable", "0"),
    "CoreMLExecutionProvider": ("ModelFormat", "MLProgram"),
    "CANNExecutionProvider": ("precision_mode", "must_keep_origin_dtype"),
    "ggml": ("weights", "f32"),
}


@pytest.fixture(autouse=True)
def no_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_libraries, "load_nvidia_libraries", lambda: None)
    for row in TRAITS.values():
        for name in row.environment:
            monkeypatch.setenv(name, "set by a test")  # which takes away what the test sets
            monkeypatch.delenv(name)


def options(provider: str, given: Mapping[str, Any] | None = None, **more: Any) -> dict[str, str]:
    """What a session of a provider gets."""
    ((name, found),) = settings.chosen(Provider(provider, given or {}, **more), None, 0) or ()  # type: ignore[arg-type]
    assert name == provider
    return found


# What a precision means --------------------------------------------------------------------------


@pytest.mark.parametrize("provider", IN_FULL)
def test_it_is_full_unless_less_is_asked_for(provider: str) -> None:
    option, value = IN_FULL[provider]
    assert options(provider)[option] == value
    assert options(provider, {option: "mine"})[option] == "mine"


def test_openvino_is_told_so_for_every_device() -> None:
    told = json.loads(options(OPENVINO)["load_config"])
    assert told == {device: {HINT: "f32"} for device in ("CPU", "GPU", "AUTO")}
    assert json.loads(options(OPENVINO, precision="bf16")["load_config"])["CPU"] == {HINT: "bf16"}
    assert options(f"{OPENVINO}.AUTO") == options(OPENVINO)


@pytest.mark.parametrize("in_a_file", [False, True])
def test_what_a_document_says_comes_first(tmp_path: Path, in_a_file: bool) -> None:
    text = json.dumps({"CPU": {HINT: "bf16", "NUM_STREAMS": "1"}, "NPU": {"TURBO": "YES"}})
    if in_a_file:
        (tmp_path / "config.json").write_text(text)
    given = str(tmp_path / "config.json") if in_a_file else text
    told = json.loads(options(OPENVINO, {"load_config": given})["load_config"])
    assert told["CPU"] == {HINT: "bf16", "NUM_STREAMS": "1"}
    assert (told["GPU"], told["NPU"]) == ({HINT: "f32"}, {"TURBO": "YES"})


@pytest.mark.parametrize("given", ["no such file", "{broken", "[1]", ""])
def test_a_document_that_is_none_is_left_to_the_provider(given: str) -> None:
    assert options(OPENVINO, {"load_config": given})["load_config"] == given


def test_a_device_that_lacks_it_is_refused() -> None:
    on_npu = {"device_type": "NPU"}
    with pytest.raises(MissingDelegate, match=r"on NPU has no precision 'full'; it has 'fp16'"):
        options(OPENVINO, on_npu)
    assert json.loads(options(OPENVINO, on_npu, precision="fp16")["load_config"])["NPU"]
    with pytest.raises(MissingDelegate, match=r"on GPU has no precision 'bf16'; it has 'full', "):
        options_in(OPENVINO, "bf16", {}, "GPU")


def test_what_has_no_option_is_a_variable() -> None:
    options(TENSORRT, precision="fp16")
    assert "NVIDIA_TF32_OVERRIDE" not in os.environ
    options(TENSORRT)
    assert os.environ["NVIDIA_TF32_OVERRIDE"] == "0"


def test_a_variable_that_is_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NVIDIA_TF32_OVERRIDE", "1")
    options(TENSORRT)
    assert os.environ["NVIDIA_TF32_OVERRIDE"] == "1"


def test_rows_have_precisions_that_there_are() -> None:
    for row in TRAITS.values():
        assert set(row.precisions) <= set(PRECISIONS)
        for some in row.precisions_on.values():
            assert set(some) <= set(row.precisions)


@pytest.mark.parametrize(
    ("provider", "asked", "given", "found"),
    [
        (CUDA, "full", {}, "full"),
        (CUDA, "full", {"use_tf32": 1}, OWN_OPTIONS),
        (OPENVINO, "full", {"load_config": {"CPU": {"NUM_STREAMS": "1"}}}, "full"),
        (OPENVINO, "full", {"load_config": {"CPU": {HINT: "bf16"}}}, OWN_OPTIONS),
        (OPENVINO, "bf16", {}, "bf16"),
        (QNN, "full", {"enable_htp_fp16_precision": "1"}, "fp16"),
        (TENSORRT, "full", {"trt_bf16_enable": "1"}, "bf16"),
        (TENSORRT, "bf16", {"trt_fp16_enable": "1"}, OWN_OPTIONS),
        (CPU, "full", {}, "full"),
        ("a provider of tomorrow", "full", {}, ""),
    ],
)
def test_what_options_amount_to(
    provider: str, asked: str, given: Mapping[str, Any], found: str
) -> None:
    texts = {k: json.dumps(v) if isinstance(v, dict) else v for k, v in given.items()}
    assert precision_of(provider, asked, texts) == found


# Which delegates have it -------------------------------------------------------------------------

BF16 = ProviderTraits(precisions={"full": {}, "bf16": {"bits": "16"}})
AZURE = "AzureExecutionProvider"  # in every wheel; it takes no operator


def delegates(*providers: Any, asked: str = "bf16") -> list[Any]:
    return chosen_delegates(OpResolverType.AUTO, (), list(providers), asked)


def test_the_cpu_after_another_stays_in_full_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRAITS, AZURE, BF16)  # type: ignore[arg-type]
    assert [each.precision for each in delegates(AZURE, CPU)] == ["bf16", "full"]


def test_a_delegate_keeps_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(TRAITS, AZURE, BF16)  # type: ignore[arg-type]
    own = ExecutionProviderDelegate(AZURE, precision="bf16")
    assert delegates(own, CPU, asked="full")[0].precision == "bf16"
    with pytest.raises(MissingDelegate, match=f"{CPU} has no precision 'bf16'; it has 'full'"):
        delegates(ExecutionProviderDelegate(CPU, precision="bf16"), asked="full")


def test_none_that_has_it_is_an_error() -> None:
    for given in ([], [CPU]):
        with pytest.raises(MissingDelegate, match=f"{CPU} has no precision 'bf16'; it has 'full'"):
            delegates(*given)
    with pytest.raises(MissingDelegate, match=f"{AZURE} has no precision 'bf16'; it is not known"):
        delegates(AZURE, CPU)
    with pytest.raises(MissingDelegate):
        Interpreter(model_content=chain(), precision="fp16")
    with pytest.raises(MissingDelegate):
        Predictor(chain(), precision="fp16")


@pytest.mark.parametrize("providers", [None, "auto", [CPU]])
def test_a_name_that_is_none(providers: Any) -> None:
    with pytest.raises(ValueError, match="precision must be 'full', 'bf16', 'fp16', got 'half'"):
        Interpreter(model_content=chain(), providers=providers, precision="half")


def test_it_is_part_of_the_key_of_the_cache() -> None:
    keys = {
        settings_of([ExecutionProviderDelegate(CPU, precision=each)], "", DEFAULT)
        for each in PRECISIONS
    }
    assert len(keys) == len(PRECISIONS)


def test_it_reaches_the_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    """And rows say what its options amount to."""
    asked = list[str]()

    def noted(name: str, wanted: str, given: Mapping[str, Any], device: str = "") -> dict[str, str]:
        asked.append(wanted)
        return {}

    monkeypatch.setattr(precision, "options_in", noted)
    monkeypatch.setitem(TRAITS, AZURE, BF16)  # type: ignore[arg-type]
    with pytest.warns(UserWarning, match="none of the nodes"):
        allocated(chain(), providers=[AZURE, CPU], precision="bf16")
    assert set(asked) == {"bf16"}


def test_rows_say_it() -> None:
    assert {row.precision for row in allocated(chain()).delegation()} == {"full"}
    assert {row.precision for row in allocated(chain(), providers=[]).delegation()} == {""}


@pytest.mark.parametrize("verb", ["run", "inspect", "compile", "bench", "verify", "predict"])
def test_the_commands_take_it(verb: str, tmp_path: Path) -> None:
    path = tmp_path / "chain.tflite"
    path.write_bytes(chain())
    more = {
        "predict": [str(tmp_path / "in.npy"), "--out", str(tmp_path / "out")],
        "compile": ["--cache", str(tmp_path / "cache")],
    }
    np.save(tmp_path / "in.npy", np.zeros((1, 3), np.float32))
    found = CliRunner().invoke(app, [verb, str(path), *more.get(verb, []), "--precision", "bf16"])
    assert found.exit_code != 0
    said = " ".join((found.output + str(found.exception)).split())
    assert "has no precision 'bf16'; it has 'full'" in said


def test_language_models_and_tasks_take_it() -> None:
    refused = "has no precision 'bf16'; it has 'full'"
    with pytest.raises(MissingDelegate, match=refused):
        LanguageModel(bundle(), precision="bf16")
    detector = model_path("tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite")
    base = tasks.BaseOptions(model_asset_path=detector, precision="bf16")
    with pytest.raises(MissingDelegate, match=refused):
        vision.ObjectDetector.create_from_options(vision.ObjectDetectorOptions(base))


@pytest.mark.openvino
def test_openvino_computes_in_what_was_asked_for() -> None:
    """In bfloat16 only on a processor that multiplies it."""
    content = Path(model_path("pypi-mediapipe__hand_landmark_lite.tflite")).read_bytes()
    seed = 0
    print(f"seed {seed}")
    image = np.random.default_rng(seed).uniform(0, 1, (1, 224, 224, 3)).astype(np.float32)
    right, _ = ours(content, [image])

    def distance(asked: str) -> float:
        got, _ = ours(content, [image], providers=[OPENVINO, CPU], precision=asked)
        pairs = zip(got, right, strict=True)
        return max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs)

    assert distance("full") <= 1e-5
    assert distance("fp16") > 1e-5
    assert "bf16" not in " ".join(processor()) or distance("bf16") > 1e-3
