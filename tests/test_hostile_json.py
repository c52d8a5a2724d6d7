"""Files of JSON that somebody else wrote, or that were damaged: one message, no traceback."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.one_op import T, one_op_model
from tests.test_cli import refusal
from tflite_ort import export_onnx, first_state
from tflite_ort.base.json_text import parsed
from tflite_ort.prediction.job import JobError, _unit
from tflite_ort.schema import BridgeError, MalformedBundle, ModelError, Op

DEEP = "[" * 200_000
HOSTILE = {
    "deep": DEEP,
    "no JSON": "{'a': 1}",
    "no text": b"\xff\xfe{}".decode("latin-1"),
    "a long number": "1" * 100_000,
    "empty": "",
}


def _short(text: str) -> str:
    """The name of a test, which processes that it starts have in their environment: no long one."""
    return text[:20]


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_json_is_one_error(name: str) -> None:
    with pytest.raises(MalformedBundle, match="it is no JSON"):
        parsed(HOSTILE[name].encode("latin-1"), MalformedBundle, "it")


@pytest.mark.parametrize(
    "text", [*HOSTILE.values(), "[1, 2]", '{"y": [1]}', '{"y": null}'], ids=_short
)
def test_a_mapping_that_is_none(text: str, tmp_path: Path) -> None:
    model, mapping = tmp_path / "m.tflite", tmp_path / "m.json"
    model.write_bytes(one_op_model(Op.NEG, [T((2,))], [T((2,))]))
    exported = tmp_path / "m.onnx"
    onnx.save(export_onnx(model), exported)
    mapping.write_bytes(text.encode("latin-1"))
    assert str(mapping) in refusal("verify", model, "--onnx", exported, "--map", mapping)


@pytest.mark.parametrize("text", [DEEP, "{}", "[1]", "[[1, 2, 3]]", "null"], ids=_short)
def test_state_that_an_onnx_file_lies_about(text: str, tmp_path: Path) -> None:
    model, exported = tmp_path / "m.tflite", tmp_path / "m.onnx"
    model.write_bytes(one_op_model(Op.NEG, [T((2,))], [T((2,))]))
    proto = export_onnx(model)
    onnx.helper.set_model_props(proto, {"tflite.state": text})
    onnx.save(proto, exported)
    assert "tflite.state" in refusal("verify", model, "--onnx", exported)


def job(tmp_path: Path) -> tuple[list[str], Path]:
    """The command of a job that was interrupted, and its folder."""
    model, rows, out = (tmp_path / name for name in ("m.tflite", "x.npy", "out.jsonl"))
    model.write_bytes(one_op_model(Op.NEG, [T((1, 4))], [T((1, 4))]))
    np.save(rows, np.ones((3, 4), np.float32))
    folder = out.with_name(f"{out.name}.job")
    folder.mkdir()
    return ["predict", str(model), str(rows), "--out", str(out), "--rows"], folder


DAMAGE: dict[str, tuple[Any, str]] = {
    "no description": ("", ""),
    "a deep description": (DEEP, ""),
    "another description": ("[]", ""),
    "units that are none": (json.dumps({"format": 1, "units": "3", "description": {}}), ""),
    "a description that is none": (json.dumps({"format": 1, "units": 3, "description": 4}), ""),
    "a listing that is none": (json.dumps({"format": 1, "units": 3, "description": {}}), "[[1]]\n"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_job_that_was_damaged(name: str, tmp_path: Path) -> None:
    command, folder = job(tmp_path)
    description, listing = DAMAGE[name]
    (folder / "job.json").write_text(description)
    (folder / "units.jsonl").write_text(listing)
    assert str(folder) in refusal(*command)


def test_a_listing_that_is_damaged() -> None:
    wrong = (["x", -1, 1], ["x", 0, 2**62])
    for stored in ([], [1], ["x", "y"], ["x", 0, 1, True, 5], *wrong, {}, "x"):
        with pytest.raises(JobError):
            _unit(stored, Path("units.jsonl"))
    assert issubclass(JobError, BridgeError)


@pytest.mark.parametrize(
    "told",
    [
        *HOSTILE.values(),
        "[1]",
        '{"nothing": {"shape": [1], "elements": 0}}',
        '{"v": 3}',
        '{"v": {"shape": [2], "elements": [1, 2, 3]}}',
        '{"v": {"shape": ["a"], "elements": 0}}',
        '{"v": {"shape": [1000000000000], "elements": 0}}',
    ],
)
def test_damaged_first_values_are_refused(told: str) -> None:
    """Metadata that somebody else wrote."""
    value = onnx.helper.make_tensor_value_info("v", onnx.TensorProto.FLOAT, [2])
    graph = onnx.helper.make_graph([], "g", [value], [value])
    model = onnx.helper.make_model(graph)
    onnx.helper.set_model_props(model, {"tflite.state_first": told})
    with pytest.raises(ModelError):
        first_state(model)
