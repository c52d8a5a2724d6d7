"""Layers that OpenVINO joins with what reads them, and then computes wrongly, have a
function that changes nothing behind them."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.nodes_around import AROUND
from tests.one_op import Node, T, assert_close, graph_model, ours
from tests.oracle import litert
from tests.providers.samples import OPENVINO
from tests.rules.test_paired_codes import Codes
from tflite_ort import export_onnx
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes.parted_layers import part_layers
from tflite_ort.providers.traits import CPU
from tflite_ort.schema import (
    AddOptions,
    BatchMatMulOptions,
    Conv2DOptions,
    FullyConnectedOptions,
    MulOptions,
    Op,
    Padding,
    SoftmaxOptions,
    TensorType,
)

SEED, SHAPE = 6, (1, 8, 8, 16)


class Sum(Codes):
    """Codes x, behind a convolution, are added to x."""

    def __init__(self, limit: str = "", *, reader: str = "") -> None:
        super().__init__((1, 2, 3, 3))
        rng = np.random.default_rng(SEED)
        weights = self.constant(rng.normal(size=(2, 2, 1, 1)).astype(np.float32))
        value = self.add("Conv", self.reals(self.x), weights)
        limits = (self.constant(np.float32(-1)), self.constant(np.float32(1)))
        between = self.add(limit, value, *limits[: 2 * (limit == "Clip")]) if limit else value
        codes = self.codes(between, 0.1, 128)
        term = self.reals(codes, 0.1, 128)
        self.sum = self.codes(self.add("Add", term, self.reals(self.x)), 1.1, 4)
        others = {"sums": value, "limited": between, "codes": codes, "term": term}
        if reader:
            self.add("Abs" if reader != "codes" else "Identity", others[reader])


@pytest.mark.parametrize("limit", ["", "Clip", "Relu"])
def test_the_convolution_has_a_function_behind_it(limit: str) -> None:
    print(f"seed {SEED}")
    codes = np.random.default_rng(SEED).integers(0, 256, (1, 2, 3, 3)).astype(np.uint8)
    before, after = Sum(limit), Sum(limit)
    wanted = before.run(before.sum, codes)
    after.graph.outputs = [after.sum]
    part_layers(after.graph, AROUND)
    kinds = before.kinds()
    kinds.insert(kinds.index("Conv") + 1, "LeakyRelu")
    assert after.kinds() == kinds
    np.testing.assert_array_equal(after.run(after.sum, codes), wanted)


@pytest.mark.parametrize("reader", ["sums", "limited", "codes", "term", "output"])
def test_what_others_read_stays(reader: str) -> None:
    """A device that hands the codes on has them rounded."""
    made = Sum("Relu", reader="" if reader == "output" else reader)
    made.graph.outputs = [made.sum]
    if reader == "output":
        add = next(node for node in made.graph.nodes if node.op_type == "Add")
        made.graph.outputs += [value for value in add.inputs if value is not None]
    kinds = made.kinds()
    part_layers(made.graph, AROUND)
    assert made.kinds() == kinds


def test_in_a_body() -> None:
    inner = Sum()
    inner.graph.outputs = [inner.sum]
    test = ir.Value("test", dtype=ir.DataType.BOOL, shape=())
    chosen = ir.Node("If", [test], [ir.Value("chosen")], attributes={"then_branch": inner.graph})
    part_layers(ir.Graph([test], chosen.outputs, [chosen]), AROUND)
    assert "LeakyRelu" in inner.kinds()


def attention(width: int = 8) -> bytes:
    """Keras' attention of one tensor, beside a residual, whose square follows."""
    tensors = {name: T((1, 6, width)) for name in ("x", "y", "made", "sum", "square")}
    tensors |= {"weights": T((1, 6, 6)), "chances": T((1, 6, 6))}
    nodes = [
        Node(Op.EXP, ["x"], ["y"]),
        Node(Op.BATCH_MATMUL, ["y", "y"], ["weights"], BatchMatMulOptions(adj_y=True)),
        Node(Op.SOFTMAX, ["weights"], ["chances"], SoftmaxOptions(beta=1.0)),
        Node(Op.BATCH_MATMUL, ["chances", "y"], ["made"], BatchMatMulOptions()),
        Node(Op.ADD, ["y", "made"], ["sum"], AddOptions()),
        Node(Op.MUL, ["sum", "sum"], ["square"], MulOptions()),
    ]
    return graph_model(tensors, nodes, ["square"])


def test_an_attention_has_it_too() -> None:
    content = attention()
    x = np.random.default_rng(SEED).normal(size=(1, 6, 8)).astype(np.float32)
    for target, there in (("openvino", True), ("onnxruntime", False)):
        model = export_onnx(content, for_=target)
        kinds = [node.op_type for node in model.graph.node]
        assert ("LeakyRelu" in kinds) == there
        session = onnxruntime.InferenceSession(model.SerializeToString())
        (got,) = session.run(None, {model.graph.input[0].name: x})
        np.testing.assert_allclose(got, litert(content, [x])[0], rtol=1e-5)


