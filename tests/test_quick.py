"""The first lines of Python: a result in one call, and objects that say what they are."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.made_networks import network
from tests.prediction.models import colours
from tests.test_answers import SIZE, cells
from tests.test_cli_run import two_signatures
from tests.test_gestures import hand_bundle
from tflite_ort import Interpreter, Predictor, TensorError, quick
from tflite_ort.command.demo import digits_model
from tflite_ort.prediction.array_files import InputError

Array = npt.NDArray[Any]
Image = pytest.importorskip("PIL.Image")


def detector(tmp_path: Path) -> Path:
    table = np.zeros((1, 4 + 2, cells((8, 16, 32))))
    table[0, :, 3] = [0.5, 0.5, 0.2, 0.1, 0.9, 0]
    (tmp_path / "yolo.tflite").write_bytes(network(SIZE, [table]))
    return tmp_path / "yolo.tflite"


def test_a_result_in_one_call(tmp_path: Path) -> None:
    pixels = np.full((100, 200, 3), 7, np.uint8)
    Image.fromarray(pixels).save(tmp_path / "p.png")
    for given in (tmp_path / "p.png", str(tmp_path / "p.png"), pixels):
        found = quick.run(detector(tmp_path), given, labels=["ant", "bee"])
        assert found.answer is not None
        assert [box.what.name for box in found.answer.boxes] == ["ant"]
        assert repr(found).splitlines()[2].split() == ["ant", "90.0", "%", "80", "40", "40", "20"]
        assert "<img" in found._repr_html_()
        found.draw(tmp_path / "out.png")
        assert (np.asarray(Image.open(tmp_path / "out.png")) != 7).any()


def test_arrays_are_taken_as_they_are(tmp_path: Path) -> None:
    image = np.zeros((8, 8, 1), np.float32)
    found = quick.run(digits_model("float32"), image)
    (scores,) = found.outputs.values()
    interpreter = Interpreter(digits_model("float32"))
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], image[np.newaxis])
    interpreter.invoke()
    wanted = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_array_equal(scores, wanted)
    with pytest.raises(InputError, match="give one for each"):
        quick.run(digits_model("float32"))


def test_a_bundle_runs_its_task(tmp_path: Path) -> None:
    (tmp_path / "hand.task").write_bytes(hand_bundle())
    found = quick.run(tmp_path / "hand.task", np.full((60, 80, 3), 200, np.uint8))
    assert found.answer is not None
    assert found.answer.kind == "hand landmarker"
    with pytest.raises(InputError, match="one picture"):
        quick.run(tmp_path / "hand.task")


# What objects say --------------------------------------------------------------------------------


def test_an_interpreter_says_what_it_is() -> None:
    path = digits_model("float32")
    interpreter = Interpreter(path)
    assert "not allocated yet" in repr(interpreter)
    interpreter.allocate_tensors()
    said = repr(interpreter).splitlines()
    assert said[0] == f"Interpreter({str(path)!r})"
    assert "float32 [1, 8, 8, 1]" in said[1] or "float32 [?, 8, 8, 1]" in said[1]
    assert "in ONNX Runtime (CPUExecutionProvider)" in said[-1]
    page = interpreter._repr_html_()
    assert page.count("<tr>") == 3
    assert "CPUExecutionProvider" in page
    interpreter.close()
    assert repr(interpreter) == "Interpreter (closed)"


def test_names_in_a_page_are_escaped(tmp_path: Path) -> None:
    page = Interpreter(model_content=colours("<script>"))._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page


def test_a_predictor_says_what_it_is() -> None:
    predictor = Predictor(digits_model("float32"))
    assert repr(predictor).startswith("Predictor(")
    assert "ONNX Runtime" in repr(predictor)
    assert "<table>" in predictor._repr_html_()


# Arrays of other libraries -----------------------------------------------------------------------


class Foreign:
    """An array that numpy cannot read but by DLPack."""

    def __init__(self, array: Array) -> None:
        self.array, self.shape = array, array.shape

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OnDevice(Foreign):
    """One that its library does not give away."""

    def __dlpack__(self, **how: Any) -> Any:
        raise BufferError("it is on a device")


def test_arrays_of_other_libraries_are_taken() -> None:
    image = np.random.default_rng(0).random((1, 8, 8, 1), np.float32)
    interpreter = Interpreter(digits_model("float32"))
    interpreter.allocate_tensors()
    index = interpreter.get_input_details()[0]["index"]
    out = interpreter.get_output_details()[0]["index"]
    made = []
    for value in (image, Foreign(image)):
        interpreter.set_tensor(index, value)  # type: ignore[arg-type]
        interpreter.invoke()
        made.append(interpreter.get_tensor(out))
    np.testing.assert_array_equal(*made)
    predictor = Predictor(digits_model("float32"))
    np.testing.assert_array_equal(predictor(Foreign(image)), predictor(image))  # type: ignore[call-overload]
    np.testing.assert_array_equal(np.from_dlpack(made[0]), made[0])
    with pytest.raises(TensorError, match="on a device"):
        interpreter.set_tensor(index, OnDevice(image))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="on a device"):
        predictor(OnDevice(image))  # type: ignore[call-overload]


def test_a_signature_is_awaited() -> None:
    runner = Interpreter(model_content=two_signatures()).get_signature_runner("both")
    names = {
        name: np.ones(each["shape"], each["dtype"])
        for name, each in runner.get_input_details().items()
    }

    async def both() -> list[dict[str, Any]]:
        return [await runner.call_async(**names), await runner.call_async(**names)]

    for found in asyncio.run(both()):
        for name, value in runner(**names).items():
            np.testing.assert_array_equal(found[name], value)
    assert repr(runner).startswith("SignatureRunner('subgraph ")
    foreign = {name: Foreign(value) for name, value in names.items()}
    for name, value in runner(**foreign).items():  # type: ignore[arg-type]
        np.testing.assert_array_equal(value, runner(**names)[name])
