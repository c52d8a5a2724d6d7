"""Rotary embedding of one token by its position, against the unfused graph and LiteRT."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.test_cache_rows import TOKENS, look_up
from tests.rules.trees import answers, unfused
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    BridgeError,
    ConcatenationOptions,
    MulOptions,
    Op,
    SubOptions,
    TensorType,
)

Array = npt.NDArray[Any]
SIZE, HALF = 8, 4
SEED = 7


@dataclass(frozen=True)
class Token:
    """A rotation of one token at the position by which a mask is looked up.

    Args:
        given: how the heads stand before.
        wanted: how they stand after.
        halves: written half by half; else as transformers do.
        masked: the mask is there.
        positions: what is looked up: one position, or several.
        activation: of the angles.
        function: in place of the cosine.
    """

    given: tuple[int, ...] = (1, 1, 2, SIZE)
    wanted: tuple[int, ...] = (1, 1, 2, SIZE)
    halves: bool = True
    masked: bool = True
    positions: int = 1
    type: TensorType = TensorType.INT32
    activation: ActivationFunctionType = ActivationFunctionType.NONE
    function: Op = Op.COS

    def content(self) -> bytes:
        tensors, nodes = look_up(self.positions) if self.masked else ({}, [])
        tensors.setdefault("x", T((self.positions,), self.type))
        tokens, heads = self.positions, prod(self.given) // SIZE // self.positions
        shape, angles = (1, heads, tokens, SIZE), (1, tokens, HALF)
        low = *shape[:-1], HALF
        tensors |= {"given": T(self.given), "column": T((1, tokens, 1), self.type)}
        steps: list[tuple[Op, Sequence[str], str, Sequence[int], Any]] = [
            (Op.NEG, ["given"], "heads", self.given, None),
            (Op.RESHAPE, ["heads", self._constant(tensors, shape)], "h", shape, None),
            (Op.CAST, ["column"], "real", (1, tokens, 1), None),
            (Op.MUL, ["real", "factors"], "angles", angles, MulOptions(self.activation)),
            (Op.SLICE, ["h", *self._places(tensors, 0, low)], "h1", low, None),
            (Op.SLICE, ["h", *self._places(tensors, HALF, low)], "h2", low, None),
            *(self._by_halves(low, angles) if self.halves else self._whole(low, angles)),
            (Op.RESHAPE, ["y", self._constant(tensors, self.wanted)], "moved", self.wanted, None),
            (Op.NEG, ["moved"], "out", self.wanted, None),
        ]
        tensors["factors"] = T.constant(np.float32([[[1.0, 0.4, 0.03, 0.001]]]))
        tensors["minus"] = T.constant(np.float32(-1))
        column = self._constant(tensors, (1, tokens, 1))
        nodes.append(Node(Op.RESHAPE, ["x", column], ["column"]))
        for op, inputs, output, size, options in steps:
            tensors[output] = T(tuple(size))
            nodes.append(Node(op, list(inputs), [output], options))
        used = {name for node in nodes for name in (*node.inputs, *node.outputs)}
        tensors = {name: each for name, each in tensors.items() if name in used}
        return graph_model(tensors, nodes, ["out", *(["result"] if self.masked else [])])

    def _by_halves(self, low: Sequence[int], angles: Sequence[int]) -> list[Any]:
        return [
            (self.function, ["angles"], "c", angles, None),
            (Op.SIN, ["angles"], "s", angles, None),
            (Op.MUL, ["h1", "c"], "a", low, MulOptions()),
            (Op.MUL, ["h2", "s"], "b", low, MulOptions()),
            (Op.SUB, ["a", "b"], "d", low, SubOptions()),
            (Op.MUL, ["h2", "c"], "e", low, MulOptions()),
            (Op.MUL, ["h1", "s"], "f", low, MulOptions()),
            (Op.ADD, ["e", "f"], "g", low, AddOptions()),
            (Op.CONCATENATION, ["d", "g"], "y", (*low[:-1], SIZE), ConcatenationOptions(axis=3)),
        ]

    def _whole(self, low: Sequence[int], angles: Sequence[int]) -> list[Any]:
        whole, shape = (*angles[:-1], SIZE), (*low[:-1], SIZE)
        twice = ConcatenationOptions(axis=2)
        return [
            (Op.CONCATENATION, ["angles", "angles"], "both_angles", whole, twice),
            (self.function, ["both_angles"], "c", whole, None),
            (Op.SIN, ["both_angles"], "s", whole, None),
            (Op.MUL, ["h2", "minus"], "m", low, MulOptions()),
            (Op.CONCATENATION, ["m", "h1"], "t", shape, ConcatenationOptions(axis=3)),
            (Op.MUL, ["t", "s"], "u", shape, MulOptions()),
            (Op.MUL, ["h", "c"], "v", shape, MulOptions()),
            (Op.ADD, ["v", "u"], "y", shape, AddOptions()),
        ]

    @staticmethod
    def _constant(tensors: dict[str, T], numbers: Sequence[int]) -> str:
        name = f"numbers_{'_'.join(map(str, numbers))}"
        tensors[name] = T.constant(np.int32(numbers))
        return name

    def _places(self, tensors: dict[str, T], begin: int, low: Sequence[int]) -> Sequence[str]:
        places = (0, 0, 0, begin), tuple(low)
        return [self._constant(tensors, each) for each in places]

    def inputs(self, position: int) -> list[Array]:
        heads = np.random.default_rng(SEED).normal(0, 2, self.given).astype(np.float32)
        dtype = np.int32 if self.type is TensorType.INT32 else np.int64
        return [position - np.arange(self.positions, dtype=dtype), heads]


def check(token: Token, positions: Sequence[int]) -> None:
    print(f"seed {SEED}")
    content = token.content()
    for position in positions:
        inputs = token.inputs(position)
        got, *others = (run(content, inputs)[0] for run in (answers, unfused, litert))
        for other in others:
            np.testing.assert_allclose(got, other, rtol=0, atol=2e-6 * np.abs(other).max())


SHAPES = [
    ((1, 1, 2, SIZE), (1, 1, 2, SIZE), 0),
    ((1, 1, 2, 3 * SIZE), (2, 3, SIZE), 1),
    ((1, 6 * SIZE), (6, SIZE), 2),
    ((2, 1, 3, SIZE), (2, 3, SIZE), 1),
    ((6, SIZE), (1, 6 * SIZE), 2),
    ((SIZE // 2, 4), (2, SIZE), 2),
]


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(("given", "wanted", "reshapes"), SHAPES, ids=str)
def test_angles_are_looked_up(
    given: tuple[int, ...], wanted: tuple[int, ...], reshapes: int, halves: bool
) -> None:
    token = Token(given, wanted, halves)
    counts = optimised_nodes(token.content())
    # Of the mask and of the position, which is bound as a number.
    assert counts.pop("Reshape", 0) == reshapes
    assert counts == {"RotaryEmbedding": 1, "Gather": 2, "Neg": 2}
    check(token, [0, 1, 17, TOKENS - 1, -1, -9, -TOKENS])


@pytest.mark.parametrize("position", [TOKENS, -TOKENS - 1, 2 * TOKENS - 1])
def test_a_position_beyond_the_mask_is_refused(position: int) -> None:
    token = Token()
    with pytest.raises(RuntimeError, match="GATHER_ND"):
        litert(token.content(), token.inputs(position))
    with pytest.raises(BridgeError):
        answers(token.content(), token.inputs(position))


OTHERS = {
    "any position": (Token(masked=False), True),
    "any position of 64 bits": (Token(masked=False, type=TensorType.INT64), True),
    "several tokens": (Token((1, 2, 3, SIZE), (1, 2, 3, SIZE), positions=3), True),
    "angles that are cut": (Token(activation=ActivationFunctionType.RELU6), True),
    "two sines": (Token(function=Op.SIN), True),
    "two sines, whole": (Token(function=Op.SIN, halves=False), False),
}


@pytest.mark.parametrize(("token", "turns"), OTHERS.values(), ids=OTHERS)
def test_other_angles_are_computed(token: Token, turns: bool) -> None:
    counts = optimised_nodes(token.content())
    assert counts["Sin"] and counts["RotaryEmbedding"] == turns
    check(token, [3, 9])
    if not token.masked:
        check(token, [TOKENS + 3, -2 * TOKENS])
