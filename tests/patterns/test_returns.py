"""Two TRANSPOSE after which all elements stand where they stood: no node moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.one_op import T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.patterns.builder import Builder
from tests.patterns.trees import answers, unfused
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

SEED = 12
FLOAT = T((), TensorType.FLOAT32)
CODES = T((), TensorType.INT8, scale=0.5, zero_point=3)


@dataclass(frozen=True)
class Moves:
    """A tensor that is turned, gets another shape, and is turned again.

    Args:
        between: the shape after the first TRANSPOSE; none for that which it makes.
        before, after: other shapes of what goes in and comes out.
        also: whether the turned tensor is a result too.
        like: the type and scale of all tensors.
    """

    shape: Sequence[int] = (2, 3, 4, 5)
    first: Sequence[int] = (0, 3, 1, 2)
    between: Sequence[int] = (2, 5, 12)
    second: Sequence[int] = (0, 2, 1)
    before: Sequence[int] = ()
    after: Sequence[int] = ()
    also: bool = False
    like: T = FLOAT

    def content(self) -> bytes:
        b = Builder()
        b.tensors["x"] = replace(self.like, shape=tuple(self.shape))
        turned = self._turned(b, self._reshaped(b, "x", self.before), self.first)
        again = self._turned(b, self._reshaped(b, turned, self.between), self.second)
        result = self._reshaped(b, again, self.after)
        return graph_model(b.tensors, b.nodes, [result, *[turned] * self.also])

    def _turned(self, b: Builder, source: str, order: Sequence[int]) -> str:
        shape = tuple(b.tensors[source].shape[axis] for axis in order)
        name = b.op(Op.TRANSPOSE, [source, b.constant(order, np.int32)], shape)
        b.tensors[name] = replace(self.like, shape=shape)
        return name

    def _reshaped(self, b: Builder, source: str, shape: Sequence[int]) -> str:
        if not shape:
            return source
        name = b.reshape(source, shape)
        b.tensors[name] = replace(self.like, shape=tuple(shape))
        return name


IMAGE = Moves()
RETURNS = {
    "an image as tokens": IMAGE,
    "tokens as an image": Moves((2, 12, 5), (0, 2, 1), (2, 5, 3, 4), (0, 2, 3, 1)),
    "no other shape between": replace(IMAGE, between=(), second=(0, 2, 3, 1), after=(24, 5)),
    "axes from the end": replace(IMAGE, first=(0, -1, 1, -2), second=(-3, -1, -2)),
    "other shapes around": Moves((6, 20), (0, 2, 1), (), (0, 2, 1), (6, 4, 5), (24, 5)),
    "a size of 1": Moves((1, 3, 1, 5), (0, 3, 1, 2), (1, 5, 3), (0, 2, 1)),
    "codes": replace(IMAGE, like=CODES),
    "whole numbers": replace(IMAGE, like=T((), TensorType.INT32)),
}
STAYS = {
    "turned on": replace(IMAGE, second=(2, 0, 1)),
    "turned once more": replace(IMAGE, between=(), second=(0, 3, 1, 2)),
    "cut elsewhere": replace(IMAGE, between=(2, 15, 4)),
    "cut inside": replace(IMAGE, between=(2, 3, 20)),
    "read elsewhere": replace(IMAGE, also=True),
}


def compare(moves: Moves) -> None:
    print(f"seed {SEED}")
    rng, content = np.random.default_rng(SEED), moves.content()
    x = rng.integers(-100, 100, moves.shape).astype(NUMPY_DTYPE[moves.like.type])
    for got, plain, theirs in zip(
        *(f(content, [x]) for f in (answers, unfused, litert)), strict=True
    ):
        np.testing.assert_array_equal(got, plain)
        np.testing.assert_array_equal(got, theirs)


@pytest.mark.parametrize("name", RETURNS)
def test_what_returns_is_not_moved(name: str) -> None:
    counts = optimised_nodes(RETURNS[name].content())
    assert set(counts) <= {"Reshape", "Identity"}, counts
    compare(RETURNS[name])


@pytest.mark.parametrize("name", STAYS)
def test_what_does_not_return_is_moved(name: str) -> None:
    assert optimised_nodes(STAYS[name].content())["Transpose"]
    compare(STAYS[name])
