"""LOGISTIC and SiLU: one node where what follows cannot tell 1e-8 from 0, exact elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers, unfused
from tflite_ort.schema import Op, ReducerOptions

SHAPE = (4, 64)
KEPT = ReducerOptions(keep_dims=True)
X = np.linspace(-60, 60, 256, dtype=np.float32).reshape(SHAPE)


def model(*rows: tuple[Op, Sequence[str], str]) -> bytes:
    """Rows of an operator, its inputs and its output; `w` and `b` are constants."""
    rng = np.random.default_rng(0)
    tensors = {"x": T(SHAPE), "w": T.constant(rng.normal(0, 0.2, (64, 64)).astype(np.float32))}
    tensors |= {"b": T.constant(rng.uniform(1, 2, 64).astype(np.float32))}
    tensors |= {"tiny": T.constant(np.float32(1e-9)), "huge": T.constant(np.float32(1e6))}
    tensors |= {output: T(SHAPE) for _, _, output in rows}
    nodes = [Node(op, inputs, [output]) for op, inputs, output in rows]
    used = {name for _, inputs, output in rows for name in (*inputs, output)}
    return graph_model({k: v for k, v in tensors.items() if k in used}, nodes, [rows[-1][2]])


SIGMOID = (Op.LOGISTIC, ["x"], "s")
SILU = (SIGMOID, (Op.MUL, ["x", "s"], "y"))
PRODUCT = (Op.FULLY_CONNECTED, ["y", "w", "b"], "z")
LOST = {
    "silu, product": (*SILU, PRODUCT),
    "silu, sum": (*SILU, (Op.ADD, ["y", "x"], "z")),
    "sigmoid, sum": (SIGMOID, (Op.ADD, ["s", "b"], "z")),
    "sum of sigmoids, product": (
        SIGMOID,
        (Op.NEG, ["x"], "u"),
        (Op.LOGISTIC, ["u"], "t"),
        (Op.ADD, ["s", "t"], "y"),
        PRODUCT,
    ),
    "sigmoid, tanh, product": (SIGMOID, (Op.TANH, ["s"], "y"), PRODUCT),
    "sigmoid, factor, product": (SIGMOID, (Op.MUL, ["s", "b"], "y"), PRODUCT),
}
TOLD = {
    "sigmoid": (SIGMOID,),
    "silu": SILU,
    "sigmoid, logarithm": (SIGMOID, (Op.LOG, ["s"], "z")),
    "sigmoid, tiny, logarithm": (SIGMOID, (Op.ADD, ["s", "tiny"], "y"), (Op.LOG, ["y"], "z")),
    "sigmoid, large factor, sum": (
        SIGMOID,
        (Op.MUL, ["s", "huge"], "y"),
        (Op.ADD, ["y", "b"], "z"),
    ),
    "sum of sigmoids": (SIGMOID, (Op.LOGISTIC, ["x"], "t"), (Op.ADD, ["s", "t"], "z")),
}


@pytest.mark.parametrize("name", LOST)
def test_one_node_where_it_is_lost(name: str) -> None:
    content = model(*LOST[name])
    counts = optimised_nodes(content)
    sigmoids = sum(op is Op.LOGISTIC for op, _, _ in LOST[name])
    assert counts["Sigmoid"] + counts["QuickGelu"] == sigmoids, counts
    assert not counts["Exp"], counts
    (got,), (want,), (theirs,) = (f(content, [X]) for f in (answers, unfused, litert))
    for reference in (want, theirs):
        np.testing.assert_allclose(got, reference, rtol=0, atol=1e-6 * np.abs(want).max())


def test_the_largest_of_several() -> None:
    b = Builder()
    largest = b.op(Op.LOGISTIC, [b.input("x", *SHAPE)], SHAPE)
    largest = b.op(Op.REDUCE_MAX, [largest, b.constant([1], np.int32)], (4, 1), KEPT)
    weights = b.constant(np.linspace(-1, 1, 8).reshape(8, 1))
    content = graph_model(
        b.tensors, b.nodes, [b.op(Op.FULLY_CONNECTED, [largest, weights], (4, 8))]
    )
    assert optimised_nodes(content)["Sigmoid"] == 1
    (got,), (theirs,) = (f(content, [X]) for f in (answers, litert))
    np.testing.assert_allclose(got, theirs, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", TOLD)
def test_exact_where_it_can_be_told(name: str) -> None:
    content = model(*TOLD[name])
    counts = optimised_nodes(content)
    assert not counts["Sigmoid"] + counts["QuickGelu"], counts
    got, want = answers(content, [X])[0], litert(content, [X])[0]
    # The logarithm of a number near 1 is as far off as that number.
    atol = 2e-7 if TOLD[name][-1][0] is Op.LOG else 1e-30
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=atol)
