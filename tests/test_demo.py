"""The shipped digits models: their score, ours against LiteRT, and the script that made them."""

import io
from typing import Any

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter as LiteRT
from rich.console import Console

from digits_lstm import LSTM, trained_lstm
from digits_network import CNN, Network, load_split, train
from tflite_ort import Interpreter
from tflite_ort.command.demo import MODELS, digits_model, held_out, read_digits, run_demo
from tflite_ort.schema import Op, read_model, write_model
from tflite_ort.versioning import declared_runtime, minimum_runtime
from train_digits import correct, trained_model

VERSIONS = {
    "float32": {
        (Op.CONV_2D, 1),
        (Op.DEPTHWISE_CONV_2D, 2),
        (Op.MAX_POOL_2D, 1),
        (Op.RESHAPE, 1),
        (Op.FULLY_CONNECTED, 1),
        (Op.SOFTMAX, 1),
    },
    "int8": {
        (Op.CONV_2D, 3),
        (Op.DEPTHWISE_CONV_2D, 3),
        (Op.MAX_POOL_2D, 2),
        (Op.RESHAPE, 1),
        (Op.FULLY_CONNECTED, 4),
        (Op.SOFTMAX, 2),
    },
    "lstm_float32": {
        (Op.RESHAPE, 1),
        (Op.UNIDIRECTIONAL_SEQUENCE_LSTM, 1),
        (Op.STRIDED_SLICE, 1),
        (Op.FULLY_CONNECTED, 1),
        (Op.SOFTMAX, 1),
    },
    "lstm_int8": {
        (Op.RESHAPE, 1),
        (Op.UNIDIRECTIONAL_SEQUENCE_LSTM, 1),
        (Op.STRIDED_SLICE, 2),
        (Op.FULLY_CONNECTED, 4),
        (Op.SOFTMAX, 2),
    },
}
FLOATS, INTEGERS = ("float32", "lstm_float32"), ("int8", "lstm_int8")


def outputs(interpreter: Any) -> np.ndarray:
    """The stored probabilities of every shipped digit."""
    interpreter.allocate_tensors()
    image, answer = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    scale, zero_point = image["quantization"]
    found = []
    for pixels in held_out()[0]:
        real = pixels[np.newaxis, :, :, np.newaxis] / np.float32(16)
        stored = np.round(real / scale + zero_point) if scale else real
        interpreter.reset_all_variables()
        interpreter.set_tensor(image["index"], stored.astype(image["dtype"]))
        interpreter.invoke()
        found.append(interpreter.get_tensor(answer["index"])[0])
    return np.array(found)


@pytest.mark.parametrize("interpreter", [Interpreter, LiteRT], ids=["tflite_ort", "litert"])
@pytest.mark.parametrize("model", MODELS)
def test_accuracy_is_the_recorded_one(model: str, interpreter: Any) -> None:
    _, digits = load_split()
    right = correct(interpreter(model_path=str(digits_model(model))), digits)
    assert right >= 0.97 * len(digits.labels)
    recorded = f"{right} of {len(digits.labels)} held-out digits right"
    assert recorded in read_model(digits_model(model)).description


@pytest.mark.parametrize("model", FLOATS)
def test_float_outputs_are_those_of_litert(model: str) -> None:
    file = str(digits_model(model))
    ours, theirs = outputs(Interpreter(model_path=file)), outputs(LiteRT(model_path=file))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


@pytest.mark.parametrize("model", INTEGERS)
def test_int8_outputs_are_exactly_those_of_litert(model: str) -> None:
    file = str(digits_model(model))
    ours, theirs = outputs(Interpreter(model_path=file)), outputs(LiteRT(model_path=file))
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("model", MODELS)
def test_files_are_small_and_say_their_versions(model: str) -> None:
    file = read_model(digits_model(model))
    assert {(code.builtin_code, code.version) for code in file.operator_codes} == VERSIONS[model]
    assert declared_runtime(file) == minimum_runtime(file)
    assert digits_model(model).stat().st_size <= 50 * 1024


def test_shipped_digits_are_held_out_ones() -> None:
    images, labels = held_out()
    _, digits = load_split()
    np.testing.assert_array_equal(images / np.float32(16), digits.images[: len(images), :, :, 0])
    np.testing.assert_array_equal(labels, digits.labels[: len(labels)])


@pytest.mark.parametrize(
    ("network", "model"), [(CNN, trained_model), (LSTM, trained_lstm)], ids=["CNN", "LSTM"]
)
def test_training_is_deterministic_and_learns(network: Network, model: Any) -> None:
    """A few digits in small batches are enough for that."""
    digits, unseen = load_split()
    few = digits[:384]
    first, second = (train(few, epochs=4, seed=7, batch=8, network=network) for _ in range(2))
    assert write_model(model(first, few.images)) == write_model(model(second, few.images))
    answers = network.forward(first, unseen.images)["logits"].argmax(axis=1)
    assert np.mean(answers == unseen.labels) > 0.8


@pytest.mark.parametrize("model", MODELS)
def test_read_digits_gives_probabilities(model: str) -> None:
    answers = read_digits(model, held_out()[0][:2])
    assert answers.digits.shape == (2,)
    assert (answers.probabilities > 0.5).all()
    assert answers.milliseconds > 0


def test_demo_draws_digits_and_scores() -> None:
    page = io.StringIO()
    run_demo(Console(file=page, width=80))
    text = page.getvalue()
    assert "▀" in text
    assert all(model in text for model in MODELS)
    assert f"of {len(held_out()[1])}" in text
    assert max(len(line) for line in text.splitlines()) <= 80
