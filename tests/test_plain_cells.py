"""LSTM layers of exports: one node where the clip of the cell state cannot be reached, or is
ignored; and runs that start from zero where only layers over sequences have a state."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.lstm_models import Lstm
from tests.models import model_path
from tests.one_op import T
from tests.oracle import litert_interpreter
from tests.test_cli import call
from tflite_ort import ExportError, ExportWarning, Interpreter, export_onnx
from tflite_ort.schema.values.lstm import GATES

Array = npt.NDArray[Any]

KERAS = "tf__lstm_seq_f32.tflite"
STARTS = "each run starts UNIDIRECTIONAL_SEQUENCE_LSTM_0 from zero"


def nodes(model: Any) -> list[str]:
    return [node.op_type for node in model.graph.node]


def steps_of(time: int, clip: float, *, open_gates: bool = False) -> bytes:
    """A layer over `time` steps; its gates are all 1 if they are open."""
    layer = Lstm(batch=1, time=time, features=3, cells=4, cell_clip=clip)
    full = T.constant(np.full(4, 50, np.float32))
    return layer.model({f"{gate}_gate_bias": full for gate in GATES} if open_gates else {})


@pytest.mark.parametrize(
    ("time", "clip", "plain"), [(4, 4.0, True), (5, 4.0, False), (10, 10.0, True), (4, 3.9, False)]
)
def test_a_clip_that_cannot_be_reached_is_left_out(time: int, clip: float, plain: bool) -> None:
    """From zero, each step adds at most 1."""
    model = export_onnx(steps_of(time, clip), stateful=False, check=True)
    assert ("If" not in nodes(model) and "Scan" not in nodes(model)) == plain
    assert nodes(model).count("LSTM") == 1


@pytest.mark.parametrize("time", [10, 11])
def test_states_at_the_clip_are_right(time: int) -> None:
    """Gates that are all 1, so that the state grows by 1 at each step: at 10 steps it reaches a
    clip of 10, and is not clipped; at 11 it is."""
    content = steps_of(time, 10.0, open_gates=True)
    model = export_onnx(content, stateful=False)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    x = np.zeros((1, time, 3), np.float32)
    (got,) = session.run(None, {model.graph.input[0].name: x})
    litert = litert_interpreter(content)
    litert.allocate_tensors()
    litert.set_tensor(litert.get_input_details()[0]["index"], x)
    litert.invoke()
    want = litert.get_tensor(litert.get_output_details()[0]["index"])
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_an_ignored_clip_is_one_node() -> None:
    content = model_path(KERAS).read_bytes()
    with pytest.warns(ExportWarning, match=STARTS):
        kept = export_onnx(content)
    assert "If" in nodes(kept)
    model = export_onnx(content, lstm_clip="ignore", stateful=False, check=True)
    assert nodes(model).count("LSTM") == 1
    assert not {"If", "Scan", "GRU"} & set(nodes(model))
    assert len(model.graph.node) < 10


def test_a_clip_is_kept_or_ignored() -> None:
    with pytest.raises(ValueError, match="lstm_clip must be 'keep' or 'ignore', got 'off'"):
        export_onnx(model_path(KERAS), lstm_clip="off")


@pytest.mark.parametrize("name", ["opencv", "qnn", "ncnn"])
def test_destinations_without_bodies_say_what_to_do(name: str) -> None:
    content = model_path(KERAS).read_bytes()
    with pytest.raises(ExportError, match=rf"for {name} .* is (If|Scan); give --lstm-clip ignore"):
        export_onnx(content, for_=name, stateful=False)
    model = export_onnx(content, for_=name, stateful=False, lstm_clip="ignore", check=True)
    assert nodes(model).count("LSTM") == 1


# State -------------------------------------------------------------------------------------------


def test_layers_over_sequences_start_from_zero() -> None:
    """The file has the inputs of the model; each run gives what the first invoke gives."""
    with pytest.warns(ExportWarning, match=re.escape("stateful=True (--stateful)")):
        model = export_onnx(model_path(KERAS))
    assert [each.name for each in model.graph.input] == ["serving_default_x:0"]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    interpreter = Interpreter(model_path(KERAS))
    interpreter.allocate_tensors()
    (given,), (made,) = interpreter.get_input_details(), interpreter.get_output_details()
    x = np.random.default_rng(0).normal(0, 1, given["shape"]).astype(np.float32)
    interpreter.set_tensor(given["index"], x)
    interpreter.invoke()
    for _ in range(2):
        (got,) = session.run(None, {"serving_default_x:0": x})
        np.testing.assert_allclose(got, interpreter.get_tensor(made["index"]), atol=1e-6)


def test_states_have_names_that_people_read() -> None:
    model = export_onnx(model_path("tf__bilstm_f32.tflite"), stateful=True)
    names = [each.name for each in model.graph.input][1:]
    assert names[:4] == ["lstm/h", "lstm/c", "lstm_1/h", "lstm_1/c"]
    assert [each.name for each in model.graph.output][1:3] == ["lstm/h_next", "lstm/c_next"]


def test_streams_keep_their_state() -> None:
    """A layer of one step is one of a stream."""
    model = export_onnx(steps_of(1, 0.0))
    assert len(model.graph.input) == 3


def test_state_defaults_ask_for_states() -> None:
    assert len(export_onnx(model_path(KERAS), state_defaults=True).graph.input) == 3


def test_the_command_tells_how_runs_start(tmp_path: Any) -> None:
    path, out = str(model_path(KERAS)), tmp_path / "x.onnx"
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert STARTS in " ".join(call("export", path, out).output.split())
    assert len(onnxruntime.InferenceSession(out).get_inputs()) == 1
    for option, inputs in (("--stateful", 3), ("--stateless", 1)):
        assert call("export", path, out, option).exit_code == 0
        assert len(onnxruntime.InferenceSession(out).get_inputs()) == inputs
