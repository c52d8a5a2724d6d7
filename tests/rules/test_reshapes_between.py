"""A RESHAPE inside a group of operators can change its meaning: answers stay those of LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort.schema import (
    BatchMatMulOptions,
    Op,
)

Array = npt.NDArray[Any]
SEED = 4


def softmax_of_all(b: Builder, between: Sequence[int]) -> str:
    """An attention of 2 heads whose SOFTMAX is over scores of this shape."""
    q, k, v = b.input("q", 1, 2, 3, 5), b.input("k", 1, 2, 4, 5), b.input("v", 1, 2, 4, 6)
    scores = b.op(Op.BATCH_MATMUL, [q, k], (1, 2, 3, 4), BatchMatMulOptions(adj_y=True))
    weights = b.op(Op.SOFTMAX, [b.reshape(scores, between)], between)
    return b.op(Op.BATCH_MATMUL, [b.reshape(weights, (1, 2, 3, 4)), v], (1, 2, 3, 6))


def rotation(b: Builder, between: Sequence[int]) -> str:
    """The halves of x are joined along the last axis of this shape."""
    whole, half = (1, 3, 5, 8), (1, 3, 5, 4)
    x, angles = b.input("x", *whole), b.input("angles", 1, 5, 4)
    size = b.constant(half, np.int32)
    low, high = (
        b.op(Op.SLICE, [x, b.constant((0, 0, 0, at), np.int32), size], half) for at in (0, 4)
    )
    below = b.op(Op.MUL, [high, b.constant(-1)], half)
    joined = (*between[:-1], 2 * between[-1])
    turned = b.op(Op.CONCATENATION, [b.reshape(part, between) for part in (below, low)], joined)
    twice = b.op(Op.CONCATENATION, [angles, angles], (1, 5, 8))
    cos, sin = (b.op(op, [twice], (1, 5, 8)) for op in (Op.COS, Op.SIN))
    products = (x, cos), (b.reshape(turned, whole), sin)
    return b.op(Op.ADD, [b.op(Op.MUL, pair, whole) for pair in products], whole)


def group_norm(b: Builder, between: Sequence[int]) -> str:
    """The mean of each of 3 groups is taken from elements of this shape, along its last axis."""
    groups, mean_shape, beside = (2, 3, 2, 6), (2, 3, 1, 1), (2, 6, 1, 1)
    x = b.input("x", 2, 6, 3, 2)
    axes, vector = b.constant((2, 3), np.int32), np.linspace(0.5, 2, 6).reshape(1, 3, 2, 1)
    mean = b.op(Op.MEAN, [b.reshape(x, groups), axes], mean_shape)
    flat = [2, *(3 if size == 3 else 1 for size in between[1:])]
    parts = b.reshape(x, between), b.reshape(mean, flat)
    centred = b.reshape(b.op(Op.SUB, parts, between), groups)
    variance = b.op(Op.MEAN, [b.op(Op.MUL, [centred, centred], groups), axes], mean_shape)
    padded = b.op(Op.ADD, [variance, b.constant(1e-5)], mean_shape)
    inverse = b.op(Op.RSQRT, [padded], mean_shape)
    factor = b.op(Op.MUL, [inverse, b.constant(vector)], (2, 3, 2, 1))
    below = b.op(Op.MUL, [mean, b.constant(-1)], mean_shape)
    shift = b.op(Op.MUL, [below, factor], (2, 3, 2, 1))
    offset = b.op(Op.ADD, [shift, b.constant(vector - 1)], (2, 3, 2, 1))
    scaled = b.op(Op.MUL, [x, b.reshape(factor, beside)], (2, 6, 3, 2))
    return b.op(Op.ADD, [scaled, b.reshape(offset, beside)], (2, 6, 3, 2))


def silu(b: Builder, between: Sequence[int]) -> str:
    """x of [2, 1, 3] times sigmoids of it in this shape."""
    x = b.input("x", 2, 1, 3)
    sigmoid = b.op(Op.LOGISTIC, [b.reshape(x, between)], between)
    return b.op(Op.MUL, [x, sigmoid], np.broadcast_shapes((2, 1, 3), tuple(between)))


@pytest.mark.parametrize(
    ("build", "between", "node", "fused"),
    [
        (softmax_of_all, (1, 2, 3, 4), "Attention", True),
        (softmax_of_all, (2, 3, 4), "Attention", True),
        (softmax_of_all, (1, 2, 12), "Attention", False),
        (softmax_of_all, (1, 4, 3, 2), "Attention", False),
        (rotation, (1, 3, 5, 4), "RotaryEmbedding", True),
        (rotation, (1, 3, 20, 1), "RotaryEmbedding", False),
        (rotation, (1, 3, 10, 2), "RotaryEmbedding", False),
        (group_norm, (2, 3, 2, 6), "LayerNormalization", True),
        (group_norm, (2, 12, 3), "LayerNormalization", False),
        (group_norm, (2, 2, 3, 6), "LayerNormalization", False),
        (silu, (2, 1, 3), "Div", True),
        (silu, (1, 2, 3), "Div", False),
        (silu, (3, 2, 1, 1), "Div", False),
    ],
)
def test_the_answers_are_those_of_litert(
    build: Any, between: tuple[int, ...], node: str, fused: bool
) -> None:
    print(f"seed {SEED}")
    builder, rng = Builder(), np.random.default_rng(SEED)
    result = build(builder, between)
    model = graph_model(builder.tensors, builder.nodes, [result])
    made = {out for op in builder.nodes for out in op.outputs}
    shapes = [t.shape for name, t in builder.tensors.items() if t.data is None and name not in made]
    inputs = [rng.normal(0, 2, shape).astype(np.float32) for shape in shapes]
    (got,), (want,) = answers(model, inputs), litert(model, inputs)
    np.testing.assert_allclose(got, want, rtol=0, atol=1e-5 * np.abs(want).max())
    assert bool(optimised_nodes(model)[node]) == fused
