"""Mish and softplus as converters write them: fewer nodes, or nodes without a logarithm."""

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
from tests.rules.trees import answers, unfused
from tflite_ort.schema import Op

Array = npt.NDArray[Any]
EDGES = np.float32([-0.0, 0.0, 1e-45, -1e-45, 88.8, 89, 3e38, -88.8, -104, -3e38, 20, 19.99, 1e-3])
SPECIAL = np.float32([np.inf, -np.inf, np.nan])
# Of each number: how far off ours is, and TFLite's, whose sum of 1 and a power is rounded.
BOUND, THEIRS = 1.2e-7, 2.4e-7


def model(
    shape: Sequence[int],
    *,
    one: float = 1.0,
    mish: bool = True,
    other: bool = False,
    also: int | None = None,
) -> bytes:
    """EXP, ADD, LOG, TANH, MUL of `x`; other: times another input; also: a further result."""
    b = Builder()
    b.input("x", *shape)
    results = [b.op(Op.EXP, ["x"], shape)]
    results.append(b.op(Op.ADD, [results[-1], b.constant(one)], shape))
    results.append(b.op(Op.LOG, [results[-1]], shape))
    if mish:
        results.append(b.op(Op.TANH, [results[-1]], shape))
        factor = b.input("z", *shape) if other else "x"
        results.append(b.op(Op.MUL, [results[-1], factor], shape))
    return graph_model(
        b.tensors, b.nodes, [results[-1], *([] if also is None else [results[also]])]
    )


def drawn(shape: Sequence[int]) -> Array:
    x = np.linspace(-25, 25, int(np.prod(shape)), dtype=np.float32)
    x[: len(EDGES)] = EDGES
    return x.reshape(shape)


SIZES = {"few": (1, 64), "many": (1, 8, 16, 8)}


@pytest.mark.parametrize("size", SIZES)
def test_mish(size: str) -> None:
    x, content = drawn(SIZES[size]), model(SIZES[size])
    (ours,) = answers(content, [x])
    wide = x.astype(np.float64)
    true = wide * np.tanh(np.logaddexp(0, wide))
    others = {THEIRS: litert(content, [x])[0], BOUND: unfused(content, [x])[0], 0: true}
    for bound, other in others.items():
        # 1e-44: TFLite's least numbers are 0.
        near = (BOUND + bound) * np.abs(x) + 2e-7 * np.abs(true) + 1e-44
        assert np.all(np.abs(ours - other) <= near), np.max(np.abs(ours - other) / near)
    nodes = optimised_nodes(content)
    assert not nodes["Log"]
    assert nodes["Softplus" if size == "few" else "Softsign"] == 1


@pytest.mark.parametrize("size", SIZES)
def test_what_is_not_finite(size: str) -> None:
    x = drawn(SIZES[size])
    x.reshape(-1)[:3] = SPECIAL
    content = model(SIZES[size])
    (ours,), (theirs,) = answers(content, [x]), litert(content, [x])
    np.testing.assert_array_equal(ours.reshape(-1)[:3], theirs.reshape(-1)[:3])


def test_softplus() -> None:
    x, content = drawn((1, 64)), model((1, 64), mish=False)
    x[x > 80] = 80  # LiteRT's power is infinite beyond
    (ours,) = answers(content, [x])
    np.testing.assert_allclose(ours, litert(content, [x])[0], rtol=5e-7, atol=BOUND + THEIRS)
    assert optimised_nodes(content)["Softplus"] == 1


def test_softplus_of_large_numbers_is_finite() -> None:
    """LiteRT's power is not, see docs/numbers.md."""
    x = np.geomspace(89, 3e38, 64, dtype=np.float32).reshape(1, 64)
    content = model((1, 64), mish=False)
    np.testing.assert_array_equal(answers(content, [x])[0], x)
    assert np.isinf(litert(content, [x])[0]).all()


@pytest.mark.parametrize(
    "changed", [{"one": 1.5}, {"other": True}, {"also": 0}, {"also": 2}, {"also": 3}]
)
@pytest.mark.parametrize("size", SIZES)
def test_others_stay(size: str, changed: dict[str, Any]) -> None:
    content = model(SIZES[size], **changed)
    x = [np.clip(drawn(SIZES[size]), -30, 30)]
    x += x if "other" in changed else []
    for ours, theirs in zip(answers(content, x), litert(content, x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=30 * (BOUND + THEIRS))
    nodes = optimised_nodes(content)
    is_softplus = size == "few" and changed in ({"other": True}, {"also": 2}, {"also": 3})
    assert nodes["Softplus"] == is_softplus
    assert not nodes["Softsign"]


def test_between_few_and_many_it_stays() -> None:
    nodes = optimised_nodes(model((1, 500)))
    assert nodes["Log"] == 1
