"""Every lowering of a recurrent cell gives the same, bit for bit; floats are within 1e-5."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.lstm_models import Lstm, invokes
from tests.one_op import T, assert_close
from tests.oracle import litert_interpreter
from tests.rnn_models import Svdf
from tflite_ort import Interpreter
from tflite_ort.schema import ActivationFunctionType as Act
from tflite_ort.schema import Op
from tflite_ort.tuning import session_target
from tflite_ort.tuning.timing import forced

Results = list[list[npt.NDArray[Any]]]
SEQUENCE = Op.UNIDIRECTIONAL_SEQUENCE_LSTM


class WideSvdf(Svdf):
    """Its sums pass 32 bits, and wrap around in LiteRT."""

    def _weights_in_time(self, rng: np.random.Generator) -> T:
        shape = self.units * self.rank, self.memory
        return T.constant(rng.integers(20000, 32767, shape).astype(np.int16), scale=2.0**-20)


def results_of(monkeypatch: pytest.MonkeyPatch, name: str, model: bytes, feeds: Results) -> Results:
    """Ours, by the lowering `name`."""
    monkeypatch.setattr(session_target, "modelled_chooser", lambda _: forced(name))
    return invokes(Interpreter(model_content=model, num_threads=1, cache=False), feeds)


def assert_same(got: Results, want: Results) -> None:
    for ours, theirs in zip(got, want, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            assert_close(one, other, 0, 1e-5, "results")


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("kind", [Svdf, WideSvdf])
@pytest.mark.parametrize("name", ["window", "sums", "rows"])
def test_svdf_of_codes(
    monkeypatch: pytest.MonkeyPatch, name: str, kind: type[Svdf], rank: int
) -> None:
    case = kind(weights="integer", activation=Act.RELU, batch=1, features=30, memory=8, rank=rank)
    model = case.model()
    extremes = [[np.full((1, 30), code, np.int8)] for code in (127, -128, -128, -128, 127) * 4]
    feeds = [*extremes, *case.feeds(10)]
    expected = invokes(litert_interpreter(model), feeds)
    assert len(np.unique(expected)) > 8
    np.testing.assert_array_equal(results_of(monkeypatch, name, model, feeds), expected)


@pytest.mark.parametrize("time", [1, 7])
@pytest.mark.parametrize("name", ["doubles", "floats"])
@pytest.mark.parametrize("form", [{}, {"coupled": True}, {"peephole": True}, {"projection": True}])
def test_lstm_of_codes(
    monkeypatch: pytest.MonkeyPatch, form: dict[str, Any], name: str, time: int
) -> None:
    case = Lstm(SEQUENCE, "8x8_16", time=time, **form)
    model, feeds = case.model(), case.feeds()
    expected = invokes(litert_interpreter(model), feeds)
    np.testing.assert_array_equal(results_of(monkeypatch, name, model, feeds), expected)


@pytest.mark.parametrize("clip", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("op", [SEQUENCE, Op.BIDIRECTIONAL_SEQUENCE_LSTM], ids=lambda op: op.name)
def test_lstm_of_floats(op: Op, clip: float) -> None:
    case = Lstm(op, time=6, cell_clip=clip)
    model, feeds = case.model(), case.feeds()
    got = invokes(Interpreter(model_content=model, num_threads=1), feeds)
    assert_same(got, invokes(litert_interpreter(model), feeds))


def test_states_between_one_and_the_clip_take_no_scan() -> None:
    """Cells whose tanh is 1 in float32, below the clip: the states are computed once more."""
    case = Lstm(SEQUENCE, batch=2, time=20, cell_clip=30.0)
    model, feeds = case.model(), [[np.full((2, 20, 4), 4.0, np.float32)]]
    interpreter = Interpreter(model_content=model, num_threads=1)
    results = invokes(interpreter, feeds)
    assert_same(results, invokes(litert_interpreter(model), feeds))
    interpreter.reset_all_variables()
    nodes = {node for row in interpreter.profile(1) for node in row.nodes}
    assert {"If", "LSTM"} <= nodes
    assert "Scan" not in nodes


@pytest.mark.parametrize("form", [SEQUENCE, Op.BIDIRECTIONAL_SEQUENCE_LSTM])
@pytest.mark.parametrize("batch", [1, 2])
def test_states_at_the_clip_take_no_scan(form: Op, batch: int) -> None:
    """Cells that stay where tanh is 1 in float32: the clip changes their states and no output."""
    case = Lstm(form, batch=batch, time=40, cell_clip=10.0)
    values = [[np.full((batch, 40, 4), 4.0, np.float32)]] * 3
    model = case.model()
    interpreter = Interpreter(model_content=model, num_threads=1)
    litert = litert_interpreter(model)
    assert_same(invokes(interpreter, values), invokes(litert, values))
    nodes = {node for row in interpreter.profile(1) for node in row.nodes}
    assert {"If", "LSTM", "GRU"} <= nodes
    assert "Scan" not in nodes
