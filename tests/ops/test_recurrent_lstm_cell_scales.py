"""Integer LSTM cells whose state is in finer or coarser units than TFLite has a tanh for."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tests.lstm_models import Lstm, invokes
from tests.one_op import Array
from tests.oracle import litert_interpreter
from tflite_ort import AllocationError, Interpreter, export_onnx
from tflite_ort.schema.arithmetic.fixed_point16 import tanh

CODES = np.arange(-(2**15), 2**15).astype(np.int16)


def run(layer: Lstm, providers: list[str] | None) -> list[Array]:
    interpreter = Interpreter(model_content=layer.model(), providers=providers)
    return [outputs[0] for outputs in invokes(interpreter, layer.feeds(3))]


@pytest.mark.parametrize("bits", [8, 4, 16, 17, 20, 30])
def test_tanh_is_rounded_correctly(bits: int) -> None:
    """Of every code."""
    want = [round(math.tanh(code * 2.0**-bits) * 2**15) for code in CODES.tolist()]
    np.testing.assert_array_equal(tanh(CODES, 15 - bits), np.clip(want, -(2**15), 2**15 - 1))


@pytest.mark.parametrize("bits", [0, 4, 8, 16, 17, 20, 30])
@pytest.mark.parametrize("form", [{}, {"peephole": True}, {"layer_norm": True}], ids=str)
def test_both_paths(form: dict[str, bool], bits: int) -> None:
    """ONNX Runtime gives every bit of the kernel, and what is shown is not the same every time."""
    layer = Lstm(arithmetic="8x8_16", cell_bits=bits, **form)
    by_ort, by_numpy = run(layer, None), run(layer, [])
    np.testing.assert_array_equal(by_ort, by_numpy)
    if bits < 30:  # numbers so small are not seen in 8 bits
        assert any((outputs != by_ort[0]).any() for outputs in by_ort)
    export_onnx(layer.model(), stateful=True)


def test_a_finer_state_shows_the_same() -> None:
    """States that both units hold, through LiteRT's tanh and through the one it lacks."""
    coarse = Lstm(arithmetic="8x8_16", cell_bits=15, cell_clip=0.2)
    fine = Lstm(arithmetic="8x8_16", cell_bits=16, cell_clip=0.2)
    want = invokes(litert_interpreter(coarse.model()), coarse.feeds(3))
    for providers in (None, []):
        for got, (expected,) in zip(run(fine, providers), want, strict=True):
            assert np.abs(got.astype(int) - expected).max() <= 1
    without = invokes(litert_interpreter(fine.model()), fine.feeds(3))
    assert np.abs(without[0][0].astype(int) - want[0][0]).max() > 1  # it leaves the tanh out


def test_scales_out_of_reach_are_refused() -> None:
    """Products of 30 bits have no more."""
    layer = Lstm(arithmetic="8x8_16", cell_bits=31)
    with pytest.raises(AllocationError, match="cell_state has scale"):
        Interpreter(model_content=layer.model()).allocate_tensors()


@pytest.mark.parametrize("zero_point", [5, -700])
def test_a_zero_point_of_the_state_means_nothing(zero_point: int) -> None:
    """LiteRT reads the codes as they are."""
    layer = Lstm(arithmetic="8x8_16")
    state = replace(layer.tensors()["cell_state"], zero_point=zero_point)
    model, feeds = layer.model({"cell_state": state}), layer.feeds(3)
    want = invokes(litert_interpreter(model), feeds)
    for providers in (None, []):
        got = invokes(Interpreter(model_content=model, providers=providers), feeds)
        np.testing.assert_array_equal(got, want)
