"""The constant that a layer adds to all keys of an attention is not added."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import T, graph_model
from tests.optimised import optimised_graphs
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers, unfused
from tflite_ort.schema import (
    ActivationFunctionType,
    BatchMatMulOptions,
    FullyConnectedOptions,
    Op,
)

Array = npt.NDArray[Any]
SEED, TOKENS, HEADS, SIZE = 7, 96, 4, 40
WIDTH, SCALE = HEADS * SIZE, 3e-4


class Layer(Builder):
    """An attention over layers of one input [1, TOKENS, WIDTH]; weights are drawn."""

    def __init__(self, *, codes: bool) -> None:
        super().__init__()
        self.rng, self.codes = np.random.default_rng(SEED), codes
        self.input("x", 1, TOKENS, WIDTH)

    def dense(self, *, largest: float = 1.0, **options: Any) -> str:
        drawn = self.rng.integers(-127, 128, (WIDTH, WIDTH)).astype(np.int8)
        weights = f"weights{len(self.tensors)}"
        codes, floats = T.constant(drawn, scale=SCALE), T.constant(np.float32(SCALE) * drawn)
        self.tensors[weights] = codes if self.codes else floats
        bias = self.constant(self.rng.uniform(-largest, largest, WIDTH))
        made = FullyConnectedOptions(keep_num_dims=True, **options)
        return self.op(Op.FULLY_CONNECTED, ["x", weights, bias], (1, TOKENS, WIDTH), made)

    def heads(self, rows: str) -> str:
        apart = self.reshape(rows, (1, TOKENS, HEADS, SIZE))
        return self.turned(apart, (1, HEADS, TOKENS, SIZE))

    def turned(self, value: str, shape: tuple[int, ...]) -> str:
        return self.op(Op.TRANSPOSE, [value, self.constant((0, 2, 1, 3), np.int32)], shape)

    def attention(self, q: str, k: str, v: str) -> str:
        scores, adjoint = (1, HEADS, TOKENS, TOKENS), BatchMatMulOptions(adj_y=True)
        product = self.op(Op.BATCH_MATMUL, [self.heads(q), self.heads(k)], scores, adjoint)
        weights = self.op(Op.SOFTMAX, [product], scores)
        made = (1, HEADS, TOKENS, SIZE)
        result = self.op(Op.BATCH_MATMUL, [weights, self.heads(v)], made)
        turned = self.turned(result, (1, TOKENS, HEADS, SIZE))
        return self.reshape(turned, (1, TOKENS, WIDTH))


def plain(n: Layer, **of_keys: Any) -> list[str]:
    return [n.attention(n.dense(), n.dense(**of_keys), n.dense())]


def values_too(n: Layer) -> list[str]:
    keys = n.dense()
    return [n.attention(n.dense(), keys, keys)]


def a_result_too(n: Layer) -> list[str]:
    keys = n.dense()
    return [n.attention(n.dense(), keys, n.dense()), keys]


def of_each_token(n: Layer) -> list[str]:
    """A constant that is another one for each key; the bias before it is not the last sum."""
    places = n.constant(n.rng.uniform(-2, 2, (1, TOKENS, WIDTH)))
    keys = n.op(Op.ADD, [n.dense(), places], (1, TOKENS, WIDTH))
    return [n.attention(n.dense(), keys, n.dense())]


# How many of three layers add their constant.
NETWORKS: dict[str, tuple[Callable[[Layer], list[str]], int]] = {
    "plain": (plain, 2),
    "values too": (values_too, 2),
    "a result too": (a_result_too, 3),
    "of each token": (of_each_token, 3),
    "activated": (
        partial(plain, fused_activation_function=ActivationFunctionType.RELU),
        3,
    ),
}


def sums_with_rows(content: bytes) -> int:
    """How many nodes of the graph that runs add a constant row."""
    count = 0
    for model in optimised_graphs(content):
        rows = {each.name for each in model.graph.initializer if list(each.dims) == [WIDTH]}
        for node in model.graph.node:
            layer = node.op_type in {"Gemm", "FusedGemm"} and len(node.input) == 3
            count += (layer or node.op_type == "Add") and not rows.isdisjoint(node.input)
    return count


def network(build: Callable[[Layer], list[str]], *, codes: bool) -> bytes:
    n = Layer(codes=codes)
    return graph_model(n.tensors, n.nodes, build(n))


def inputs() -> list[Array]:
    print(f"seed {SEED}")
    return [np.random.default_rng(SEED).normal(0, 1, (1, TOKENS, WIDTH)).astype(np.float32)]


@pytest.mark.parametrize("codes", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_constants_of_keys(name: str, codes: bool) -> None:
    build, added = NETWORKS[name]
    content, x = network(build, codes=codes), inputs()
    assert sums_with_rows(content) == added
    near = 2e-2 if codes else 3e-6  # rows are rounded
    given = zip(answers(content, x), unfused(content, x), litert(content, x), strict=True)
    for got, same, theirs in given:
        largest = np.abs(theirs).max()
        np.testing.assert_allclose(got, same, rtol=0, atol=3e-6 * largest)
        np.testing.assert_allclose(got, theirs, rtol=0, atol=near * largest)


def test_large_constants_do_not_round_scores() -> None:
    """LiteRT is 1e-5 away from what it gives without the constant."""
    with_large, without = (
        network(partial(plain, largest=largest), codes=False) for largest in (1000.0, 0.0)
    )
    x = inputs()
    (got,), (want,), (rounded,) = answers(with_large, x), litert(without, x), litert(with_large, x)
    limit = 3e-6 * np.abs(want).max()
    np.testing.assert_allclose(got, want, rtol=0, atol=limit)
    assert np.abs(rounded - want).max() > 3 * limit
