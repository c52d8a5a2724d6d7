"""Channels in another order that costs nothing: more layers have signed weights, and the codes are
the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models import newer_model_path
from tests.nodes_around import PAIRED
from tests.rules.test_paired_layers import codes, images_of
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.lowering import OPSET
from tflite_ort.opmap.rules.nodes import paired_layers
from tflite_ort.opmap.rules.nodes.integer_layers import Layer
from tflite_ort.opmap.rules.nodes.paired_layers import make_paired
from tflite_ort.providers.graph_session import graph_session

Array = npt.NDArray[Any]
BYTE = ir.DataType.UINT8
SIDE = 5
LOW, MIDDLE = -128, 128


class Drawn:
    """A random graph of quantised layers over maps [1, C, 5, 5].

    Dense layers read all channels of a map, half of them, or copy some. Maps are joined, and joined
    maps are joined again.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        width = 4 * int(self.rng.integers(1, 5))
        x = ir.Value("x", dtype=BYTE, shape=(1, width, SIDE, SIDE))
        self.graph = ir.Graph([x], [], [], name="drawn")
        self.maps = [self.dense(x)]
        kinds = (self.dense, self.dense, self.depthwise, self.join, self.join, self.by_element)
        for _ in range(int(self.rng.integers(3, 12))):
            make = kinds[self.rng.integers(len(kinds))]
            self.maps.append(make(self.maps[-1 - self.rng.integers(min(3, len(self.maps)))]))
        read = self.graph.read_ids()
        unread = [each for each in self.maps if id(each) not in read]
        self.graph.outputs += [self.dense(each) for each in unread]
        if self.rng.integers(2):
            self.graph.outputs.append(self.maps[self.rng.integers(len(self.maps))])

    def constant(self, array: npt.ArrayLike) -> ir.Value:
        return self.graph.add_initializer(f"c{len(self.graph.initializers)}", np.asarray(array))

    def node(
        self, kind: str, inputs: list[ir.Value], width: int, dtype: ir.DataType = BYTE, **how: Any
    ) -> ir.Value:
        count = len(self.graph.nodes)
        result = ir.Value(f"v{count}", dtype=dtype, shape=(1, width, SIDE, SIDE))
        self.graph.nodes.append(ir.Node(kind, inputs, [result], attributes=how, name=f"n{count}"))
        return result

    def layer(self, x: ir.Value, weights: Array, **how: Any) -> ir.Value:
        count, is_scalar = len(weights), self.rng.integers(2)
        zero = np.full(() if is_scalar else count, MIDDLE, np.uint8)
        scales = np.float32(0.01) if is_scalar else self.rng.uniform(0.001, 0.01, count)
        zeros = self.rng.integers(256, size=2).astype(np.uint8)
        constants: list[npt.ArrayLike] = [np.float32(1), zeros[0]]
        constants += [(weights + MIDDLE).astype(np.uint8), np.float32(scales), zero]
        constants += [np.float32(0.9), zeros[1]]
        if self.rng.integers(2):
            constants.append(self.rng.integers(-9999, 9999, count).astype(np.int32))
        inputs = [x, *map(self.constant, constants)]
        side = weights.shape[2]
        pads = [side // 2] * 4
        return self.node("QLinearConv", inputs, count, pads=pads, **how)

    def dense(self, x: ir.Value) -> ir.Value:
        assert x.shape is not None
        width, count = int(x.shape[1]), 2 * int(self.rng.integers(2, 12))
        side = int(self.rng.choice([1, 1, 3]))
        drawn = self.rng.normal(0, self.rng.choice([20, 60, 300]), (count, width, side, side))
        weights = drawn.round().clip(LOW, 127)
        kind = self.rng.integers(3)
        if kind:
            weights[:, self.rng.permutation(width)[: width // 2]] = 0
        if kind == 2:
            weights = np.sign(weights)
        return self.layer(x, weights)

    def depthwise(self, x: ir.Value) -> ir.Value:
        assert x.shape is not None
        width = int(x.shape[1])
        weights = self.rng.integers(LOW, 127, (width, 1, 3, 3), endpoint=True)
        return self.layer(x, weights, group=width)

    def join(self, x: ir.Value) -> ir.Value:
        other = self.maps[self.rng.integers(len(self.maps))]
        assert x.shape is not None and other.shape is not None
        return self.node("Concat", [x, other], int(x.shape[1]) + int(other.shape[1]), axis=1)

    def by_element(self, x: ir.Value) -> ir.Value:
        assert x.shape is not None
        width, unit = int(x.shape[1]), [self.constant(np.float32(1)), self.constant(np.uint8(9))]
        floats = self.node("DequantizeLinear", [x, *unit], width, ir.DataType.FLOAT)
        limited = self.node("Relu", [floats], width, ir.DataType.FLOAT)
        return self.node("QuantizeLinear", [limited, *unit], width)


def results(graph: ir.Graph, images: list[Array]) -> list[Array]:
    graph.drop_unread()  # constants that others took the place of
    session = graph_session(ir.Model(graph, opset_imports={"": OPSET}), num_threads=1)
    found = list[Array]()
    for image in images:
        made = [np.zeros(each.shape, np.uint8) for each in graph.outputs]  # type: ignore[arg-type]
        session.run(session.bind([image], made))
        found += made
    return found


def signed_layers(graph: ir.Graph) -> list[Layer]:
    found = [Layer.of(node) for node in graph.nodes]
    return [layer for layer in found if layer is not None and layer.is_dense]


def test_random_graphs_give_the_same_codes(request: pytest.FixtureRequest) -> None:
    count = 1000 if request.config.getoption("--thorough") else 40
    first = int(np.random.default_rng().integers(1 << 30))
    signed = moved = 0
    for seed in range(first, first + count):
        print(f"seed {seed}")
        graph, other = Drawn(seed).graph, Drawn(seed).graph
        (x,) = graph.inputs
        assert x.shape is not None
        ends = np.random.default_rng(seed).choice(np.array([0, 255], np.uint8), x.shape)
        images = [ends, np.zeros_like(ends), np.full_like(ends, 255)]
        make_paired(graph, PAIRED)
        for layer in signed_layers(graph):
            assert not layer.zero.any() and paired_layers.are_exact(paired_layers._rows(layer))
        for got, want in zip(results(graph, images), results(other, images), strict=True):
            np.testing.assert_array_equal(got, want, f"seed {seed}")
        signed += len(signed_layers(graph))
        for node, before in zip(graph.nodes, other.nodes, strict=True):
            if node.op_type == "QLinearConv":
                weights, own = node.constant(3), before.constant(3)
                assert weights is not None and own is not None
                same = np.array_equal(weights.astype(np.uint8) ^ 128, own)
                moved += weights.dtype == np.int8 and not same
    assert signed > count and moved > count / 4, f"seeds from {first}"


def test_halves_of_joined_channels_meet_signed_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """A network that shuffles channels: each channel that a layer reads stands beside one that it
    does not read."""
    model = newer_model_path("shufflenet_int8.tflite").read_bytes()
    images = images_of(model, np.random.default_rng(6))
    plain, none = codes(model, monkeypatch, images, change=False)
    found, signed = codes(model, monkeypatch, images, change=True, runs=0)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in plain]
    assert none == [0, 0] and signed[0] >= 26


def test_layers_that_cannot_be_reordered_stay() -> None:
    """The channels of an input, and those of a result, stand as the caller has them."""
    rng = np.random.default_rng(4)
    drawn = Drawn(0)
    x = ir.Value("image", dtype=BYTE, shape=(1, 8, SIDE, SIDE))
    drawn.graph = ir.Graph([x], [], [], name="fixed")
    weights = rng.integers(100, 127, (6, 8, 1, 1))
    weights[:, :4] = 0  # exact if the channels change places
    seen = drawn.layer(x, rng.integers(LOW, 127, (8, 8, 1, 1)))
    drawn.graph.outputs += [drawn.layer(x, weights), drawn.layer(seen, weights), seen]
    make_paired(drawn.graph, PAIRED)
    assert not signed_layers(drawn.graph)
    weights[:, 1::2], weights[:, ::2] = weights[:, 4:], 0
    drawn.graph.outputs.append(drawn.layer(seen, weights))
    make_paired(drawn.graph, PAIRED)
    assert len(signed_layers(drawn.graph)) == 1
