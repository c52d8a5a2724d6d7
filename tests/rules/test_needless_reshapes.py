"""RESHAPE before an operator that broadcasts: left out where it would broadcast without it too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
from tflite_ort.schema import DivOptions, Op, TensorType

Array = npt.NDArray[Any]
RULE = "needless reshapes"
SEED = 4
CODES = T((), TensorType.INT8, scale=0.25, zero_point=-3)


def model(
    op: Op,
    shape: Sequence[int],
    reshaped: Sequence[int],
    other: Sequence[int],
    *,
    like: T | None = None,
    also: bool = False,
) -> bytes:
    """x + x, reshaped, and `y`; also: the reshaped tensor is a result too."""
    b = Builder()
    b.input("x", *shape)
    b.input("y", *other)
    twice = b.op(Op.ADD, ["x", "x"], shape)
    moved = b.reshape(twice, reshaped)
    made = np.broadcast_shapes(tuple(reshaped), tuple(other))
    result = b.op(op, [moved, "y"], made, DivOptions() if op is Op.DIV else None)
    if like is not None:
        for name in ("x", "y", twice, moved, result):
            b.tensors[name] = replace(like, shape=b.tensors[name].shape)
    return graph_model(b.tensors, b.nodes, [result, moved] if also else [result])


def check(content: bytes, *shapes: Sequence[int], codes: bool = False) -> tuple[int, int]:
    """How many Reshapes there are with the rule and without it."""
    print(f"seed {SEED}")
    rng = np.random.default_rng(SEED)
    drawn = [
        rng.integers(-128, 128, shape).astype(np.int8)
        if codes
        else rng.uniform(0.5, 2, shape).astype(np.float32)
        for shape in shapes
    ]
    with without(RULE):
        single, before = answers(content, drawn), optimised_nodes(content)["Reshape"]
    ours = answers(content, drawn)
    for one, other, theirs in zip(ours, single, litert(content, drawn), strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(one, theirs)
    return optimised_nodes(content)["Reshape"], before


@pytest.mark.parametrize("op", [Op.ADD, Op.SUB, Op.MUL, Op.DIV])
def test_a_row(op: Op) -> None:
    content = model(op, (1, 8), (8,), (1, 8))
    assert check(content, (1, 8), (1, 8)) == (0, 1)


def test_ones_before_and_another_broadcast() -> None:
    content = model(Op.ADD, (1, 1, 1, 6), (1, 6), (2, 3, 4, 6))
    assert check(content, (1, 1, 1, 6), (2, 3, 4, 6)) == (0, 1)


def test_codes() -> None:
    content = model(Op.ADD, (1, 1, 6), (6,), (1, 5, 6), like=CODES)
    assert check(content, (1, 1, 6), (1, 5, 6), codes=True) == (0, 1)


def test_what_is_read_elsewhere_stays() -> None:
    content = model(Op.ADD, (1, 8), (8,), (1, 8), also=True)
    assert check(content, (1, 8), (1, 8)) == (1, 1)


@pytest.mark.parametrize(
    ("shape", "reshaped", "other"),
    [
        ((2, 3), (3, 2), (3, 2)),
        ((6, 1), (6,), (1, 6)),  # it would be a column
        ((1, 6), (6,), (6,)),  # the result has no such dimension
        ((6,), (1, 6), (3, 6)),  # it makes dimensions
    ],
)
def test_other_reshapes_stay(
    shape: Sequence[int], reshaped: Sequence[int], other: Sequence[int]
) -> None:
    after, before = check(model(Op.ADD, shape, reshaped, other), shape, other)
    assert after == before
