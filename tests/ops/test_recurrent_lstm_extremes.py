"""Integer LSTM cells with the ends of their types: biases, weights, and rows that hardly vary."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.lstm_models import BasicLstm, Lstm, invokes
from tests.one_op import T
from tests.oracle import litert_interpreter
from tflite_ort import Interpreter
from tflite_ort.schema import Op
from tflite_ort.schema.values.lstm import GATES

Array = npt.NDArray[Any]
Feeds = list[list[Array]]
NARROW = Lstm(
    Op.LSTM,
    "8x8_8",
    features=8,
    coupled=True,
    layer_norm=True,
    projection=True,
    projection_bias=True,
)


def check(model: bytes, feeds: Feeds, runs_on: str = "ort") -> None:
    """Both paths give LiteRT's codes, and the first one runs there."""
    wanted = invokes(litert_interpreter(model), feeds)
    for providers, place in ((None, runs_on), ([], "numpy")):
        interpreter = Interpreter(model_content=model, num_threads=1, providers=providers)
        got = invokes(interpreter, feeds)
        assert {row.runs_on for row in interpreter.delegation()} == {place}
        for ours, theirs in zip(chain(*got), chain(*wanted), strict=True):
            np.testing.assert_array_equal(ours, theirs, place)


@pytest.mark.parametrize("bias", [2**31 - 1, -(2**31)])
@pytest.mark.parametrize("name", ["forget_gate_bias", "output_gate_bias", "projection_bias"])
def test_sums_wrap_around(name: str, bias: int) -> None:
    layer = Lstm(arithmetic="8x8_16", projection=True, projection_bias=True)
    shape = layer.tensors()[name].shape
    ends = T.constant(np.full(shape, bias, np.int32), scale=1e-4)
    check(layer.model({name: ends}), layer.feeds(), "numpy")


@pytest.mark.parametrize("bias", [2**31 - 1, -(2**31)])
def test_normalised_sums_and_their_biases_have_room(bias: int) -> None:
    """TFLite adds a bias to a normalised sum in 64 bits."""
    layer = Lstm(arithmetic="8x8_16", layer_norm=True)
    ends = T.constant(np.full(layer.cells, bias, np.int32), scale=1e-4)
    check(layer.model({"output_gate_bias": ends}), layer.feeds())


@pytest.mark.parametrize("share", [0.5, 1])
@pytest.mark.parametrize("cells", [5, 40])
def test_the_lowest_weight(cells: int, share: float) -> None:
    """-128 is a weight of 128, not of -128, in the bounds that choose tables and types."""
    layer = Lstm(arithmetic="8x8_16", cells=cells, features=cells, time=4)
    rng, tensors = np.random.default_rng(0), layer.tensors()
    changed = {}
    for name in (f"{what}_to_{gate}_weights" for what in ("input", "recurrent") for gate in GATES):
        old = tensors[name]
        assert old.data is not None
        lowest = np.where(rng.random(old.shape) < share, -128, old.data).astype(np.int8)
        changed[name] = T.constant(lowest, scale=old.scale)
    check(layer.model(changed), layer.feeds())


@pytest.mark.parametrize("bias", [2**31 - 1, -(2**31)])
def test_sums_of_the_basic_kernel_wrap_around(bias: int) -> None:
    layer = BasicLstm(quantized=True)
    check(layer.model(bias), layer.feeds(), "numpy")


def uniform_weights(layer: Lstm, spread: int, rng: np.random.Generator) -> dict[str, T | None]:
    """Weights of which all cells have nearly the same."""
    changed: dict[str, T | None] = {}
    for gate in GATES[1:] if layer.coupled else GATES:
        shape = layer.cells, layer.features
        codes = 100 + rng.integers(-spread, spread + 1, shape)
        changed[f"input_to_{gate}_weights"] = T.constant(codes.astype(np.int8), scale=0.008)
        changed[f"recurrent_to_{gate}_weights"] = T.constant(
            np.full((layer.cells, layer.units), 7, np.int8), scale=0.008
        )
    return changed


def uniform_feeds(layer: Lstm, rng: np.random.Generator) -> Feeds:
    shape = layer.tensors()["input"].shape
    return [
        [(middle + rng.integers(-2, 3, shape)).astype(np.int8)]
        for middle in (120, 100, 80, 13, -120)
    ]


def test_deviations_beside_a_variance_that_is_lost() -> None:
    """TFLite's variance is 0 where 2**20 / cells is cut to an integer: deviations are large."""
    layer = Lstm(arithmetic="8x8_16", layer_norm=True, cells=100, features=8)
    rng = np.random.default_rng(0)
    changed = uniform_weights(layer, 3, rng)
    for gate in GATES:
        most = np.full(layer.cells, 32767, np.int16)
        changed[f"{gate}_layer_norm_coefficients"] = T.constant(most, scale=2.0**-14)
    check(layer.model(changed), uniform_feeds(layer, rng))


@pytest.mark.parametrize("spread", [0, 3])
def test_a_variance_below_zero(spread: int) -> None:
    """Squares summed in float32 may be less than the square of the mean."""
    layer = replace(NARROW, cells=100)
    rng = np.random.default_rng(0)
    check(layer.model(uniform_weights(layer, spread, rng)), uniform_feeds(layer, rng))
