"""tflite-ort predict: jobs that began before, which are gone on with or not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.one_op import T, one_op_model
from tests.prediction.models import sums
from tests.prediction.test_predict import lines, predict, stopped, written
from tflite_ort.base.records import replace
from tflite_ort.prediction import ray_engine
from tflite_ort.prediction.job import Job
from tflite_ort.schema import (
    ExternalBuffer,
    ExternalBufferGroup,
    Op,
    read_model,
    write_model,
)


def test_a_job_does_not_go_on_with_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = written(tmp_path / "sums.tflite", sums())
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    command = (model, tmp_path / "a.npy", "--out", tmp_path / "out.csv")
    with monkeypatch.context() as patched:
        patched.setattr(Job, "finish", stopped)
        predict(*command, code=1)
    with monkeypatch.context() as patched:
        patched.setattr("tflite_ort.command.predict.__version__", "0.0.0")
        said = predict(*command, code=1)
    assert "a job with another version of tflite-ort" in " ".join(said.split())
    predict(*command)


def test_a_job_does_not_go_on_with_other_constants_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = one_op_model(Op.ADD, [T((1, 4)), T((1, 4))], [T((1, 4))])
    model = written(tmp_path / "sum.tflite", with_outside(outside, "weights.bin"))
    weights = tmp_path / "weights.bin"
    weights.write_bytes(np.ones(4, np.float32).tobytes())
    np.save(tmp_path / "a.npy", np.ones(4, np.float32))
    command = (model, tmp_path / "a.npy", "--out", tmp_path / "out.jsonl")
    with monkeypatch.context() as patched:
        patched.setattr(Job, "finish", stopped)
        predict(*command, code=1)
    weights.write_bytes(np.zeros(4, np.float32).tobytes())
    said = predict(*command, code=1)
    assert "a job with another model" in " ".join(said.split())
    weights.write_bytes(np.ones(4, np.float32).tobytes())
    predict(*command)
    assert lines(tmp_path / "out.jsonl")[0]["out0"] == [2, 2, 2, 2]


def with_outside(content: bytes, name: str) -> bytes:
    """A model whose second input is 16 bytes of a file."""
    model = read_model(content)
    graph = model.subgraphs[0]
    outside = replace(graph.tensors[graph.inputs[1]], external_buffer=1)
    tensors = [outside if index == graph.inputs[1] else t for index, t in enumerate(graph.tensors)]
    graph = replace(graph, tensors=tuple(tensors), inputs=graph.inputs[:1])
    return write_model(
        replace(
            model,
            subgraphs=(graph,),
            external_buffer_groups=(ExternalBufferGroup(name),),
            external_buffers=(ExternalBuffer(id=1, group=0, offset=0, length=16),),
        )
    )


def test_a_job_that_only_has_to_be_joined_starts_no_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = written(tmp_path / "sums.tflite", sums())
    np.save(tmp_path / "in.npy", np.ones((3, 4), np.float32))
    command = (model, tmp_path / "in.npy", "--rows", "--out", tmp_path / "out.npz")
    with monkeypatch.context() as patch:
        patch.setattr(Job, "finish", stopped)
        predict(*command, code=1)
    monkeypatch.setattr(ray_engine, "optional_module", lambda name: object())
    predict(*command, "--engine", "ray")
    assert np.load(tmp_path / "out.npz")["row"].tolist() == [0, 1, 2]
