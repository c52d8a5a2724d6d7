"""Models that train on a device: the losses of TensorFlow 2.18.1, and its checkpoints."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
import pytest

from tests.flex.training_data import STEPS, batch
from tflite_ort import (
    BridgeError,
    ExportError,
    Interpreter,
    export_onnx,
    first_state,
    trained_model,
)
from tflite_ort.schema import read_model, write_model

Array = npt.NDArray[Any]
FOLDER = Path(__file__).parent / "training"
NAMES = ("keras", "fused")
# What each may be off TensorFlow's after 50 steps.
NEAR = 1e-4


def runners(name: str, providers: Sequence[str] | None = None) -> Callable[..., dict[str, Array]]:
    """Calls a signature of a model."""
    interpreter = Interpreter(str(FOLDER / f"{name}.tflite"), providers=providers)

    def call(signature: str, **inputs: Any) -> dict[str, Array]:
        return interpreter.get_signature_runner(signature)(**inputs)

    return call


def text(path: Path) -> Array:
    return np.array(str(path).encode(), object)


def trained(call: Callable[..., dict[str, Array]], steps: int = STEPS) -> list[float]:
    losses = []
    for step in range(steps):
        images, labels = batch(step)
        losses.append(float(call("train", images=images, labels=labels)["loss"]))
    return losses


@pytest.mark.parametrize("providers", [None, []], ids=["ort", "numpy"])
@pytest.mark.parametrize("name", NAMES)
def test_the_losses_are_those_of_tensorflow(name: str, providers: Sequence[str] | None) -> None:
    call = runners(name, providers)
    with np.load(FOLDER / f"{name}.npz") as stored:
        losses, logits = stored["losses"], stored["logits"]
    np.testing.assert_allclose(trained(call), losses, rtol=0, atol=NEAR)
    got = call("infer", images=batch(STEPS)[0])["logits"]
    np.testing.assert_allclose(got, logits, rtol=0, atol=NEAR)
    assert losses[-10:].mean() < losses[:10].mean()


@pytest.mark.parametrize("name", NAMES)
def test_a_step_runs_in_onnx_runtime(name: str) -> None:
    interpreter = Interpreter(str(FOLDER / f"{name}.tflite"))
    runner = interpreter.get_signature_runner("train")
    images, labels = batch(0)
    runner(images=images, labels=labels)
    left = {row.operator for row in interpreter.delegation("train") if row.runs_on == "numpy"}
    assert left <= {"CALL_ONCE", "ASSIGN_VARIABLE"}, left


@pytest.mark.parametrize("name", NAMES)
def test_a_checkpoint_of_tensorflow_is_read(name: str) -> None:
    call, stored = runners(name), np.load(FOLDER / f"{name}.npz")
    trained(call, 3)
    call("restore", path=text(FOLDER / f"{name}.checkpoint"))
    got = call("infer", images=batch(STEPS)[0])["logits"]
    np.testing.assert_allclose(got, stored["logits"], rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_training_goes_on_where_it_was_saved(name: str, tmp_path: Path) -> None:
    call, path = runners(name), text(tmp_path / "saved")
    trained(call, 3)
    call("save", path=path)
    want = trained(call, 3)
    call("restore", path=path)
    assert trained(call, 3) == want
    other = runners(name)
    other("restore", path=path)
    assert trained(other, 3) == want


@pytest.mark.parametrize("signature", ["save", "restore"])
def test_a_file_that_cannot_be_used_is_an_error(signature: str, tmp_path: Path) -> None:
    call = runners("keras")
    with pytest.raises(BridgeError):
        call(signature, path=text(tmp_path / "missing" / "saved"))
    (tmp_path / "other").write_bytes(b"no checkpoint" * 9)
    if signature == "restore":
        with pytest.raises(BridgeError):
            call(signature, path=text(tmp_path / "other"))


@pytest.mark.parametrize("name", NAMES)
def test_what_was_learnt_is_a_model_and_an_export(name: str, tmp_path: Path) -> None:
    interpreter = Interpreter(str(FOLDER / f"{name}.tflite"))
    for step in range(3):
        images, labels = batch(step)
        interpreter.get_signature_runner("train")(images=images, labels=labels)
    model, (images, labels) = trained_model(interpreter), batch(STEPS)
    want = interpreter.get_signature_runner("infer")(images=images)["logits"]
    loss = interpreter.get_signature_runner("train")(images=images, labels=labels)["loss"]

    content = write_model(model)
    assert len(content) <= (FOLDER / f"{name}.tflite").stat().st_size * 1.1
    other = Interpreter(model_content=content)
    got = other.get_signature_runner("infer")(images=images)["logits"]
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)
    again = other.get_signature_runner("train")(images=images, labels=labels)["loss"]
    assert again == pytest.approx(loss, abs=1e-6)

    path = tmp_path / "infer.onnx"
    export_onnx(model, path, signature="infer", stateful=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    assert [each.name for each in session.get_inputs()] == ["images"]
    (got,) = session.run(None, {"images": images})
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_an_exported_step_trains_in_onnx_runtime(name: str, tmp_path: Path) -> None:
    path = tmp_path / "train.onnx"
    export_onnx(FOLDER / f"{name}.tflite", path, signature="train")
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    told = {each.key: each.value for each in onnx.load(path).metadata_props}
    pairs, state = json.loads(told["tflite.state"]), first_state(path)
    names, losses = [each.name for each in session.get_outputs()], []
    for step in range(STEPS):
        images, labels = batch(step)
        held = {name: state[name] for name, _ in pairs if name}
        feeds = {"images": images, "labels": labels, **held}
        found = dict(zip(names, session.run(names, feeds), strict=True))
        losses.append(float(found["loss"]))
        state |= {name.removesuffix("_next"): found[name] for _, name in pairs if name}
    with np.load(FOLDER / f"{name}.npz") as stored:
        np.testing.assert_allclose(losses, stored["losses"], rtol=0, atol=NEAR)


@pytest.mark.parametrize("signature", ["save", "restore"])
def test_files_are_not_exported(signature: str, tmp_path: Path) -> None:
    name = f"Flex{signature.capitalize()}"
    with pytest.raises(ExportError, match=f"no translator for {name}"):
        export_onnx(FOLDER / "keras.tflite", tmp_path / "x.onnx", signature=signature)


def test_what_was_not_trained_stays() -> None:
    path = FOLDER / "keras.tflite"
    assert write_model(trained_model(Interpreter(str(path)))) == write_model(read_model(path))


def test_a_checkpoint_is_the_same_bytes(tmp_path: Path) -> None:
    """What is read is written as it was."""
    call, path = runners("fused"), tmp_path / "saved"
    shutil.copy(FOLDER / "fused.checkpoint", path)
    call("restore", path=text(path))
    call("save", path=text(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
