"""Layers and reductions that need no Reshape, against LiteRT and the graph without the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import FullyConnectedOptions, Op, ReducerOptions, TensorType

Array = npt.NDArray[Any]
SEED, TOKENS, WIDTH, UNITS = 11, 6, 8, 12
NAME = "fewer reshapes"
NAME = "fewer reshapes"


class Rows(Builder):
    """Layers and reductions of one input [batch, TOKENS, WIDTH]."""

    def __init__(self, batch: int) -> None:
        super().__init__()
        self.batch, self.rng = batch, np.random.default_rng(SEED)
        self.input("x", batch, TOKENS, WIDTH)

    def dense(self, x: str, *, bias: bool = False, units: int = UNITS) -> str:
        drawn = self.rng.normal(0, 0.3, (units, self.tensors[x].shape[-1]))
        names = [x, self.constant(drawn)]
        if bias:
            names.append(self.constant(self.rng.normal(0, 1, units)))
        made = FullyConnectedOptions(keep_num_dims=True)
        return self.op(Op.FULLY_CONNECTED, names, (self.batch, TOKENS, units), made)

    def reduced(self, op: Op, x: str, *axes: int, keep_dims: bool = False) -> str:
        shape = self.tensors[x].shape
        kept = tuple(1 if i in axes else size for i, size in enumerate(shape))
        left = tuple(size for i, size in enumerate(shape) if i not in axes)
        options = ReducerOptions(keep_dims=keep_dims)
        places = self.constant(axes, np.int32)
        return self.op(op, [x, places], kept if keep_dims else left, options)

    def turned(self, x: str) -> str:
        """What needs the dimensions of `x`."""
        batch, tokens, units = self.tensors[x].shape
        order = self.constant((0, 2, 1), np.int32)
        return self.op(Op.TRANSPOSE, [x, order], (batch, units, tokens))


Build = Callable[[Rows], list[str]]


def layers(n: Rows, *bias: bool, behind: bool = True) -> list[str]:
    """Layers of the same rows, which a layer makes."""
    rows = n.dense("x", bias=True) if behind else "x"
    return [n.turned(n.dense(rows, bias=each)) for each in bias]


def read_twice(n: Rows) -> list[str]:
    rows = n.dense("x", bias=True)
    first, second = n.dense(rows), n.dense(rows)
    return [n.turned(first), n.turned(second), n.dense(first, bias=True)]


def results_too(n: Rows) -> list[str]:
    rows = n.dense("x", bias=True)
    first, second = n.dense(rows), n.dense(rows)
    return [n.turned(first), n.turned(second), first, second, rows]


def of_other_shapes(n: Rows) -> list[str]:
    rows = n.dense("x", bias=True)
    parts = [n.reshape(n.dense(rows), (n.batch, *size, UNITS)) for size in ((3, 2), (2, 3))]
    order = n.constant((0, 2, 1, 3), np.int32)
    return [n.op(Op.TRANSPOSE, [each, order], n.tensors[each].shape) for each in parts]


# The network, the batch, how many products keep their shape, and how many Reshapes there are.
LAYERS: dict[str, tuple[Build, int, int, int]] = {
    "one": (lambda n: layers(n, False, behind=False), 1, 1, 0),
    "three": (lambda n: layers(n, False, False, False, behind=False), 2, 3, 0),
    "behind a layer": (lambda n: layers(n, False, False, False), 1, 3, 1),
    "behind a layer, of a batch": (lambda n: layers(n, False, False, False), 3, 3, 1),
    "with a constant": (lambda n: layers(n, False, True, False), 1, 2, 2),
    "with constants": (lambda n: layers(n, False, True), 1, 0, 2),
    "one behind a layer": (lambda n: layers(n, False), 1, 0, 1),
    "of other shapes": (of_other_shapes, 1, 0, 2),
    "read twice": (read_twice, 1, 0, 2),
}


def reduced(*axes: int, op: Op = Op.MEAN, keep_dims: bool = False, rows: bool = True) -> Build:
    def build(n: Rows) -> list[str]:
        x = n.dense("x", bias=True) if rows else "x"
        return [n.reduced(op, x, *axes, keep_dims=keep_dims)]

    return build


def read_by_two(n: Rows) -> list[str]:
    rows = n.dense("x", bias=True)
    return [n.reduced(Op.MEAN, rows, 1), rows]


# The network, the batch, and how many Reshapes there are.
REDUCTIONS: dict[str, tuple[Build, int, int]] = {
    "tokens": (reduced(1), 1, 0),
    "largest of tokens": (reduced(1, op=Op.REDUCE_MAX), 1, 0),
    "least of tokens": (reduced(1, op=Op.REDUCE_MIN), 1, 0),
    "sum of tokens": (reduced(1, op=Op.SUM), 1, 0),
    "product of tokens": (reduced(1, op=Op.REDUCE_PROD), 1, 0),
    "tokens of a batch": (reduced(1), 2, 1),
    "tokens and batch": (reduced(0, 1), 2, 1),
    "batch of one": (reduced(0), 1, 1),
    "batch of one and tokens": (reduced(0, 1), 1, 0),
    "units": (reduced(2), 1, 1),
    "all": (reduced(0, 1, 2), 1, 0),
    "no rows": (reduced(1, rows=False), 2, 0),
    "no rows, least": (reduced(0, 2, op=Op.REDUCE_MIN, rows=False), 2, 0),
    "a result too": (read_by_two, 1, 0),
}


def network(build: Build, batch: int) -> tuple[bytes, list[Array]]:
    print(f"seed {SEED}")
    n = Rows(batch)
    content = graph_model(n.tensors, n.nodes, build(n))
    x = np.random.default_rng(SEED).normal(0, 1, (batch, TOKENS, WIDTH)).astype(np.float32)
    return content, [x]


def compare(content: bytes, inputs: list[Array]) -> None:
    with without(NAME):
        plain = answers(content, inputs)
    kept = answers(content, inputs, experimental_preserve_all_tensors=True)
    given = zip(answers(content, inputs), plain, kept, litert(content, inputs), strict=True)
    for got, *others in given:
        for want in others:
            assert got.shape == want.shape
            np.testing.assert_allclose(got, want, rtol=0, atol=3e-6 * np.abs(want).max())


@pytest.mark.parametrize("name", LAYERS)
def test_layers_keep_the_shape_of_what_they_multiply(name: str) -> None:
    build, batch, products, reshapes = LAYERS[name]
    content, inputs = network(build, batch)
    counts = optimised_nodes(content)
    assert (counts["FusedMatMul"], counts["Reshape"]) == (products, reshapes), counts
    compare(content, inputs)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_leave_axes_out_themselves(name: str) -> None:
    build, batch, reshapes = REDUCTIONS[name]
    content, inputs = network(build, batch)
    counts = optimised_nodes(content)
    assert counts["Reshape"] == reshapes, counts
    compare(content, inputs)


@pytest.mark.parametrize("build", [read_twice, results_too])
def test_results_in_the_middle(build: Build) -> None:
    compare(*network(build, 2))


@pytest.mark.parametrize("op", [Op.REDUCE_MAX, Op.REDUCE_MIN, Op.MEAN, Op.SUM])
@pytest.mark.parametrize("batch", [1, 2])
def test_codes(op: Op, batch: int) -> None:
    n = Rows(batch)
    n.tensors["x"] = T((batch, TOKENS, WIDTH), TensorType.INT8, scale=0.5, zero_point=3)
    result = n.reduced(op, "x", 1)
    n.tensors[result] = T(n.tensors[result].shape, TensorType.INT8, scale=0.5, zero_point=3)
    content = graph_model(n.tensors, n.nodes, [result])
    x = np.random.default_rng(SEED).integers(-128, 128, (batch, TOKENS, WIDTH)).astype(np.int8)
    (got,), (want,) = answers(content, [x]), litert(content, [x])
    np.testing.assert_array_equal(got, want)
