"""A language model as a folder: one file a signature, one of weights, and a tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from typer.testing import CliRunner

from tests.generation.models import bundle, foretold, library, llm_metadata, numbers
from tests.models import newer_model_path
from tflite_ort import LanguageModel, open_bundle
from tflite_ort.command.cli import app
from tflite_ort.generation.export import export_language_model

PROMPT, COUNT = "the quick brown fox", 30


def session(folder: Path, file: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(
        str(folder / file), options, providers=["CPUExecutionProvider"]
    )


def decoded(folder: Path, prompt: list[int], count: int) -> list[int]:
    """The most likely tokens, from nothing but the folder."""
    said = json.loads((folder / "bundle.json").read_text())
    (model,) = said["models"]
    step = session(folder, model["signatures"]["decode"]["file"])
    inputs = {each.name: each for each in step.get_inputs()}
    outputs = [each.name for each in step.get_outputs()]
    caches = [name for name in inputs if f"{name}_next" in outputs]
    state: dict[str, Any] = {n: np.zeros(inputs[n].shape, np.float32) for n in caches}
    tokens = list(prompt)
    for position in range(len(prompt) + count - 1):
        shape = inputs["mask"].shape
        seen = np.broadcast_to(np.arange(shape[-1]) <= position, shape)
        lowest = np.float32(-0.7 * np.finfo(np.float32).max)
        mask = seen if "bool" in inputs["mask"].type else np.where(seen, np.float32(0), lowest)
        feeds = {
            "tokens": np.array([[tokens[position]]], np.int32),
            "input_pos": np.array([position], np.int32),
            "mask": mask,
        }
        made = dict(zip(outputs, step.run(None, {**feeds, **state}), strict=True))
        state = {name: made[f"{name}_next"] for name in caches}
        if position >= len(prompt) - 1:
            tokens.append(int(made["logits"].argmax()))
    return tokens[len(prompt) :]


@pytest.mark.parametrize("name", ["hf_llama_float", "hf_qwen3_dyn8", "hf_lfm2"])
def test_a_folder_has_the_tokens_of_the_bundle(name: str, tmp_path: Path) -> None:
    tokenizers = library("tokenizers")
    library("minijinja")
    path = newer_model_path(f"{name}.litertlm")
    export_language_model(open_bundle(path), tmp_path, hybrid="xnnpack")
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    prompt = tokenizer.encode(PROMPT, add_special_tokens=False).ids
    want = LanguageModel(path).generate(PROMPT, max_tokens=COUNT, template=False).tokens
    assert decoded(tmp_path, prompt, COUNT) == list(want)


def test_weights_are_written_once(tmp_path: Path) -> None:
    path = newer_model_path("hf_llama_composites.litertlm")
    said = json.loads(export_language_model(open_bundle(path), tmp_path).read_text())
    (model,) = said["models"]
    places: dict[int, set[str]] = {}
    for key, signature in model["signatures"].items():
        graph = onnx.load(tmp_path / signature["file"], load_external_data=False).graph
        for tensor in graph.initializer:
            facts = {each.key: each.value for each in tensor.external_data}
            if facts:
                assert facts["location"] == model["weights"]
                places.setdefault(int(facts["offset"]), set()).add(key)
        onnx.checker.check_model(str(tmp_path / signature["file"]))
    assert {"prefill_16", "decode"} in places.values()
    exported = sum(each.stat().st_size for each in tmp_path.glob("prefill_decode.*"))
    assert exported < 2 * path.stat().st_size


def test_what_the_metadata_say(tmp_path: Path) -> None:
    metadata = llm_metadata(start="z", stops=["!", "ab"], template="{{ messages[0].content }}")
    content = bundle(metadata=metadata)
    export_language_model(open_bundle(content), tmp_path)
    said = json.loads((tmp_path / "generation.json").read_text())
    assert said["start"] == "z"
    assert said["stops"] == ["!", "ab"]
    assert said["template"] == "{{ messages[0].content }}"
    assert said["sampling"] is None
    text = foretold("bcd", 6)
    assert decoded(tmp_path, numbers("bcd"), 6) == numbers(text)


def test_the_command(tmp_path: Path) -> None:
    path, out = tmp_path / "m.litertlm", tmp_path / "out"
    path.write_bytes(bundle())
    run = CliRunner().invoke(app, ["export", str(path), str(out)])
    assert run.exit_code == 0, run.output
    assert {each.name for each in out.iterdir()} == {
        *("bundle.json", "files", "generation.json", "tokenizer.json", "prefill_decode.weights"),
        *(f"prefill_decode.{key}.onnx" for key in ("decode", "prefill_4", "prefill_8")),
    }
    assert "prefill_decode.decode.onnx" in run.output
