"""Rows that are moved within themselves before a FULLY_CONNECTED: its weights are moved instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.one_op import graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers, unfused
from tflite_ort.opmap.rules.operators import reordered_weights
from tflite_ort.providers.processor import blocked_channels
from tflite_ort.schema import FullyConnectedOptions, Op

SEED = 3
with_blocks = pytest.mark.skipif(not blocked_channels(), reason="this CPU's blocks are not known")


@dataclass(frozen=True)
class Features:
    """A tensor that is turned, becomes rows, and is multiplied by weights.

    Args:
        order: of the TRANSPOSE.
        rows: the shape after it; none for that which it makes.
        also: whether the turned tensor is a result too.
        twice: whether a second product by the same weights reads the rows otherwise.
    """

    shape: Sequence[int] = (2, 7, 5, 6)
    order: Sequence[int] = (0, 1, 3, 2)
    rows: Sequence[int] = (2, 7, 30)
    units: int = 4
    also: bool = False
    twice: bool = False

    def content(self) -> bytes:
        rng, b = np.random.default_rng(SEED), Builder()
        b.input("x", *self.shape)
        turned = tuple(self.shape[axis] for axis in self.order)
        name = b.op(Op.TRANSPOSE, ["x", b.constant(self.order, np.int32)], turned)
        rows = b.reshape(name, self.rows) if self.rows else name
        depth = (self.rows or turned)[-1]
        weights = b.constant(rng.integers(-9, 9, (self.units, depth)))
        results = [self._product(b, rows, weights, depth)]
        if self.twice:
            results.append(self._product(b, b.reshape("x", self.rows), weights, depth))
        return graph_model(b.tensors, b.nodes, [*results, *[name] * self.also])

    def _product(self, b: Builder, rows: str, weights: str, depth: int) -> str:
        count = int(np.prod(self.shape)) // depth
        options = FullyConnectedOptions()
        return b.op(Op.FULLY_CONNECTED, [rows, weights], (count, self.units), options)


MAP = Features()
NOT_MOVED = {
    "channels of each time": MAP,
    "the whole image": Features((1, 5, 3, 4), (0, 3, 2, 1), (1, 60)),
    "axes from the end": replace(MAP, order=(0, 1, -1, -2)),
    "two sorts of rows": replace(MAP, twice=True),
    "a row in three parts": Features((3, 2, 4, 5), (0, 3, 1, 2), (3, 40), units=2),
}
MOVED = {
    "rows in another order": replace(MAP, order=(1, 0, 2, 3), rows=(7, 2, 30)),
    "parts of several rows": replace(MAP, order=(0, 2, 1, 3), rows=(2, 5, 42)),
    "many weights": replace(MAP, units=1 << 14),
}


def compare(features: Features) -> None:
    """All numbers are whole, so that any order of adding gives the same."""
    content = features.content()
    x = np.random.default_rng(SEED).integers(-50, 50, features.shape).astype(np.float32)
    for got, plain, theirs in zip(
        *(f(content, [x]) for f in (answers, unfused, litert)), strict=True
    ):
        np.testing.assert_array_equal(got, plain)
        np.testing.assert_array_equal(got, theirs)


@with_blocks
@pytest.mark.parametrize("name", NOT_MOVED)
def test_weights_are_moved_in_place_of_rows(name: str) -> None:
    # The last one is channels-first, which a map may be already.
    expected = int(name == "a row in three parts")
    assert optimised_nodes(NOT_MOVED[name].content())["Transpose"] == expected
    compare(NOT_MOVED[name])


@pytest.mark.parametrize("name", MOVED)
def test_other_rows_are_moved(name: str) -> None:
    assert optimised_nodes(MOVED[name].content())["Transpose"]
    compare(MOVED[name])


@with_blocks
def test_what_is_read_elsewhere_too_is_moved_for_that_alone() -> None:
    content = replace(MAP, also=True).content()
    assert optimised_nodes(content)["Transpose"] == 1
    compare(replace(MAP, also=True))


def test_translators_of_users_are_not_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[Op]()
    plain = reordered_weights.with_reordered_weights

    class Shares:
        def __init__(self, registry: object) -> None:
            self.registry = registry

        def shares(self, other: object, op: object) -> bool:
            asked.append(op.op)  # type: ignore[attr-defined]
            return False

    monkeypatch.setattr(
        reordered_weights,
        "with_reordered_weights",
        lambda operators, results, registry: plain(
            operators,
            results,
            Shares(registry),  # type: ignore[arg-type]
        ),
    )
    moved = optimised_nodes(MAP.content())["Transpose"]
    assert moved == 1
    assert not blocked_channels() or asked
