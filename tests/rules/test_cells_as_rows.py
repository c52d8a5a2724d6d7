"""Convolutions by windows of one cell over maps that have their channels last: products of rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.one_op import graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort.providers.processor import blocked_channels
from tflite_ort.schema import ActivationFunctionType, Conv2DOptions, Op, Padding

SEED = 5
RELU, RELU6 = ActivationFunctionType.RELU, ActivationFunctionType.RELU6
pytestmark = pytest.mark.skipif(not blocked_channels(), reason="this CPU's blocks are not known")


@dataclass(frozen=True)
class Cells:
    """Two convolutions one after the other over rows of channels.

    Args:
        outputs: the channels of each.
        kernel: the side of the windows of the first.
    """

    batch: int = 2
    channels: int = 48
    outputs: tuple[int, int] = (32, 5)
    kernel: int = 1
    stride: int = 1
    activation: ActivationFunctionType = RELU

    @property
    def shape(self) -> tuple[int, ...]:
        return self.batch, 9 * 7, self.channels

    def content(self) -> bytes:
        b = Builder()
        # A product before, so that the map is there with its channels last.
        side = np.eye(self.channels)
        rows = b.op(Op.BATCH_MATMUL, [b.input("x", *self.shape), b.constant(side)], self.shape)
        first = b.reshape(rows, (self.batch, 9, 7, self.channels))
        second = self._convolved(b, first, self.outputs[0], self.kernel, self.stride)
        return graph_model(b.tensors, b.nodes, [self._convolved(b, second, self.outputs[1])])

    def _convolved(
        self, b: Builder, source: str, outputs: int, kernel: int = 1, stride: int = 1
    ) -> str:
        rng = np.random.default_rng(SEED)
        batch, height, width, channels = b.tensors[source].shape
        filter = b.constant(rng.integers(-3, 4, (outputs, kernel, kernel, channels)))
        given = [source, filter, b.constant(rng.integers(-9, 9, outputs))]
        options = Conv2DOptions(
            padding=Padding.SAME,
            stride_w=stride,
            stride_h=stride,
            fused_activation_function=self.activation,
        )
        sides = -(-height // stride), -(-width // stride)
        return b.op(Op.CONV_2D, given, (batch, *sides, outputs), options)

    def compare(self) -> None:
        """All numbers are whole, so that any order of adding gives the same."""
        content = self.content()
        x = np.random.default_rng(SEED).integers(-9, 9, self.shape).astype(np.float32)
        for got, theirs in zip(answers(content, [x]), litert(content, [x]), strict=True):
            np.testing.assert_array_equal(got, theirs)


CELLS = Cells()
PRODUCTS = {
    "two layers": CELLS,
    "no activation": replace(CELLS, activation=ActivationFunctionType.NONE),
    "one block": replace(CELLS, channels=blocked_channels(), outputs=(blocked_channels(), 2)),
}
CONVOLUTIONS = {
    "more channels than before": replace(CELLS, outputs=(64, 96)),
    "windows of several cells": replace(CELLS, kernel=3),
    "a stride": replace(CELLS, stride=2),
    "cut numbers": replace(CELLS, activation=RELU6),
    "less than a block": replace(CELLS, channels=4, outputs=(4, 4)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_cells_are_rows(name: str) -> None:
    counts = optimised_nodes(PRODUCTS[name].content())
    assert not counts["Conv"], counts
    assert not counts["Transpose"] + counts["ReorderInput"], counts
    PRODUCTS[name].compare()


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_others_are_convolutions(name: str) -> None:
    assert optimised_nodes(CONVOLUTIONS[name].content())["Conv"]
    CONVOLUTIONS[name].compare()
