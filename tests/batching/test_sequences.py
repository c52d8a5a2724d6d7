"""Sequences whose first axis is time, in batches."""

from __future__ import annotations

import pytest

from tests.batching.single_runs import assert_batched
from tests.lstm_models import Lstm
from tests.rnn_models import Rnn
from tflite_ort import Unbatchable
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
