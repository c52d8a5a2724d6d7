"""LSTMs of codes step by step, in 16-bit nodes between pairs: within a quantum of LiteRT's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.lstm_models import Lstm, invokes
from tests.npu_graphs import for_npu
from tests.oracle import litert_interpreter
from tflite_ort import Interpreter
from tflite_ort.schema import Op

NARROW = Lstm(
    Op.LSTM, "8x8_8", coupled=True, layer_norm=True, projection=True, projection_bias=True
)
PLAIN = Lstm(arithmetic="8x8_16", cell_bits=14, time=9, cells=7)


@pytest.mark.parametrize(
    "form",
    [
        PLAIN,
        replace(PLAIN, time_major=True, batch=3),
        replace(PLAIN, batch=1, time=1),
        replace(PLAIN, cell_bits=15, features=33),
        replace(PLAIN, cell_clip=10.0),
        replace(PLAIN, op=Op.LSTM, time=1),
    ],
    ids=lambda form: form.name,
)
def test_every_step_is_within_a_quantum(monkeypatch: pytest.MonkeyPatch, form: Lstm) -> None:
    """Over several invokes, whose states go on."""
    model, feeds = form.model(), form.feeds()
    wanted = invokes(litert_interpreter(model), feeds)
    for_npu(monkeypatch)
    ours = Interpreter(model_content=model)
    got = invokes(ours, feeds)
    assert [row.runs_on for row in ours.delegation()] == ["ort"]
    for first, second in zip(got, wanted, strict=True):
        for a, b in zip(first, second, strict=True):
            assert np.abs(a.astype(np.int32) - b.astype(np.int32)).max() <= 1
    assert any(np.std(each) > 5 for step in wanted for each in step)


@pytest.mark.parametrize(
    ("form", "why"),
    [
        (replace(PLAIN, peephole=True), "peepholes"),
        (replace(PLAIN, projection=True), "projections"),
        (replace(PLAIN, layer_norm=True), "normalization"),
        (replace(PLAIN, coupled=True), "coupled gates"),
        (replace(PLAIN, cell_clip=0.3), "cells that are clipped"),
        (replace(PLAIN, time=65), "more than 64 steps"),
        (NARROW, "cells with 8-bit sums"),
    ],
    ids=lambda value: value.name if isinstance(value, Lstm) else "",
)
def test_what_is_left_has_a_reason(monkeypatch: pytest.MonkeyPatch, form: Lstm, why: str) -> None:
    for_npu(monkeypatch)
    ours = Interpreter(model_content=form.model())
    ours.allocate_tensors()
    (row,) = ours.delegation()
    assert row.runs_on == "numpy"
    assert why in row.reason
