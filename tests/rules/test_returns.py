"""Chains of TRANSPOSE that move all elements once, or not at all: no further nodes move them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.one_op import T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers, unfused
from tflite_ort.providers.processor import blocked_channels
from tflite_ort.schema import Conv2DOptions, Op, Padding, TensorType
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


def patches(channels: int) -> Sequence[Sequence[int]]:
    """An image of 8x6 cells as patches of 2x2, with channels first in between."""
    shapes = (4 * channels, 2, 3, 2), (1, channels, 12, 4)
    return (0, 3, 1, 2), shapes[0], (0, 2, 1, 3), shapes[1], (0, 3, 2, 1)


def image(channels: int) -> Sequence[Sequence[int]]:
    """The way back."""
    shapes = (4 * channels, 3, 2, 2), (1, channels, 8, 6)
    return (0, 3, 2, 1), shapes[0], (0, 2, 1, 3), shapes[1], (0, 2, 3, 1)


@dataclass(frozen=True)
class Steps:
    """A tensor that is turned and gets another shape by turns.

    Args:
        steps: orders, and between two of them a shape; none for that which is there.
        results: the numbers of the steps whose tensors are results too.
        of_layer: whether a convolution makes the tensor.
    """

    shape: Sequence[int]
    steps: Sequence[Sequence[int]]
    results: Sequence[int] = ()
    of_layer: bool = False
    like: T = FLOAT

    def content(self) -> bytes:
        b = Builder()
        b.tensors["x"] = replace(self.like, shape=tuple(self.shape))
        names = [self._convolved(b) if self.of_layer else "x"]
        for number, step in enumerate(self.steps):
            shape = tuple(step) or b.tensors[names[-1]].shape
            kind, dtype = Op.RESHAPE, np.int32
            if number % 2 == 0:
                kind, shape = Op.TRANSPOSE, tuple(b.tensors[names[-1]].shape[i] for i in step)
            names.append(b.op(kind, [names[-1], b.constant(step or shape, dtype)], shape))
            b.tensors[names[-1]] = replace(self.like, shape=shape)
        further = [names[1 + number] for number in self.results]
        return graph_model(b.tensors, b.nodes, [names[-1], *further])

    def _convolved(self, b: Builder) -> str:
        """The input, by channels that are whole numbers."""
        count = self.shape[-1]
        weights = np.arange(count * count).reshape(count, 1, 1, count) % 5
        given = ["x", b.constant(weights), b.constant(np.zeros(count))]
        options = Conv2DOptions(padding=Padding.VALID, stride_w=1, stride_h=1)
        return b.op(Op.CONV_2D, given, self.shape, options)

    def compare(self) -> None:
        rng, content = np.random.default_rng(SEED), self.content()
        x = rng.integers(-100, 100, self.shape).astype(NUMPY_DTYPE[self.like.type])
        for got, theirs in zip(answers(content, [x]), litert(content, [x]), strict=True):
            np.testing.assert_array_equal(got, theirs)


CUT = Steps((1, 8, 6, 5), patches(5))
ONE_MOVE = {
    "an image in patches": CUT,
    "patches as an image": Steps((1, 4, 12, 5), image(5)),
    "a layer in patches": Steps((1, 8, 6, 32), patches(32), of_layer=True),
    "a shape in the end": replace(CUT, steps=(*patches(5), (48, 5))),
}
SEVERAL_MOVES = {
    "codes": replace(CUT, like=CODES),
    "read inside": replace(CUT, results=[2]),
    "single elements": Steps((1, 8, 6, 5), (*patches(5)[:4], (0, 1, 3, 2))),
}


@pytest.mark.parametrize("name", ONE_MOVE)
def test_several_moves_are_one(name: str) -> None:
    if not (ONE_MOVE[name].of_layer and not blocked_channels()):
        assert optimised_nodes(ONE_MOVE[name].content())["Transpose"] == 1
    ONE_MOVE[name].compare()


@pytest.mark.parametrize("name", SEVERAL_MOVES)
def test_other_moves_are_made_one_by_one(name: str) -> None:
    assert optimised_nodes(SEVERAL_MOVES[name].content())["Transpose"] > 1
    SEVERAL_MOVES[name].compare()


@pytest.mark.skipif(not blocked_channels(), reason="this CPU's blocks are not known")
def test_channels_of_a_layer_become_those_of_tokens_without_a_move() -> None:
    tokens = Steps((1, 4, 4, 32), ((0, 3, 1, 2), (1, 32, 16), (0, 2, 1)), of_layer=True)
    counts = optimised_nodes(tokens.content())
    assert not counts["Transpose"] or counts["Transpose"] == counts["Conv"] == 1, counts
    tokens.compare()


def test_a_tensor_that_returns_is_not_moved_although_it_is_read_elsewhere() -> None:
    first = Steps((2, 3, 4, 5), ((0, 3, 1, 2), (2, 5, 12), (0, 2, 1)), results=[0])
    assert optimised_nodes(first.content())["Transpose"] == 1
    first.compare()


@st.composite
def some_steps(draw: st.DrawFn) -> Steps:
    """Turns of up to four dimensions, and dimensions joined and cut in between."""
    shape = draw(st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=3, max_size=4))
    steps, present = list[Sequence[int]](), list(shape)
    for _ in range(draw(st.integers(2, 3))):
        order = draw(st.permutations(range(len(present))))
        present = [present[axis] for axis in order]
        place = draw(st.integers(0, len(present) - 2))
        cut = [each for each in (2, 3) if present[place] % each == 0]
        if cut and draw(st.booleans()):
            factor = draw(st.sampled_from(cut))
            present[place : place + 1] = [present[place] // factor, factor]
        elif len(present) > 2 and draw(st.booleans()):
            present[place : place + 2] = [present[place] * present[place + 1]]
        steps += [order, tuple(present)]
    results = draw(st.lists(st.integers(0, len(steps) - 2), max_size=1))
    return Steps(shape, steps[: draw(st.sampled_from([-1, len(steps)]))], results)


@given(some_steps())
def test_all_elements_come_where_they_belong(steps: Steps) -> None:
    steps.compare()
