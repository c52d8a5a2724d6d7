"""The negative of what a layer makes: a layer of negative weights, with the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
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
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    FullyConnectedOptions,
    Op,
)

Array = npt.NDArray[Any]
RULE = "negated layers"
SEED = 6


class Layer(Builder):
    """A dense layer, or a convolution, over `x`."""

    def __init__(self, shape: Sequence[int], *, bias: bool = True, codes: bool = False) -> None:
        super().__init__()
        print(f"seed {SEED}")
        self.rng, self.shape = np.random.default_rng(SEED), tuple(shape)
        self.x = self.rng.normal(0, 1, shape).astype(np.float32)
        self.input("x", *shape)
        wide = shape[-1]
        drawn = self.rng.normal(0, 1, (wide, wide) if len(shape) == 2 else (wide, 3, 3, wide))
        weights = self.constant(drawn)
        if codes:
            self.tensors[weights] = T.constant((40 * drawn).astype(np.int8), scale=0.025)
        self.given = ["x", weights]
        if bias:
            self.given.append(self.constant(self.rng.normal(0, 1, wide)))

    def layer(self, activation: ActivationFunctionType = ActivationFunctionType.NONE) -> str:
        if len(self.shape) == 2:
            dense = FullyConnectedOptions(fused_activation_function=activation)
            return self.op(Op.FULLY_CONNECTED, self.given, self.shape, dense)
        window = Conv2DOptions(stride_w=1, stride_h=1, fused_activation_function=activation)
        return self.op(Op.CONV_2D, self.given, self.shape, window)

    def content(self, *results: str) -> bytes:
        return graph_model(self.tensors, self.nodes, results)


def check(content: bytes, x: Array) -> tuple[int, int]:
    """How many Negs there are with the rule and without it."""
    with without(RULE):
        single, before = answers(content, [x]), optimised_nodes(content)["Neg"]
    for ours, one, theirs in zip(answers(content, [x]), single, litert(content, [x]), strict=True):
        np.testing.assert_array_equal(ours, one)
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)
    return optimised_nodes(content)["Neg"], before


@pytest.mark.parametrize("op", [Op.LOGISTIC, Op.NEG])
@pytest.mark.parametrize("shape", [(1, 24), (5, 8), (1, 6, 7, 3), (1, 8, 8, 32)])
def test_the_numbers_of_a_neg(shape: tuple[int, ...], op: Op) -> None:
    b = Layer(shape, bias=len(shape) > 2 or op is Op.NEG)
    assert check(b.content(b.op(op, [b.layer()], shape)), b.x) == (0, 1)


def test_weights_of_8_bits() -> None:
    b = Layer((1, 24), codes=True)
    content = b.content(b.op(Op.LOGISTIC, [b.layer()], b.shape))
    with without(RULE):
        (single,) = answers(content, [b.x])
    np.testing.assert_array_equal(answers(content, [b.x])[0], single)


def test_an_activation_in_between_stays() -> None:
    b = Layer((1, 24))
    content = b.content(b.op(Op.NEG, [b.layer(ActivationFunctionType.RELU)], b.shape))
    assert check(content, b.x) == (1, 1)


def test_a_layer_that_is_read_elsewhere_stays() -> None:
    b = Layer((1, 24))
    layer = b.layer()
    assert check(b.content(b.op(Op.NEG, [layer], b.shape), layer), b.x) == (1, 1)
    b = Layer((1, 24))
    layer = b.layer()
    both = b.op(Op.ADD, [b.op(Op.NEG, [layer], b.shape), b.op(Op.ABS, [layer], b.shape)], b.shape)
    assert check(b.content(both), b.x) == (1, 1)


def test_weights_that_are_computed_stay() -> None:
    b = Layer((4, 4), bias=False)
    b.input("w", 4, 4)
    b.given[1] = "w"
    content = b.content(b.op(Op.NEG, [b.layer()], b.shape))
    w = b.rng.normal(0, 1, (4, 4)).astype(np.float32)
    with without(RULE):
        (single,) = answers(content, [b.x, w])
    np.testing.assert_array_equal(answers(content, [b.x, w])[0], single)
    assert optimised_nodes(content)["Neg"] == 1
