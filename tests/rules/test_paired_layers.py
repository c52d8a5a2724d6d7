"""Quantised convolutions get signed weights where two products fit in 16 bits; the codes stay."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.models import model_path
from tests.nodes_around import PAIRED
from tests.one_op import T
from tests.rules.test_symmetric_layers import Drawn
from tflite_ort import Interpreter, Tuning
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes import paired_layers
from tflite_ort.opmap.rules.nodes.integer_layers import FREE, Layer
from tflite_ort.opmap.rules.nodes.paired_layers import make_paired
from tflite_ort.opmap.rules.nodes.paired_weights import are_exact, paired
from tflite_ort.opmap.rules.rule import NodesAround
from tflite_ort.providers import trials
from tflite_ort.schema import Op, TensorType
from tflite_ort.tuning import session_target

Array = npt.NDArray[Any]

# How many layers have signed weights at least: dense ones, depthwise ones.
NETWORKS = {
    "coral__tf2_mobilenet_v2_1.0_224_ptq.tflite": (10, 17),
    "mlperf-tiny__kws_ref_model.tflite": (0, 4),
    "mlperf-tiny__vww_96_int8.tflite": (6, 12),
    "tflite-support__mobilenet_v2_1.0_224_quant.tflite": (28, 0),
}


_LAYERS = (Op.CONV_2D, Op.DEPTHWISE_CONV_2D)


def largest_pair(rows: Array) -> int:
    """The largest sum of two neighbours' weights of one sign."""
    signs = [np.maximum(sign * rows.astype(np.int64), 0) for sign in (1, -1)]
    return int(max((each[::2] + each[1::2]).max() for each in signs))


@pytest.mark.parametrize("seed", range(60))
def test_parts_of_weights_are_exact_in_pairs_and_sum_to_the_weights(seed: int) -> None:
    rng = np.random.default_rng(seed)
    channels, outputs = int(rng.integers(1, 40)), int(rng.integers(1, 30))
    most = int(rng.choice([30, 127, 255]))
    rows = rng.normal(0, rng.choice([10, 40, 200]), (channels, outputs)).round()
    rows = rows.clip(-most, most).astype(np.int16)
    if seed % 3 == 0:
        rows[rng.integers(channels)] = rng.choice([-most, most])
    found = paired(rows)
    sums = np.zeros_like(rows)
    for channel, part in zip(found.order, found.weights, strict=True):
        if channel == FREE:
            assert not part.any()
        else:
            sums[channel] += part
    np.testing.assert_array_equal(sums, rows)
    assert found.weights.min() >= -128 and found.weights.max() <= 127
    assert largest_pair(found.weights) <= 128 and are_exact(found.weights)
    assert len(found.order) <= 4 * (channels + 1)


