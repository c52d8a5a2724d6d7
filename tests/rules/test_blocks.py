"""Float convolutions whose channels stay in blocks: the same numbers, and fewer nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import hypothesis
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.optimised import optimised_nodes
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.opmap import Target, lower
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.providers.model_session import model_session
from tflite_ort.providers.processor import blocked_channels
from tflite_ort.schema import (
    ActivationFunctionType,
    AddOptions,
    ConcatenationOptions,
    Conv2DOptions,
    DepthwiseConv2DOptions,
    GeluOptions,
    LeakyReluOptions,
    ModelBuilder,
    MulOptions,
    Op,
    Padding,
    Pool2DOptions,
    ReducerOptions,
    ResizeBilinearOptions,
    read_model,
)
from tflite_ort.specialize.specialization import specialize

Array = npt.NDArray[Any]

_SIDE = 8
_ACTIVATIONS = [ActivationFunctionType.NONE, ActivationFunctionType.RELU6]
_KINDS = ["conv", "window", "depthwise", "add", "prelu", "pool", "resize", "pad", "cut", "bias"]
_KINDS += ["places", "largest", "cells", "spread"]
with_blocks = pytest.mark.skipif(not blocked_channels(), reason="this CPU's blocks are not known")


@dataclass
class Network:
    """Maps of floats that are whole numbers, so that any order of adding gives the same."""

    rng: np.random.Generator
    builder: ModelBuilder = field(default_factory=ModelBuilder)
    shapes: dict[str, tuple[int, int]] = field(default_factory=dict)  # side and channels

    def __post_init__(self) -> None:
        self.main = self.builder.subgraph("main").tensor("image", (1, _SIDE, _SIDE, 3))
        self.shapes["image"] = _SIDE, 3

    def constant(self, *shape: int) -> str:
        name = f"constant{self.rng.integers(1 << 60)}"
        self.main.constant(name, self.rng.integers(-1, 2, shape).astype(np.float32))
        return name

    def add(self, kind: str, source: str, activation: ActivationFunctionType, count: int) -> str:
        """A node of this kind over `source`, or nothing where it does not fit."""
        side, channels = self.shapes[source]
        name, options = f"{kind}{len(self.shapes)}", {"fused_activation_function": activation}
        one = {"stride_w": 1, "stride_h": 1, **options}
        if kind in ("conv", "window"):
            size = 1 if kind == "conv" else 3
            inputs = [source, self.constant(count, size, size, channels), self.constant(count)]
            self._put(name, side, count, Op.CONV_2D, inputs, Conv2DOptions(**one))
        elif kind == "depthwise":
            inputs = [source, self.constant(1, 3, 3, channels), self.constant(channels)]
            given = DepthwiseConv2DOptions(depth_multiplier=1, **one)
            self._put(name, side, channels, Op.DEPTHWISE_CONV_2D, inputs, given)
        elif kind in ("add", "bias"):
            same = [each for each, shape in self.shapes.items() if shape == (side, channels)]
            other = str(self.rng.choice(same)) if kind == "add" else self.constant(channels)
            self._put(name, side, channels, Op.ADD, [source, other], AddOptions(**options))
        elif kind == "places":  # a map of one channel
            other = self.add("window", source, _ACTIVATIONS[1], 1)
            self._put(name, side, channels, Op.MUL, [source, other], MulOptions(**options))
        elif kind == "spread":  # a map of one channel, which a convolution makes, and one of more
            one = self.add("window", source, _ACTIVATIONS[1], 1)
            padded = self.add("pad", source, activation, 0)
            self._put(name, side, 2 * channels, Op.ADD, [one, padded], AddOptions(**options))
        elif kind in ("largest", "cells"):  # of all channels, or of all places
            other, axes = f"{name}/largest", f"{name}/axes"
            self.main.constant(axes, np.int32([3] if kind == "largest" else [1, 2]))
            shape = (1, side, side, 1) if kind == "largest" else (1, 1, 1, channels)
            self.main.tensor(other, shape)
            largest = ReducerOptions(keep_dims=True)
            self.main.operator(Op.REDUCE_MAX, [source, axes], [other], largest)
            self._put(name, side, channels, Op.ADD, [source, other], AddOptions(**options))
        elif kind == "prelu":
            self._put(name, side, channels, Op.PRELU, [source, self.constant(1, 1, channels)], None)
        elif kind == "pool" and side > 2:
            pool = Pool2DOptions(Padding.VALID, 2, 2, filter_width=2, filter_height=2, **options)
            self._put(name, side // 2, channels, Op.MAX_POOL_2D, [source], pool)
        elif kind == "resize" and side < 16:
            size = f"{name}/size"
            self.main.constant(size, np.int32([side * 2, side * 2]))
            given = ResizeBilinearOptions(half_pixel_centers=True)
            self._put(name, side * 2, channels, Op.RESIZE_BILINEAR, [source, size], given)
        elif kind == "pad":
            self.main.constant(f"{name}/edges", np.int32([(0, 0), (0, 0), (0, 0), (0, channels)]))
            self._put(name, side, channels * 2, Op.PAD, [source, f"{name}/edges"], None)
        elif kind == "cut" and channels > 1:
            begin, size = f"{name}/begin", f"{name}/sizes"
            self.main.constant(begin, np.int32([0, 0, 0, 1]))
            self.main.constant(size, np.int32([1, side, side, channels - 1]))
            self._put(name, side, channels - 1, Op.SLICE, [source, begin, size], None)
        else:
            return source
        return name

    def _put(
        self, name: str, side: int, channels: int, op: Op, inputs: list[str], options: Any
    ) -> None:
        self.main.tensor(name, (1, side, side, channels))
        self.main.operator(op, inputs, [name], options)
        self.shapes[name] = side, channels

    def write(self, *outputs: str) -> bytes:
        self.main.inputs("image").outputs(*outputs)
        return self.builder.write()


@st.composite
def networks(draw: st.DrawFn) -> bytes:
    """Some layers over maps of few channels, with residuals and several outputs."""
    network = Network(np.random.default_rng(draw(st.integers(0, 2**32 - 1))))
    last = network.add("conv", "image", _ACTIVATIONS[0], draw(st.integers(1, 12)))
    for _ in range(draw(st.integers(2, 9))):
        kind = draw(st.sampled_from(_KINDS))
        count = draw(st.sampled_from([1, 4, 7, 8, 16, 18, 24]))
        last = network.add(kind, last, draw(st.sampled_from(_ACTIVATIONS)), count)
    last = network.add("conv", last, _ACTIVATIONS[0], 4)
    others = [name for name in network.shapes if name not in ("image", last)]
    also = draw(st.lists(st.sampled_from(others), max_size=2, unique=True)) if others else []
    return network.write(last, *also)


def lowered(model: bytes, block: int) -> ir.Model:
    resolver = BuiltinOpResolver()
    graph = specialize(read_model(model), 0, {}, resolver.kernels)
    inputs, outputs = ([graph.tensors[i] for i in each] for each in (graph.inputs, graph.outputs))
    target = Target(cpu_kernels=True, block=block)
    made = lower(graph.operators, inputs, outputs, resolver.translators, target=target)
    assert not made.refusals
    return made.model


@hypothesis.settings(max_examples=60, deadline=None)
@given(networks(), st.sampled_from([8, 16]))
def test_blocks_change_no_number(model: bytes, block: int) -> None:
    rng = np.random.default_rng(3)
    image = rng.integers(-3, 4, (1, _SIDE, _SIDE, 3)).astype(np.float32)
    plain = model_session(lowered(model, 0), num_threads=1).call([image])
    blocked = model_session(lowered(model, block), num_threads=1).call([image])
    for expected, given_ in zip(plain, blocked, strict=True):
        np.testing.assert_array_equal(given_, expected)


def residuals(channels: int, *middle: str) -> bytes:
    """A residual network: each residual has RELU6 or what `middle` says behind the sum."""
    network, none = Network(np.random.default_rng(1)), ActivationFunctionType.NONE
    last = network.add("window", "image", ActivationFunctionType.RELU6, channels)
    for kind in middle:
        last = network.add("depthwise", last, ActivationFunctionType.RELU6, 0)
        last = network.add("conv", last, none, channels)
        last = network.add(kind, last, ActivationFunctionType.RELU6, 0)
    return network.write(network.add("conv", last, none, 32))


@with_blocks
def test_a_residual_with_a_clip_stays_in_blocks() -> None:
    nodes = optimised_nodes(residuals(32, "add", "add", "add"))
    assert nodes["ReorderOutput"] == 1 and nodes["Clip"] == nodes["ReorderInput"] == 0


@with_blocks
def test_maps_of_few_channels_stay_in_blocks() -> None:
    # A map of up to four channels is read as an image, and one whose channels are no multiple of 8
    # is resized with channels last.
    narrow, middle = (8, "resize") if blocked_channels() == 16 else (6, "add")
    nodes = optimised_nodes(residuals(narrow, "add", middle, "add"))
    assert nodes["ReorderOutput"] == 1 and nodes["ReorderInput"] == nodes["Resize"] == 0


@with_blocks
def test_the_last_of_few_channels_stays_in_blocks() -> None:
    nodes = optimised_nodes(residuals(4, "add", "add"))
    assert nodes["ReorderOutput"] == 1
    assert not nodes["ReorderInput"] + nodes["Clip"] + nodes["Transpose"]


def narrow(channels: int, side: int, count: int, then: Op | None, options: Any = None) -> bytes:
    """Layers to so many channels, of an activation, and of windows to `count` channels."""
    network, none = Network(np.random.default_rng(1)), ActivationFunctionType.NONE
    last = network.add("window", "image", none, channels)
    if then is not None:
        network._put("active", _SIDE, channels, then, [last], options)
        last = "active"
    inputs = [last, network.constant(count, side, side, channels), network.constant(count)]
    network._put("y", _SIDE, count, Op.CONV_2D, inputs, Conv2DOptions(stride_w=1, stride_h=1))
    return network.write("y")


def widths(model: bytes) -> list[int]:
    """How many channels each convolution has for AVX-512, where blocks are of 16."""
    nodes = lowered(model, 16).graph.nodes
    return [len(node.constant(1)) for node in nodes if node.op_type == "Conv"]


@pytest.mark.parametrize(
    ("channels", "side", "width"),
    [(4, 1, 16), (12, 1, 16), (4, 3, 4), (8, 3, 8), (12, 3, 16), (8, 5, 8), (12, 5, 12)],
)
def test_channels_of_zeros_cost_less_than_they_save(channels: int, side: int, width: int) -> None:
    assert widths(narrow(channels, side, 32, None)) == [width, 32]


def test_channels_of_zeros_divide_a_window_to_one_channel() -> None:
    assert widths(narrow(4, 5, 1, None)) == [16, 16, 1]


@pytest.mark.parametrize(("channels", "width"), [(33, 36), (103, 104), (40, 40), (18, 20)])
def test_channels_of_zeros_make_a_multiple_of_four(channels: int, width: int) -> None:
    assert widths(narrow(channels, 3, 32, None)) == [width, 32]


def uneven(channels: int) -> bytes:
    """A residual of a depthwise layer, over an uneven number of channels."""
    network, none = Network(np.random.default_rng(1)), ActivationFunctionType.NONE
    first = network.add("window", "image", ActivationFunctionType.RELU6, channels)
    last = network.add("depthwise", first, none, 0)
    network._put("sum", _SIDE, channels, Op.ADD, [first, last], AddOptions())
    last = network.add("prelu", "sum", none, 0)
    return network.write(network.add("window", last, none, 4))


@with_blocks
@pytest.mark.parametrize("channels", [5, 17, 33, 103])
def test_uneven_channels_stay_in_blocks(channels: int) -> None:
    content = uneven(channels)
    nodes = optimised_nodes(content)
    assert (nodes["FusedConv"], nodes["Add"], nodes["Transpose"]) == (0, 0, 0)
    for expected, given_ in zip(*both(content), strict=True):  # sums of 900 terms in another order
        np.testing.assert_allclose(given_, expected, rtol=1e-5, atol=1e-4)


_BETWEEN = [
    (Op.GELU, GeluOptions()),
    (Op.GELU, GeluOptions(approximate=True)),
    (Op.LEAKY_RELU, LeakyReluOptions(alpha=0.25)),
]


@with_blocks
@pytest.mark.parametrize(("activation", "options"), _BETWEEN)
def test_activations_of_few_channels_stay_in_blocks(activation: Op, options: Any) -> None:
    nodes = optimised_nodes(narrow(6, 1, 32, activation, options))
    assert nodes["ReorderOutput"] == 1 and nodes["ReorderInput"] == 0


@pytest.mark.parametrize(("activation", "options"), _BETWEEN)
@pytest.mark.parametrize("channels", [1, 6, 12])
def test_activations_of_few_channels_give_the_same(
    channels: int, activation: Op, options: Any
) -> None:
    for expected, given_ in zip(*both(narrow(channels, 1, 8, activation, options)), strict=True):
        np.testing.assert_allclose(given_, expected, rtol=1e-6, atol=1e-6)


@with_blocks
def test_padded_channels_reorder_nothing_behind_them() -> None:
    network, none = Network(np.random.default_rng(1)), ActivationFunctionType.NONE
    first = network.add("window", "image", none, 16)
    padded = network.add("pad", first, none, 0)
    last = network.add("conv", first, none, 32)
    network._put("sum", *network.shapes[last], Op.ADD, [padded, last], AddOptions())
    last = network.add("prelu", "sum", none, 0)
    for _ in range(3):
        other = network.add("conv", last, none, 32)
        network._put(f"{other}+", *network.shapes[last], Op.ADD, [last, other], AddOptions())
        last = network.add("prelu", f"{other}+", none, 0)
    nodes = optimised_nodes(network.write(network.add("conv", last, none, 4)))
    assert nodes["ReorderOutput"] <= 2 and nodes["ReorderInput"] <= 1


def test_one_channel_is_made_of_a_depthwise_convolution() -> None:
    network, none = Network(np.random.default_rng(1)), ActivationFunctionType.NONE
    first = network.add("window", "image", none, 16)
    graph = lowered(network.write(network.add("window", first, none, 1)), 16).graph
    groups = [node.attributes.get("group") for node in graph.nodes if node.op_type == "Conv"]
    assert Counter(groups)[16] == 1 and len(groups) == 3


def test_constants_that_others_read_stay_as_they_are() -> None:
    network, none = Network(np.random.default_rng(1)), ActivationFunctionType.NONE
    last = network.add("conv", "image", none, 8)
    filters, bias = network.constant(8, 1, 1, 8), network.constant(8)
    options = Conv2DOptions(stride_w=1, stride_h=1)
    for name in ("a", "b"):
        network._put(name, _SIDE, 8, Op.CONV_2D, [last, filters, bias], options)
        last = name
    model = network.write("a", network.add("conv", "b", none, 4))
    image = np.random.default_rng(3).integers(-3, 4, (1, _SIDE, _SIDE, 3)).astype(np.float32)
    plain, blocked = (
        model_session(lowered(model, block), num_threads=1).call([image]) for block in (0, 16)
    )
    for expected, given_ in zip(plain, blocked, strict=True):
        np.testing.assert_array_equal(given_, expected)


def both(model: bytes) -> tuple[list[Array], list[Array]]:
    """The results without blocks and with them."""
    image = np.random.default_rng(3).standard_normal((1, _SIDE, _SIDE, 3)).astype(np.float32)
    plain, blocked = (
        model_session(lowered(model, block), num_threads=1).call([image]) for block in (0, 16)
    )
    return plain, blocked


def excited(channels: int) -> bytes:
    """A squeeze and excitation between two convolutions."""
    network, none = Network(np.random.default_rng(1)), ActivationFunctionType.NONE
    last = network.add("window", "image", ActivationFunctionType.RELU6, channels)
    network.main.constant("axes", np.int32([1, 2]))
    network.main.tensor("mean", (1, 1, 1, channels))
    network.main.operator(Op.MEAN, [last, "axes"], ["mean"], ReducerOptions(keep_dims=True))
    network.shapes["mean"] = 1, channels
    factors = network.add("conv", "mean", ActivationFunctionType.RELU6, channels)
    network._put("product", _SIDE, channels, Op.MUL, [factors, last], MulOptions())
    return network.write(network.add("conv", "product", none, 32))


@pytest.mark.parametrize("channels", [8, 32])
def test_factors_of_channels_give_the_same(channels: int) -> None:
    for expected, given_ in zip(*both(excited(channels)), strict=True):
        np.testing.assert_allclose(given_, expected, rtol=1e-6, atol=1e-5)


@with_blocks
def test_factors_of_channels_stay_in_blocks() -> None:
    nodes = optimised_nodes(excited(32))
    assert nodes["ReorderOutput"] == 1 and nodes["ReorderInput"] == 0


def sliced(parts: Sequence[tuple[int, int]], *, also: bool = False, swish: bool = False) -> bytes:
    """A convolution whose channels are sliced, the slices with and without further layers, joined.

    Args:
        also: the whole is an output too.
        swish: x * sigmoid(x) follows the convolution.
    """
    network, none = Network(np.random.default_rng(1)), ActivationFunctionType.NONE
    whole = network.add("window", "image", ActivationFunctionType.RELU6, 64)
    if swish:
        network._put("gate", _SIDE, 64, Op.LOGISTIC, [whole], None)
        network._put("whole", _SIDE, 64, Op.MUL, [whole, "gate"], MulOptions())
        whole = "whole"
    names, count = [], 0
    for number, (first, last) in enumerate(parts):
        name, size = f"part{number}", last - first
        network.main.constant(f"{name}/begin", np.int32([0, 0, 0, first]))
        network.main.constant(f"{name}/size", np.int32([1, _SIDE, _SIDE, size]))
        network._put(name, _SIDE, size, Op.SLICE, [whole, f"{name}/begin", f"{name}/size"], None)
        names.append(network.add("window", name, none, size) if number else name)
        count += size
    network._put("joined", _SIDE, count, Op.CONCATENATION, names, ConcatenationOptions(axis=3))
    last = network.add("conv", "joined", none, 16)
    return network.write(last, *([whole] if also else []))


@pytest.mark.parametrize("swish", [False, True])
@pytest.mark.parametrize("also", [False, True])
@pytest.mark.parametrize(
    "parts", [[(0, 32), (32, 64)], [(16, 48), (0, 64)], [(0, 16), (16, 64)], [(0, 20), (20, 64)]]
)
def test_slices_of_channels_give_the_same(
    parts: list[tuple[int, int]], also: bool, swish: bool
) -> None:
    for expected, given_ in zip(*both(sliced(parts, also=also, swish=swish)), strict=True):
        np.testing.assert_allclose(given_, expected, rtol=1e-6, atol=1e-5)


@with_blocks
@pytest.mark.parametrize("swish", [False, True])
def test_slices_of_channels_stay_in_blocks(swish: bool) -> None:
    nodes = optimised_nodes(sliced([(0, 32), (32, 64)], swish=swish))
    assert nodes["ReorderOutput"] == 1 and nodes["ReorderInput"] == nodes["Slice"] == 0


def test_a_convolution_that_is_read_whole_too_stays_whole() -> None:
    graph = lowered(sliced([(0, 32), (32, 64)], also=True), 16).graph
    assert sum(node.op_type == "Slice" for node in graph.nodes) == 2
