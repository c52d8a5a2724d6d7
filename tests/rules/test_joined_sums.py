"""A sum of two layers has one constant, and a Gemm adds what comes beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import T, graph_model, ours
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tflite_ort.schema import ActivationFunctionType, FullyConnectedOptions, Op

Array = npt.NDArray[Any]
SEED, ROWS, WIDTH = 9, 96, 256
RELU = ActivationFunctionType.RELU


class Layers(Builder):
    """Layers over [rows, width]; all weights are drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(SEED)

    def row(self) -> str:
        return self.constant(self.rng.normal(0, 1, WIDTH))

    def dense(self, x: str, *, bias: bool = True, codes: bool = False, **options: Any) -> str:
        if codes:
            drawn = self.rng.integers(-127, 128, (WIDTH, WIDTH)).astype(np.int8)
            weights = f"codes{len(self.tensors)}"
            self.tensors[weights] = T.constant(drawn, scale=0.001)
        else:
            weights = self.constant(self.rng.normal(0, 0.1, (WIDTH, WIDTH)))
        inputs = [x, weights, *([self.row()] if bias else ())]
        made = FullyConnectedOptions(**options)
        return self.op(Op.FULLY_CONNECTED, inputs, (ROWS, WIDTH), made)

    def scaled(self, x: str) -> str:
        scaled = self.op(Op.MUL, [x, self.row()], (ROWS, WIDTH))
        return self.op(Op.ADD, [scaled, self.row()], (ROWS, WIDTH))

    def sum(self, a: str, b: str) -> str:
        return self.op(Op.ADD, [a, b], (ROWS, WIDTH))


def without_bias(n: Layers, x: str) -> list[str]:
    return [n.sum(x, n.dense(x, bias=False))]


def two_constants(n: Layers, x: str) -> list[str]:
    return [n.sum(n.dense(x), n.scaled(x))]


def two_constants_turned(n: Layers, x: str) -> list[str]:
    return [n.sum(n.scaled(x), n.dense(x))]


def rounded(n: Layers, x: str) -> list[str]:
    return [n.sum(n.dense(x, codes=True), n.scaled(x))]


def two_scaled(n: Layers, x: str) -> list[str]:
    return [n.sum(n.scaled(x), n.scaled(x))]


def one_after_another(n: Layers, x: str) -> list[str]:
    y = n.sum(n.dense(x, bias=False), n.scaled(x))
    return [n.sum(n.dense(y), n.scaled(y))]


def two_products(n: Layers, x: str) -> list[str]:
    return [n.sum(n.dense(x), n.dense(x, bias=False))]


def read_elsewhere(n: Layers, x: str) -> list[str]:
    product, scaled = n.dense(x, bias=False), n.scaled(x)
    return [n.sum(product, scaled), product, scaled]


def activated(n: Layers, x: str) -> list[str]:
    return [n.sum(n.dense(x, fused_activation_function=RELU), n.scaled(x))]


def doubled(n: Layers, x: str) -> list[str]:
    product = n.dense(x, bias=False)
    return [n.sum(product, product)]


# How many nodes add.
NETWORKS: dict[Callable[[Layers, str], list[str]], int] = {
    without_bias: 0,
    two_constants: 1,
    two_constants_turned: 1,
    rounded: 2,
    two_scaled: 2,
    one_after_another: 2,
    two_products: 0,
    read_elsewhere: 2,
    activated: 2,
    doubled: 1,
}


@pytest.mark.parametrize("network", NETWORKS, ids=lambda each: each.__name__)
def test_sums_of_layers(network: Callable[[Layers, str], list[str]]) -> None:
    print(f"seed {SEED}")
    n = Layers()
    n.input("x", ROWS, WIDTH)
    content = graph_model(n.tensors, n.nodes, network(n, "x"))
    assert optimised_nodes(content)["Add"] == NETWORKS[network]
    x = n.rng.normal(0, 1, (ROWS, WIDTH)).astype(np.float32)
    wanted, given = litert(content, [x]), ours(content, [x])[0]
    near = 2e-2 if network is rounded else 1e-5
    for got, want in zip(given, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=near * np.abs(want).max())
