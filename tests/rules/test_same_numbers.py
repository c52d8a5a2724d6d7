"""Rules on single operators of other nodes: each one changes the graph, and not the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.lstm_models import Lstm, invokes
from tests.one_op import T, one_op_model
from tests.optimised import optimised_nodes
from tests.rnn_models import Svdf
from tflite_ort import Interpreter
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import (
    ActivationFunctionType,
    FullyConnectedOptions,
    Op,
    SubOptions,
    TensorType,
)

Array = npt.NDArray[Any]
SEED = 7
INT4, INT8, INT16, INT32 = TensorType.INT4, TensorType.INT8, TensorType.INT16, TensorType.INT32


@dataclass(frozen=True)
class Network:
    """A model, the feeds of its invokes, and by how much of the largest result the numbers may
    differ."""

    model: bytes
    feeds: Sequence[Sequence[Array]]
    tolerance: float = 0.0


def of_one(op: Op, inputs: Sequence[T], output: T, options: Any = None, **kind: Any) -> Network:
    rng = np.random.default_rng(SEED)
    feeds = [[each.random(rng) for each in inputs if each.data is None] for _ in range(2)]
    return Network(one_op_model(op, inputs, [output], options), feeds, **kind)


def weights(type: TensorType, shape: tuple[int, ...], axis: int = 0) -> T:
    rng, most = np.random.default_rng(SEED), 7 if type is INT4 else 127
    codes = rng.integers(-most, most + 1, shape).astype(np.int8)
    scales = rng.uniform(0.01, 0.02, shape[axis]).astype(np.float32).tolist()
    return T.constant(codes, type, scale=scales, axis=axis)


def dense(type: TensorType, units: int) -> Network:
    inputs = [T((1, 512)), weights(type, (units, 512))]
    options = FullyConnectedOptions()
    # A row is rounded to 8 bits by the rule, and not without it.
    return of_one(Op.FULLY_CONNECTED, inputs, T((1, units)), options, tolerance=0.02)


def subtracted() -> Network:
    images = [T((2, 20, 30, 3), INT8, scale=scale, zero_point=3) for scale in (0.1, 0.0937)]
    output = T((2, 20, 30, 3), INT8, scale=0.211, zero_point=-5)
    # One code, for few of all pairs: those whose difference is next to a half.
    return of_one(Op.SUB, images, output, SubOptions(), tolerance=1 / 100)


def widened() -> Network:
    codes, result = T((4, 100), INT16, scale=0.01), T((4, 100), INT32, scale=0.003)
    return of_one(Op.QUANTIZE, [codes], result)


def transformed() -> Network:
    length = T.constant(np.array([1, 256], np.int32))
    output = T((4, 129), TensorType.COMPLEX64)
    return of_one(Op.RFFT2D, [T((4, 256)), length], output, tolerance=1e-6)


def lstm(arithmetic: Any, tolerance: float = 0.0) -> Network:
    case = Lstm(Op.UNIDIRECTIONAL_SEQUENCE_LSTM, arithmetic, time=7)
    return Network(case.model(), case.feeds(), tolerance)


def svdf() -> Network:
    case = Svdf(
        weights="integer", activation=ActivationFunctionType.RELU, batch=1, features=30, memory=8
    )
    return Network(case.model(), case.feeds(10))


NETWORKS: dict[str, Callable[[], Network]] = {
    "rows in codes": lambda: dense(INT8, 256),
    "rows of 4 bits": lambda: dense(INT4, 64),
    "integer cells": lambda: lstm("8x8_16"),
    "SVDF of codes": svdf,
    "SUB as a sum": subtracted,
    "widened by a table": widened,
    "transforms of short rows": transformed,
}


def results(network: Network) -> list[Array]:
    interpreter = Interpreter(model_content=network.model, num_threads=1, cache=False)
    return [each for outputs in invokes(interpreter, network.feeds) for each in outputs]


@pytest.mark.parametrize("name", NETWORKS)
def test_other_nodes_and_the_same_numbers(name: str) -> None:
    print(f"seed {SEED}")
    network = NETWORKS[name]()
    nodes, got = optimised_nodes(network.model), results(network)
    with without(name):
        plain, wanted = optimised_nodes(network.model), results(network)
    assert nodes != plain
    for one, other in zip(got, wanted, strict=True):
        most = network.tolerance * float(np.abs(other).max()) if network.tolerance else 0.0
        np.testing.assert_allclose(one, other, rtol=0, atol=most)