@pytest.mark.parametrize(
    ("pair", "exact"),
    [
        ((127, 1), True),
        ((127, 2), False),
        ((64, 64), True),
        ((65, 64), False),
        ((-127, -1), True),
        ((-128, 0), True),
        ((-128, -1), False),
        ((-128, 127), True),
        ((128, 0), False),
        ((-129, 5), False),
    ],
)
def test_the_largest_pairs(
    pair: tuple[int, int], exact: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = np.array([[3, pair[0]], [5, pair[1]]], np.int16)
    assert are_exact(rows) is exact
    in_8_bits = max(pair) <= 127 and min(pair) >= -128
    assert not in_8_bits or (largest_pair(rows) <= 128) is exact
    if in_8_bits and trials.exact_weight_type() == "uint8" and trials.multiplies_in_pairs():
        monkeypatch.setattr(trials, "_PAIRS", np.array([pair], np.int8))
        assert trials.multiplies_in_pairs.__wrapped__() is exact


def codes(
    model: bytes,
    patch: pytest.MonkeyPatch,
    images: list[Array],
    *,
    change: bool,
    runs: int = 1000,
) -> tuple[list[Array], list[int]]:
    """What a model gives for some images, by unsigned weights or after the change, and how many of
    its layers have signed weights: dense ones, depthwise ones."""
    signed = [0, 0]

    def changed(graph: ir.Graph, around: NodesAround) -> None:
        if change:
            make_paired(graph, replace(PAIRED, runs=runs))
        for layer in filter(None, map(Layer.of, graph.nodes)):
            assert not layer.zero.any()
            signed[not layer.is_dense] += 1
            rows = layer.weights.swapaxes(0, 1).reshape(layer.weights.shape[1], -1)
            assert (
                not layer.is_dense
                or largest_pair(np.pad(rows, [(0, len(rows) % 2), (0, 0)])) <= 128
            )

    with patch.context() as here:
        here.setattr(paired_layers, "make_paired", changed)
        here.setattr(session_target, "exact_weight_type", lambda: "uint8")
        interpreter = Interpreter(None, model, num_threads=1, cache=False)
        interpreter.allocate_tensors()
    (given,) = interpreter.get_input_details()
    found = list[Array]()
    for image in images:
        interpreter.set_tensor(given["index"], image.astype(given["dtype"]))
        interpreter.invoke()
        outputs = interpreter.get_output_details()
        found += [interpreter.get_tensor(each["index"]).copy() for each in outputs]
    return found, signed


def images_of(model: bytes, rng: np.random.Generator) -> list[Array]:
    """Images of random codes, and those of the lowest and of the highest one."""
    (given,) = Interpreter(None, model).get_input_details()
    info = np.iinfo(given["dtype"]) if given["dtype"] != np.float32 else None
    low, high = (info.min, info.max) if info else (-1, 1)
    drawn = rng.integers(low, high, given["shape"], endpoint=True)
    ends = rng.choice([low, high], given["shape"])
    return [drawn, ends, np.full(given["shape"], low), np.full(given["shape"], high)]


@pytest.mark.parametrize("kept", ["cache", "tune"])
def test_orders_are_looked_for_where_the_result_is_kept(
    kept: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """How many are found depends on how numpy orders equal sums."""
    signed = [0, 0]

    def noted(graph: ir.Graph, around: NodesAround) -> None:
        make_paired(graph, replace(PAIRED, runs=around.runs))
        for layer in filter(None, map(Layer.of, graph.nodes)):
            signed[not layer.is_dense] += 1

    monkeypatch.setattr(paired_layers, "make_paired", noted)
    monkeypatch.setattr(session_target, "exact_weight_type", lambda: "uint8")
    choices: dict[str, Any] = {
        "cache": {"cache": tmp_path},
        "tune": {"cache": False, "tune": Tuning(tmp_path / "tuning.json", seconds=0.01)},
    }
    path = model_path("mlperf-tiny__vww_96_int8.tflite")
    Interpreter(path, num_threads=1, cache=False).allocate_tensors()
    free, signed[:] = list(signed), [0, 0]
    Interpreter(path, num_threads=1, **choices[kept]).allocate_tensors()
    # An order that no channel is there twice in costs nothing.
    assert free[0] >= 5
    assert signed[0] > free[0]
    assert signed[1] >= 12 <= free[1]


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_give_the_same_codes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = model_path(name).read_bytes()
    images = images_of(model, np.random.default_rng(2))
    plain, none = codes(model, monkeypatch, images, change=False)
    found, signed = codes(model, monkeypatch, images, change=True)
    assert [each.tobytes() for each in found] == [each.tobytes() for each in plain]
    assert none == [0, 0]
    assert all(count >= least for count, least in zip(signed, NETWORKS[name], strict=True))


class DrawnLarge(Drawn):
    """The same with many large weights."""

    def weights(self, shape: tuple[int, ...], channels: int, axis: int) -> tuple[str, str]:
        names = super().weights(shape, channels, axis)
        zero, width = int(self.rng.integers(100, 156)), self.rng.choice([15, 40, 150])
        drawn = self.rng.normal(zero, width, shape).round().clip(0, 255).astype(np.uint8)
        self.tensors[names[0]] = T.constant(drawn, scale=0.002, zero_point=zero)
        return names


class DrawnSigned(Drawn):
    """The same of int8 codes, with a scale for each channel and the zero point 0."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.tensors["x"] = replace(self.tensors["x"], type=TensorType.INT8, zero_point=3)

    def made(self, op: Op, inputs: list[str], shape: tuple[int, ...], options: Any) -> str:
        name = super().made(op, inputs, shape, options)
        self.nodes[-1] = replace(self.nodes[-1], version=3 if op in _LAYERS else 2)
        source, zero = self.tensors[inputs[0]], int(self.rng.choice([-128, 3, 127]))
        zero = int(source.zero_point) if op is Op.AVERAGE_POOL_2D else zero  # type: ignore[arg-type]
        self.tensors[name] = replace(self.tensors[name], type=TensorType.INT8, zero_point=zero)
        return name

    def weights(self, shape: tuple[int, ...], channels: int, axis: int) -> tuple[str, str]:
        names = super().weights(shape, channels, axis)
        drawn = self.rng.normal(0, self.rng.choice([15, 40, 150]), shape).round()
        values = drawn.clip(-127, 127).astype(np.int8)
        values.flat[self.rng.integers(values.size)] = -128
        scale = (0.002 + 0.01 * self.rng.random(channels)).tolist()
        zeros = [0] * channels
        self.tensors[names[0]] = T.constant(values, scale=scale, zero_point=zeros, axis=axis)
        return names


@pytest.mark.parametrize("kind", [Drawn, DrawnLarge, DrawnSigned])
@pytest.mark.parametrize("always", [False, True])
def test_random_networks_give_the_same_codes(
    kind: type[Drawn],
    always: bool,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if always:  # every layer that can have signed weights has them
        monkeypatch.setattr(paired_layers, "_most_places", lambda *_: np.inf)
    count = 500 if request.config.getoption("--thorough") else 15
    first = int(np.random.default_rng().integers(1 << 30))
    dense = depthwise = 0
    for seed in range(first, first + count):
        print(f"seed {seed}")
        model = kind(seed).model()
        images = images_of(model, np.random.default_rng(seed))
        plain, _ = codes(model, monkeypatch, images, change=False)
        found, signed = codes(model, monkeypatch, images, change=True)
        for a, b in zip(plain, found, strict=True):
            np.testing.assert_array_equal(b, a, f"seed {seed}")
        dense, depthwise = dense + signed[0], depthwise + signed[1]
    assert dense > (2 * count if always else 0), f"seeds from {first}"
    assert depthwise > 0 or kind is not DrawnSigned, f"seeds from {first}"


def test_weights_that_stay_unsigned_are_the_same_after_a_copy_of_channels() -> None:
    """A depthwise layer of 9 bits is widened as it is: its codes and its zero point are uint8."""
    codes = np.array([0, 255, 7, 128], np.uint8).reshape(4, 1, 1, 1)
    constants = [np.float32(1), np.uint8(3), codes, np.float32(0.1), np.uint8(130)]
    constants += [np.float32(1), np.uint8(5), np.arange(4, dtype=np.int32)]
    values = [ir.Value("x", dtype=ir.DataType.UINT8, shape=(1, 4, 3, 3))]
    graph = ir.Graph([values[0]], [], [], name="layer")
    values += [graph.add_initializer(f"c{i}", np.array(x)) for i, x in enumerate(constants)]
    result = ir.Value("y", dtype=ir.DataType.UINT8)
    node = ir.Node("QLinearConv", values, [result], attributes={"group": 4}, name="layer")
    graph.nodes.append(node)
    layer = Layer.of(node, np.uint8)
    assert layer is not None and Layer.of(node) is None and not layer.signed
    assert layer.rest().ravel().tolist() == [-130, 125, -123, -2]
    layer.make([2, 1, FREE, 1])
    layer.store(graph)
    stored = [np.zeros(0) if (array := node.constant(i)) is None else array for i in range(9)]
    assert stored[3].ravel().tolist() == [7, 255, 130, 255] and stored[3].dtype == np.uint8
    assert stored[5].dtype == np.uint8 and stored[5] == 130
    assert stored[8].tolist() == [2, 1, 0, 1] and node.attributes["group"] == 4
