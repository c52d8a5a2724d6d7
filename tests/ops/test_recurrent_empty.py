"""Recurrent layers without rows, steps, columns or units: ONNX Runtime's LSTM and GRU end the
process there, so they do not get them."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.lstm_models import Lstm, invokes
from tests.one_op import assert_close
from tests.ops.test_control_flow_loop_cells import CELLS, Body, feeds
from tests.oracle import litert_interpreter
from tests.rnn_models import Rnn
from tests.subgraph_models import invoked
from tflite_ort import BridgeError, Interpreter, export_onnx
from tflite_ort.schema import ExportError, Op

SEQUENCE, BOTH_WAYS = Op.UNIDIRECTIONAL_SEQUENCE_LSTM, Op.BIDIRECTIONAL_SEQUENCE_LSTM
PROJECTED = {"projection": True, "projection_bias": True}
EMPTY = [
    *(
        Lstm(op, batch=batch, time=time, time_major=major)
        for op in (SEQUENCE, BOTH_WAYS)
        for batch, time in ((0, 3), (3, 0), (0, 0), (0, 1))
        for major in (False, True)
    ),
    Lstm(SEQUENCE, batch=0, cell_clip=10.0),
    Lstm(SEQUENCE, "hybrid", batch=0),
    Lstm(Op.LSTM, batch=0),
    Lstm(SEQUENCE, "8x8_16", time=0),
    Lstm(SEQUENCE, "8x8_16", cells=0),
    Lstm(Op.LSTM, "8x8_16", outputs=0, projection=True),
    Lstm(Op.LSTM, "8x8_8", cells=0, coupled=True, layer_norm=True, **PROJECTED),
    Lstm(SEQUENCE, "hybrid", time=0),
    Lstm(SEQUENCE, time=0, cell_clip=1.0),
    *(
        Rnn(op, batch, time)
        for op in (Op.UNIDIRECTIONAL_SEQUENCE_RNN, Op.BIDIRECTIONAL_SEQUENCE_RNN)
        for batch, time in ((0, 3), (3, 0))
    ),
]


@pytest.mark.parametrize("layer", EMPTY, ids=lambda layer: f"{layer.op.name}-{layer.name}")
def test_a_layer_of_nothing_gives_nothing(layer: Any) -> None:
    model, given = layer.model(), layer.feeds(2)
    want = invokes(litert_interpreter(model), given)
    for providers in (None, []):
        got = invokes(Interpreter(model_content=model, providers=providers), given)
        for mine, theirs in zip(got, want, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                assert a.shape == b.shape
                assert_close(a, b, 0, 1e-5, layer.op.name)


@pytest.mark.parametrize("make", [make for row in CELLS.values() for make in row])
def test_a_cell_of_nothing_in_a_loop(make: Any) -> None:
    for batch, inputs, units in product((0, 2), repeat=3):
        body = Body(np.random.default_rng(0), batch, inputs, units)
        states = make(body, Op.TANH)
        model = body.model(states, 3, states["h"])
        given = feeds(body, len(states), 3)[0]
        results = []
        for providers in (None, []):
            try:
                interpreter = Interpreter(model_content=model, providers=providers)
                results.append(invoked(interpreter, given))
            except BridgeError:
                results.append([])
        for a, b in zip(*results, strict=True):
            assert_close(a, b, 0, 1e-5, make.__name__)


def test_a_state_without_rows_beside_a_batch_that_is_computed() -> None:
    """Nobody knows before that there are no rows; ONNX Runtime would not live to tell."""
    model = Lstm(SEQUENCE, batch=0).model()
    with pytest.raises(ExportError, match="a state without rows"):
        export_onnx(model, input_shapes={"input": (None, 3, 4)})
