"""Model repositories for Triton: what the configuration says is what the ONNX file has."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest
from typer.testing import CliRunner

from tests.models import model_path
from tests.prediction.models import above_zero, colours, noise, scalar_model, sums, two_inputs
from tflite_ort import Interpreter
from tflite_ort.command.cli import app
from tflite_ort.prediction.accelerators import ACCELERATORS
from tflite_ort.prediction.triton import Name, Serving, message_text, write_repository

Array = npt.NDArray[Any]

MODELS = {
    "sums": sums,
    "colours": colours,
    "two": two_inputs,
    "scalar": scalar_model,
    "above": above_zero,
    "noise": noise,
}
REAL = {
    "lstm": "tf__lstm_seq_f32.tflite",
    "wake": "pypi-pymicro-wakeword__hey_jarvis.tflite",
    "ssd": "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite",
    "tflm": "tflm__trained_lstm_int8.tflite",
    "words": "tflite-support__movie_review.tflite",
}


def written(folder: Path, name: str) -> Path:
    """The file of a model by its name here."""
    if name in REAL:
        return model_path(REAL[name])
    path = folder / f"{name}.tflite"
    path.write_bytes(MODELS[name]())
    return path


def config_of(text: str) -> Any:
    """The configuration as Triton's own protobuf reads it."""
    messages: Any = importlib.import_module("tritonclient.grpc.model_config_pb2")
    format_: Any = importlib.import_module("google.protobuf.text_format")
    return format_.Parse(text, messages.ModelConfig())


# The server's types by ONNX Runtime's.
TYPES = {
    "tensor(float)": "TYPE_FP32",
    "tensor(bool)": "TYPE_BOOL",
    "tensor(string)": "TYPE_STRING",
    **{
        f"tensor({kind}{n})": f"TYPE_{kind.upper()}{n}"
        for kind in ("int", "uint")
        for n in (8, 16, 32, 64)
    },
}


@pytest.mark.serving
@pytest.mark.parametrize("accelerator", ["", *ACCELERATORS])
@pytest.mark.parametrize("name", [*MODELS, *REAL])
def test_configuration_is_what_the_file_has(tmp_path: Path, name: str, accelerator: str) -> None:
    model = written(tmp_path, name)
    folder = write_repository(model, tmp_path, name, Serving(accelerator=accelerator)).folder
    config = config_of((folder / "config.pbtxt").read_text())
    session = onnxruntime.InferenceSession(folder / "1" / config.default_model_filename)
    types: Any = importlib.import_module("tritonclient.grpc.model_config_pb2").DataType
    states = config.sequence_batching.state
    batched = config.max_batch_size > 0
    given = {each.name: each for each in config.input}
    given |= {each.input_name: each for each in states}
    made = {each.name: each for each in config.output}
    made |= {each.output_name: each for each in states}
    assert config.name == name and config.backend == "onnxruntime"
    assert given.keys() == {each.name for each in session.get_inputs()}
    assert made.keys() == {each.name for each in session.get_outputs()}
    assert not session.get_overridable_initializers()
    for each in (*session.get_inputs(), *session.get_outputs()):
        told = given.get(each.name) if each in session.get_inputs() else made.get(each.name)
        told = told or made.get(each.name) or given[each.name]
        assert types.Name(told.data_type) == TYPES[each.type]
        sizes = [size if isinstance(size, int) else -1 for size in each.shape]
        assert not batched or sizes.pop(0) == -1
        assert list(told.dims) == (sizes or [1])
        assert sizes or told in states or told.HasField("reshape")
    for each in config.output:
        if each.label_filename:
            assert (folder / each.label_filename).read_text()
    group = config.optimization.execution_accelerators
    named = [*group.gpu_execution_accelerator, *group.cpu_execution_accelerator]
    assert [each.name for each in named] == ([accelerator] if accelerator else [])


@pytest.mark.serving
def test_warm_up_runs(tmp_path: Path) -> None:
    folder = write_repository(written(tmp_path, "ssd"), tmp_path, "ssd").folder
    config = config_of((folder / "config.pbtxt").read_text())
    session = onnxruntime.InferenceSession(folder / "1" / "model.onnx")
    (warm_up,) = config.model_warmup
    feeds = {
        name: np.zeros((warm_up.batch_size, *each.dims), np.uint8)
        for name, each in warm_up.inputs.items()
    }
    assert len(session.run(None, feeds)) == 4


@pytest.mark.parametrize("most", [0, 8])
def test_there_is_a_warm_up_with_and_without_batches(tmp_path: Path, most: int) -> None:
    """The server skips samples of a batch of 0."""
    path = written(tmp_path, "sums")
    folder = write_repository(path, tmp_path, "m", Serving(max_batch=most)).folder
    text = (folder / "config.pbtxt").read_text()
    assert f"max_batch_size: {most}\n" in text
    assert re.search(r"model_warmup \{\s*name: \"zeros\"\s*batch_size: 1\n", text)