@pytest.mark.openvino
def test_openvino_runs_an_attention_of_one_tensor() -> None:
    x = np.random.default_rng(SEED).normal(size=(1, 6, 8)).astype(np.float32)
    got, _ = ours(attention(), [x], providers=[OPENVINO, CPU])
    assert_close(got[0], litert(attention(), [x])[0], 0, 1e-4, "on OpenVINO")


def dense(*biased: bool, rows: int = 1) -> tuple[bytes, list[Any]]:
    """Dense layers of codes, one behind the other, that have a bias or not."""
    rng, width = np.random.default_rng(SEED), 64
    tensors = {"0": T((rows, width), TensorType.INT8, 0.0039, -128)}
    nodes = []
    for place, has_bias in enumerate(biased):
        scales = rng.uniform(0.0017, 0.0021, width).tolist()
        codes = rng.integers(-127, 128, (width, width)).astype(np.int8)
        weights = T.constant(codes, scale=scales, zero_point=[0] * width)
        tensors |= {
            f"w{place}": weights,
            f"{place + 1}": T((rows, width), TensorType.INT8, 0.01, 3),
        }
        names = [f"{place}", f"w{place}"]
        if has_bias:
            bias = rng.integers(-9999, 9999, width).astype(np.int32)
            products = [tensors[f"{place}"].scale * scale for scale in scales]
            tensors[f"b{place}"] = T.constant(bias, scale=products, zero_point=[0] * width)
            names.append(f"b{place}")
        options = FullyConnectedOptions()
        nodes.append(Node(Op.FULLY_CONNECTED, names, [f"{place + 1}"], options, version=5))
    x = rng.integers(-128, 128, (rows, width)).astype(np.int8)
    return graph_model(tensors, nodes, [f"{len(biased)}"]), [x]


BIASED = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize("biased", BIASED)
def test_dense_layers_without_a_bias_have_it(biased: tuple[bool, ...]) -> None:
    content, feeds = dense(*biased)
    for target in ("openvino", "onnxruntime"):
        model = export_onnx(content, for_=target)
        kinds = [node.op_type for node in model.graph.node]
        expected = biased.count(False) if target == "openvino" else 0
        assert kinds.count("LeakyRelu") == expected
        session = onnxruntime.InferenceSession(model.SerializeToString())
        (got,) = session.run(None, {model.graph.input[0].name: feeds[0]})
        np.testing.assert_array_equal(got, litert(content, feeds)[0])


@pytest.mark.openvino
@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize("biased", BIASED)
def test_openvino_computes_dense_layers_of_codes(biased: tuple[bool, ...], rows: int) -> None:
    """Without it the results of less than 16 rows are what happens to be in memory."""
    content, feeds = dense(*biased, rows=rows)
    got, _ = ours(content, feeds, providers=[OPENVINO, CPU])
    assert_close(got[0], litert(content, feeds)[0], 1, 0, "on OpenVINO")


def residual() -> tuple[bytes, list[Any]]:
    """Codes of a convolution, and of the second one behind it, are added."""
    rng = np.random.default_rng(SEED)
    codes = partial(T, SHAPE, TensorType.INT8)
    tensors = {
        "x": codes(scale=0.0193, zero_point=-3),
        "first": codes(scale=0.1137, zero_point=5),
        "second": codes(scale=0.6171, zero_point=7),
        "third": codes(scale=3.317, zero_point=2),
        "y": codes(scale=3.271, zero_point=9),
    }
    nodes = []
    for given, made in (("x", "first"), ("first", "second"), ("second", "third")):
        filters = rng.integers(-127, 128, (16, 3, 3, 16)).astype(np.int8)
        biases = rng.integers(-999, 999, 16).astype(np.int32)
        names = [f"{made} filters", f"{made} biases"]
        tensors[names[0]] = T.constant(filters, scale=0.01, zero_point=0)
        tensors[names[1]] = T.constant(biases, scale=0.01 * tensors[given].scale, zero_point=0)
        options = Conv2DOptions(Padding.SAME, 1, 1)
        nodes.append(Node(Op.CONV_2D, [given, *names], [made], options))
    nodes.append(Node(Op.ADD, ["first", "third"], ["y"], AddOptions()))
    x = rng.integers(-128, 128, SHAPE).astype(np.int8)
    return graph_model(tensors, nodes, ["y"]), [x]


def test_exports_for_openvino_have_it() -> None:
    model, _ = residual()
    for target, there in (("openvino", True), ("onnxruntime", False)):
        kinds = [node.op_type for node in export_onnx(model, for_=target).graph.node]
        assert ("LeakyRelu" in kinds) == there


@pytest.mark.openvino
def test_openvino_rounds_what_it_adds() -> None:
    """Without that a seventh of the results are one code off on a processor with AMX."""
    print(f"seed {SEED}")
    model, feeds = residual()
    got, _ = ours(model, feeds, providers=[OPENVINO, CPU])
    (wanted,) = litert(model, feeds)
    assert_close(got[0], wanted, 1, 0, "on OpenVINO")
    assert np.mean(got[0] != wanted) < 0.01
