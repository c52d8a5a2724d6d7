"""String tensors: TFLite's buffer layout, and models that carry them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models import model_path
from tests.one_op import ours
from tests.oracle import litert
from tflite_ort import Interpreter, TensorError
from tflite_ort.schema.file.errors import MalformedModel
from tflite_ort.schema.file.strings import decoded, encoded


@given(st.lists(st.binary(max_size=8), max_size=6))
def test_round_trip(strings: list[bytes]) -> None:
    data = np.frombuffer(encoded(np.array([*strings, None], np.object_)[:-1]), np.uint8)
    assert decoded(data, (len(strings),)).tolist() == strings


@pytest.mark.parametrize(
    "words", [[], [2, 16, 16, 16], [1, 12, 99], [1, 12, 8], [1, 0, 12], [-1, 4]]
)
def test_buffers_that_lie(words: list[int]) -> None:
    with pytest.raises(MalformedModel):
        decoded(np.array(words, "<i4").view(np.uint8), (1,))


def test_strings_are_gathered_as_litert_gathers_them() -> None:
    words = np.array([f"word {i}".encode() for i in range(10)], np.object_)
    positions = np.array([3, 0, 9], np.int64)
    model = model_path("litert__gather_string.tflite").read_bytes()
    got, runners = ours(model, [words, positions])
    assert runners == {"numpy"}
    (want,) = litert(model, [words, positions])
    assert got[0].dtype == want.dtype == np.object_
    assert got[0].tolist() == want.tolist()


def test_text_is_utf8_and_numbers_are_refused() -> None:
    interpreter = Interpreter(model_path("litert__gather_string.tflite"))
    interpreter.allocate_tensors()
    words, positions = interpreter.get_input_details()
    interpreter.set_tensor(words["index"], np.array(["é"] * 10))
    interpreter.set_tensor(positions["index"], np.zeros(3, np.int64))
    interpreter.invoke()
    output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    assert output.tolist() == ["é".encode()] * 3
    with pytest.raises(TensorError, match="expected type STRING"):
        interpreter.set_tensor(words["index"], np.zeros(10))
