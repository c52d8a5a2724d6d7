"""Sequences whose first axis is time, in batches."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from onnxruntime import InferenceSession

from tests.batching.single_runs import assert_batched
from tests.lstm_models import Lstm
from tests.rnn_models import Rnn
from tflite_ort import Interpreter, Unbatchable, export_onnx
from tflite_ort.schema import Op

BOTH_WAYS = Op.BIDIRECTIONAL_SEQUENCE_RNN
CASES = [
    Rnn(time_major=True),
    Rnn(time_major=True, batch=1),
    Rnn(BOTH_WAYS, time_major=True, auxiliary="linked"),
    Rnn(BOTH_WAYS, time_major=True, auxiliary="linked", time=1),
    Rnn(BOTH_WAYS, time_major=True, auxiliary="weights", merge_outputs=True),
    Rnn(BOTH_WAYS, time_major=True, weights="int8"),
    Rnn(BOTH_WAYS, auxiliary="weights", auxiliary_features=3),
    Lstm(Op.BIDIRECTIONAL_SEQUENCE_LSTM, time_major=True, auxiliary="linked"),
    Lstm(time_major=True, batch=1, time=1),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_time_stays_first(case: Rnn | Lstm) -> None:
    """LiteRT reads an auxiliary input without weights only if time is first, and runs sequences of
    rounded activations as often as they have steps."""
    assert_batched(case.model(), case.feeds(), rtol=2e-5)


def test_an_auxiliary_input_that_is_read_in_strides_of_the_batch() -> None:
    case = Rnn(BOTH_WAYS, time_major=True, auxiliary="weights", auxiliary_features=3)
    with pytest.raises(Unbatchable, match="strides"):
        assert_batched(case.model(), case.feeds())


@pytest.mark.parametrize("case", [Rnn(time_major=True, time=1), Lstm(time_major=True, time=1)])
@pytest.mark.parametrize("sizes", [(None, 2), ("steps", "rows"), (5, 2)])
def test_one_step_may_become_several(
    case: Rnn | Lstm, sizes: tuple[int | str | None, int | str], tmp_path: Path
) -> None:
    """They count no samples: the export was refused, or had a sequence for each step."""
    content, file = case.model(), tmp_path / "model.onnx"
    interpreter = Interpreter(model_content=content)
    (detail,) = interpreter.get_input_details()
    export_onnx(content, file, input_shapes={detail["name"]: (*sizes, 4)}, stateful=True)
    session = InferenceSession(file)
    x = np.random.default_rng(0).normal(size=(5, 2, 4)).astype(np.float32)
    states = [each for each in session.get_inputs() if each.name != detail["name"]]
    feeds = {each.name: np.zeros((2, each.shape[1]), np.float32) for each in states}
    found, *_ = session.run(None, feeds | {detail["name"]: x})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        interpreter.resize_tensor_input(detail["index"], x.shape)
        interpreter.allocate_tensors()
    interpreter.set_tensor(detail["index"], x)
    interpreter.invoke()
    expected = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
