"""Models that train on a device: the losses of TensorFlow 2.18.1, and its checkpoints."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.flex.training_data import STEPS, batch
from tflite_ort import BridgeError, Interpreter

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


def test_a_checkpoint_is_the_same_bytes(tmp_path: Path) -> None:
    """What is read is written as it was."""
    call, path = runners("fused"), tmp_path / "saved"
    shutil.copy(FOLDER / "fused.checkpoint", path)
    call("restore", path=text(path))
    call("save", path=text(tmp_path / "again"))
    assert (tmp_path / "again").read_bytes() == path.read_bytes()
