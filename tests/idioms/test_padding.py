"""A PAD with zeros before a convolution of floats is padding of the convolution."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.one_op import graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.builder import Builder
from tests.rules.trees import answers
from tflite_ort.schema import (
    ActivationFunctionType,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    Op,
    Padding,
)

SEED = 7


@dataclass(frozen=True)
class Padded:
    """An image, a PAD, and a convolution of 3x3 windows.

    Args:
        edges: rows and columns before and after.
        number: what the PAD is told to pad with; None: nothing.
        also: whether the padded image is a result too.
    """

    channels: int = 3
    edges: tuple[tuple[int, int], tuple[int, int]] = ((0, 1), (1, 2))
    stride: int = 2
    dilation: int = 1
    padding: Padding = Padding.VALID
    number: float | None = None
    depthwise: bool = False
    moved: bool = False
    also: bool = False

    def content(self) -> bytes:
        rng, b = np.random.default_rng(SEED), Builder()
        height, width, channels = 11, 9, self.channels
        source = b.input("x", 1, height, width, channels)
        if self.moved:  # the image comes channels-first
            b.input("x", 1, channels, height, width)
            order = b.constant((0, 2, 3, 1), np.int32)
            source = b.op(Op.TRANSPOSE, ["x", order], (1, height, width, channels))
        (top, bottom), (left, right) = self.edges
        height, width = height + top + bottom, width + left + right
        pads = [source, b.constant([(0, 0), *self.edges, (0, 0)], np.int32)]
        if self.number is not None:
            pads.append(b.constant(self.number))
        kind = Op.PAD if self.number is None else Op.PADV2
        padded = b.op(kind, pads, (1, height, width, channels))
        reach = 1 if self.padding == Padding.SAME else 2 * self.dilation + 1
        sides = [(size - reach) // self.stride + 1 for size in (height, width)]
        filter = b.constant(
            rng.normal(size=(1, 3, 3, channels) if self.depthwise else (16, 3, 3, channels))
        )
        outputs = channels if self.depthwise else 16
        result = b.op(
            Op.DEPTHWISE_CONV_2D if self.depthwise else Op.CONV_2D,
            [padded, filter, b.constant(rng.normal(size=outputs))],
            (1, *sides, outputs),
            self._options(),
        )
        return graph_model(b.tensors, b.nodes, [result, *[padded] * self.also])

    def _options(self) -> Conv2DOptions | DepthwiseConv2DOptions:
        shared = {
            "padding": self.padding,
            "stride_w": self.stride,
            "stride_h": self.stride,
            "dilation_w_factor": self.dilation,
            "dilation_h_factor": self.dilation,
            "fused_activation_function": ActivationFunctionType.RELU,
        }
        return (
            DepthwiseConv2DOptions(depth_multiplier=1, **shared)
            if self.depthwise
            else Conv2DOptions(**shared)
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.channels, 11, 9) if self.moved else (1, 11, 9, self.channels)


IMAGE = Padded()
FUSED = {
    "an image in rows": IMAGE,
    "channels first": replace(IMAGE, moved=True),
    "many channels": replace(IMAGE, channels=16),
    "depthwise": replace(IMAGE, channels=16, depthwise=True),
    "padded by both": replace(IMAGE, padding=Padding.SAME),
    "padded by both, many channels": replace(IMAGE, channels=16, padding=Padding.SAME, stride=1),
    "dilated": replace(IMAGE, channels=16, edges=((2, 3), (3, 1)), stride=1, dilation=2),
    "the number 0": replace(IMAGE, number=0.0),
    "the number -0": replace(IMAGE, number=-0.0),
    "as wide as windows reach": replace(IMAGE, edges=((2, 2), (2, 2)), stride=1),
}
STAYS = {
    "another number": replace(IMAGE, number=1.0),
    "windows without a cell": replace(IMAGE, edges=((3, 0), (0, 4)), stride=1),
    "wide edges": replace(IMAGE, channels=16, edges=((4, 3), (5, 5)), stride=1, dilation=3),
    "read elsewhere": replace(IMAGE, also=True),
}


def compare(padded: Padded) -> None:
    print(f"seed {SEED}")
    content = padded.content()
    x = np.random.default_rng(SEED).normal(size=padded.shape).astype(np.float32)
    for got, theirs in zip(answers(content, [x]), litert(content, [x]), strict=True):
        # The same products in another order: a few of 144 roundings of the largest value.
        np.testing.assert_allclose(got, theirs, rtol=0, atol=3e-6 * np.abs(theirs).max())


@pytest.mark.parametrize("name", FUSED)
def test_zeros_need_no_node(name: str) -> None:
    counts = optimised_nodes(FUSED[name].content())
    assert not counts["Pad"], counts
    compare(FUSED[name])


@pytest.mark.parametrize("name", STAYS)
def test_other_padding_stays(name: str) -> None:
    assert optimised_nodes(STAYS[name].content())["Pad"]
    compare(STAYS[name])
