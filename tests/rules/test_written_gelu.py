"""GELU by tanh as JAX writes it out: one operator, with nearly the results of the single ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort.opmap.rules.rule import without
from tflite_ort.schema import Op

Array = npt.NDArray[Any]
RULE = "written GELU"
SHAPE = (4, 100)
EDGES = np.float32([0.0, -0.0, 1e-30, -1e-30, 50, -50, 1e10, -1e10, np.inf])


class Gelu(Builder):
    """GELU of `x`; `numbers` stand in the place of its constants."""

    def __init__(
        self, cube: str = "x x x k", result: str = "x half, gate", **numbers: float
    ) -> None:
        super().__init__()
        self.input("x", *SHAPE)
        given = {"half": 0.5, "one": 1, "k": 0.044715, "c": np.sqrt(2 / np.pi), "three": 3}
        self.named = {name: self.constant(v) for name, v in {**given, **numbers}.items()}
        self.named["x"] = "x"
        self.inner = self.of(Op.MUL, self.of(Op.ADD, "x", self.cube(cube)), "c")
        self.tanh = self.op(Op.TANH, [self.inner], SHAPE)
        self.named["gate"] = self.of(Op.ADD, self.tanh, "one")
        first, last = result.split(", ")
        self.result = self.of(Op.MUL, self.of(Op.MUL, *first.split()), last)

    def of(self, op: Op, *operands: str) -> str:
        return self.op(op, [self.named.get(each, each) for each in operands], SHAPE)

    def cube(self, form: str) -> str:
        if form == "pow":
            return self.of(Op.MUL, self.of(Op.POW, "x", "three"), "k")
        if form == "square":
            return self.of(Op.MUL, self.of(Op.MUL, self.of(Op.SQUARE, "x"), "k"), "x")
        if form == "halves":
            return self.of(Op.MUL, self.of(Op.MUL, "x", "x"), self.of(Op.MUL, "x", "k"))
        first, *rest = form.split()
        for each in rest:
            first = self.of(Op.MUL, first, each)
        return first

    def content(self, *more: str) -> bytes:
        return graph_model(self.tensors, self.nodes, [self.result, *more])


CUBES = ("x x x k", "x x k x", "x k x x", "k x x x", "pow", "square", "halves")
RESULTS = ("x half, gate", "gate half, x", "x gate, half")


def numbers() -> Array:
    x = np.linspace(-8, 8, 400, dtype=np.float32)
    x[: len(EDGES)] = EDGES
    return x.reshape(SHAPE)


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("cube", CUBES)
def test_the_numbers_of_single_operators(cube: str, result: str) -> None:
    x, content = numbers(), Gelu(cube, result).content()
    (ours,) = answers(content, [x])
    with without(RULE):
        (single,) = answers(content, [x])
    inside = np.isfinite(x)
    for other in (single, litert(content, [x])[0]):
        np.testing.assert_array_equal(ours[~inside], other[~inside])
        # 1 and a tanh near -1 lose bits of 1.
        assert np.all(np.abs(ours[inside] - other[inside]) <= 3e-7 * np.abs(x)[inside] + 1e-37)
    nodes = optimised_nodes(content)
    assert (nodes["Gelu"], nodes["Tanh"]) == (1, 0), nodes


@pytest.mark.parametrize(
    "changed",
    [{"k": 0.0447}, {"c": 0.7978}, {"half": 0.25}, {"one": 2}, {"c": np.float16(0.79788)}],
)
def test_other_constants_stay(changed: dict[str, float]) -> None:
    x, content = np.clip(numbers(), -8, 8), Gelu(**changed).content()
    np.testing.assert_allclose(
        answers(content, [x])[0], litert(content, [x])[0], rtol=1e-5, atol=1e-5
    )
    assert optimised_nodes(content)["Gelu"] == 0


@pytest.mark.parametrize("read", ["inner", "tanh"])
def test_what_is_read_elsewhere_stays(read: str) -> None:
    b = Gelu()
    content, x = b.content(getattr(b, read)), np.clip(numbers(), -8, 8)
    for ours, theirs in zip(answers(content, [x]), litert(content, [x]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)
    assert optimised_nodes(content)["Gelu"] == 0


def test_the_cube_of_something_else_stays() -> None:
    b = Gelu()
    other = b.input("z", *SHAPE)
    tensors, nodes = b.tensors, list(b.nodes)
    nodes[0] = type(nodes[0])(nodes[0].op, [other, "x"], nodes[0].outputs, nodes[0].options)
    content, x = graph_model(tensors, nodes, [b.result]), np.clip(numbers(), -8, 8)
    np.testing.assert_allclose(
        answers(content, [x, x / 2])[0], litert(content, [x, x / 2])[0], rtol=1e-5, atol=1e-5
    )
    assert optimised_nodes(content)["Gelu"] == 0