@pytest.mark.parametrize(
    ("name", "batch", "states"),
    [
        ("sums", 32, 0),
        ("above", 32, 0),
        ("noise", 0, 1),
        ("ssd", 32, 0),
        ("wake", 32, 6),
        ("lstm", 32, 2),
    ],
)
def test_batches_and_states(tmp_path: Path, name: str, batch: int, states: int) -> None:
    made = write_repository(written(tmp_path, name), tmp_path / "models", name)
    text = (made.folder / "config.pbtxt").read_text()
    assert made.max_batch == batch and len(made.states) == states
    assert bool(made.refused) == (not batch)
    assert f"max_batch_size: {batch}\n" in text
    assert ("dynamic_batching {" in text) == (batch > 0 and not states)
    assert ("sequence_batching {" in text) == (states > 0)
    assert text.count("input_name:") == states


def test_a_sequence_gives_what_the_interpreter_gives(tmp_path: Path) -> None:
    """The state goes from output to input, beginning with the files, as the server does it."""
    model = written(tmp_path, "wake")
    folder = write_repository(model, tmp_path / "models").folder
    text = (folder / "config.pbtxt").read_text()
    pairs = re.findall(r'input_name: "(.*)"\n\s+output_name: "(.*)"', text)
    session = onnxruntime.InferenceSession(folder / "1" / "model.onnx")
    shapes = {each.name: each for each in session.get_inputs()}
    kinds = {"tensor(int8)": np.int8, "tensor(uint8)": np.uint8, "tensor(float)": np.float32}
    files = dict(re.findall(r'name: "(.*) at first"(?:\n.*){2}\n\s+data_file: "(.*)"', text))
    state = {}
    for given, _ in pairs:
        kind = kinds[shapes[given].type]
        shape = [size if isinstance(size, int) else 1 for size in shapes[given].shape]
        state[given] = np.zeros(shape, kind)
        if given in files:
            content = (folder / "initial_state" / files[given]).read_bytes()
            state[given] = np.frombuffer(content, kind).reshape(shape)
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    (given_detail,), (made_detail,) = (
        interpreter.get_input_details(),
        interpreter.get_output_details(),
    )
    rng = np.random.default_rng(0)
    for _ in range(20):
        row = rng.integers(-128, 128, given_detail["shape"]).astype(np.int8)
        interpreter.set_tensor(given_detail["index"], row)
        interpreter.invoke()
        names = [each.name for each in session.get_outputs()]
        results = dict(
            zip(names, session.run(None, {given_detail["name"]: row, **state}), strict=True)
        )
        state = {given: results[made] for given, made in pairs}
        expected = interpreter.get_tensor(made_detail["index"])
        np.testing.assert_array_equal(results[made_detail["name"]], expected)


def test_labels(tmp_path: Path) -> None:
    folder = write_repository(written(tmp_path, "colours"), tmp_path).folder
    text = (folder / "config.pbtxt").read_text()
    assert 'label_filename: "labels_0.txt"' in text
    assert (folder / "labels_0.txt").read_text() == "red\ngreen\nblue\n"


def test_a_batch_of_the_file_is_what_single_runs_give(tmp_path: Path) -> None:
    folder = write_repository(written(tmp_path, "two"), tmp_path).folder
    session = onnxruntime.InferenceSession(folder / "1" / "model.onnx")
    a, b = np.ones((5, 2, 2), np.float32), np.arange(20, dtype=np.float32).reshape(5, 4)
    (made,) = session.run(None, {"a": a, "b": b})
    np.testing.assert_array_equal(made, b + 1)


def test_weights_are_what_the_accelerator_takes(tmp_path: Path) -> None:
    model = written(tmp_path, "ssd")
    for accelerator, kind in (("tensorrt", "int8"), ("", "uint8")):
        serving = Serving(accelerator=accelerator)
        folder = write_repository(model, tmp_path, f"ssd{accelerator}", serving).folder
        graph = onnx.load(folder / "1" / "model.onnx").graph
        kinds = {
            onnx.TensorProto.DataType.Name(each.data_type).lower()
            for each in graph.initializer
            if len(each.dims) == 4
        }
        assert kinds - {"float"} == {kind}


def test_command(tmp_path: Path) -> None:
    model = written(tmp_path, "noise")
    how = ["--name", "finder", "--instances", "2", "--version", "3"]
    result = CliRunner().invoke(app, ["triton", str(model), str(tmp_path / "models"), *how])
    assert result.exit_code == 0, result.output
    assert "one at a time" in result.output and "no batches: RANDOM" in result.output
    assert (tmp_path / "models" / "finder" / "3" / "model.onnx").exists()
    assert "count: 2" in (tmp_path / "models" / "finder" / "config.pbtxt").read_text()
    for wrong in (["--name", "a/b"], ["--accelerator", "magic"]):
        result = CliRunner().invoke(app, ["triton", str(model), str(tmp_path), *wrong])
        assert result.exit_code == 2


def test_text_format() -> None:
    fields = {
        "name": 'a"b\\\n\u00e9',
        "kind": Name("X"),
        "sizes": [1, -1],
        "none": None,
        "empty": {},
    }
    fields |= {"many": [{"on": True}, {"on": False}]}
    assert message_text(fields) == (
        'name: "a\\042b\\134\\012\\303\\251"\nkind: X\nsizes: [ 1, -1 ]\nempty {\n}\n'
        "many {\n  on: true\n}\nmany {\n  on: false\n}\n"
    )
