"""Quantized layers of many products get a zero point for tiles (AMX), and give the same codes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from tests.one_op import Node, T, graph_model
from tests.oracle import litert
from tests.rules.test_symmetric_layers import Drawn
from tests.rules.trees import answers
from tflite_ort.opmap.graph.costs import TileCosts
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes import tiled_layers
from tflite_ort.opmap.rules.nodes.integer_layers import Layer
from tflite_ort.opmap.rules.rule import Rule, watching, without
from tflite_ort.providers import model_session
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import Conv2DOptions, Op, Padding, TensorType

RULE = "layers in tiles"
SEED = 46

pytestmark = pytest.mark.skipif(
    exact_weight_type() != "int8", reason="weights are signed with VNNI"
)


def layer(
    cells: int,
    channels: int,
    outputs: int,
    extremes: npt.ArrayLike = (-127, 127),
    window: int = 1,
    stride: int = 1,
) -> bytes:
    """A CONV_2D of a square image, with these weights among its own."""
    rng = np.random.default_rng(SEED)
    filter = rng.integers(-100, 100, (outputs, window, window, channels)).astype(np.int8)
    found = np.asarray(extremes, np.int8)
    filter.reshape(-1)[: found.size] = found
    bias = rng.integers(-3000, 3000, outputs).astype(np.int32)
    made = -(-cells // stride)
    scales = (rng.random(outputs) / 1000 + 0.0005).astype(np.float32)
    tensors = {
        "x": T((1, cells, cells, channels), TensorType.INT8, scale=0.02, zero_point=-5),
        "w": T.constant(filter, scale=scales.tolist(), zero_point=[0] * outputs),
        "b": T.constant(bias, scale=(scales * 0.02).tolist(), zero_point=[0] * outputs),
        "y": T((1, made, made, outputs), TensorType.INT8, scale=0.05),
    }
    options = Conv2DOptions(padding=Padding.SAME, stride_w=stride, stride_h=stride)
    return graph_model(tensors, [Node(Op.CONV_2D, ["x", "w", "b"], ["y"], options)], ["y"])


@pytest.fixture
def zeros(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The zero points of the weights of each layer, as the rule leaves them."""
    monkeypatch.setattr(model_session, "multiplies_in_tiles", lambda: True)
    found: list[int] = []

    def watcher(rule: Rule, graph: ir.Graph) -> None:
        if rule.name == RULE:
            layers = filter(None, map(Layer.of, graph.nodes))
            found.extend(int(each.zero.ravel()[0]) for each in layers)

    with watching(watcher):
        yield found


def check(content: bytes, given: npt.NDArray[np.generic]) -> None:
    """See that a model gives the same codes without the rule."""
    with without(RULE):
        plain = answers(content, [given])
    for ours, theirs in zip(answers(content, [given]), plain, strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("extremes", "zero"), [((-127, 127), -1), ((-128, 126), 1), ((-128, 127), 0)]
)
@pytest.mark.parametrize(("window", "stride"), [(1, 1), (3, 1), (3, 2)])
def test_a_layer_gives_the_same_codes(
    zeros: list[int], extremes: tuple[int, int], zero: int, window: int, stride: int
) -> None:
    print(f"seed {SEED}")
    content = layer(8, 512, 128, extremes, window, stride)
    codes = np.random.default_rng(SEED).integers(-128, 128, (1, 8, 8, 512)).astype(np.int8)
    codes[0, 0], codes[0, 1] = -128, 127
    check(content, codes)
    np.testing.assert_array_equal(answers(content, [codes])[0], litert(content, [codes])[0])
    assert set(zeros) == {zero}


@pytest.mark.parametrize(("cells", "channels", "outputs"), [(1, 64, 256), (28, 64, 64)])
def test_layers_of_few_products_stay(
    zeros: list[int], cells: int, channels: int, outputs: int
) -> None:
    codes = np.zeros((1, cells, cells, channels), np.int8)
    check(layer(cells, channels, outputs), codes)
    assert zeros == [0]


def test_without_tiles_all_stay(zeros: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_session, "multiplies_in_tiles", lambda: False)
    answers(layer(8, 512, 128), [np.zeros((1, 8, 8, 512), np.int8)])
    assert zeros == []


@pytest.mark.parametrize("number", range(20))
def test_random_networks_give_the_same_codes(
    zeros: list[int], monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Of residuals, depthwise layers and weights with 9 bits."""
    costs = TileCosts(saved=1, weight=0, collected=0, result=0)
    monkeypatch.setattr(tiled_layers, "_COSTS", costs)
    seed = int(np.random.default_rng().integers(1 << 30))
    print(f"seed {seed}")
    network = Drawn(seed)
    content = network.model()
    given = network.rng.integers(0, 256, network.shapes["x"]).astype(np.uint8)
    check(content, given)
    assert any(zeros)
