"""Layers in one node are what ONNX Runtime makes of five."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from tests.models import model_path
from tests.nodes_around import AROUND
from tflite_ort import Interpreter
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes import quantized_layers
from tflite_ort.opmap.rules.nodes.quantized_layers import fuse_layers
from tflite_ort.opmap.rules.rule import NodesAround, without
from tflite_ort.providers import session
from tflite_ort.providers.plain_session import PlainSession
from tflite_ort.providers.settings import Settings

NETWORKS = [
    "mlperf-tiny__pretrainedResnet_quant.tflite",
    "mlperf-tiny__vww_96_int8.tflite",
    "tflite2onnx__depthwise-conv.uint8.tflite",
    "tflite-support__coco_ssd_mobilenet_v1_1.0_quant_2018_06_29.tflite",
]


def ran(name: str, folder: Path, patch: pytest.MonkeyPatch) -> tuple[list[Any], list[bytes], int]:
    """By session the operators of ONNX Runtime's graph, and the outputs for random inputs."""
    made: list[Counter[str]] = []

    class Spy(PlainSession):
        def __init__(self, content: Any, options: Any, *rest: Any) -> None:
            options.optimized_model_filepath = str(folder / "optimised.onnx")
            super().__init__(content, options, *rest)
            nodes = onnx.load(options.optimized_model_filepath).graph.node
            made.append(Counter(node.op_type for node in nodes))

    patch.setattr(session, "PlainSession", Spy)
    patch.setattr(Settings, "shared_options", Settings.options)
    interpreter = Interpreter(model_path(name))
    interpreter.allocate_tensors()
    for index, array in random_inputs(interpreter.get_input_details(), 3).items():
        interpreter.set_tensor(index, array)
    interpreter.invoke()
    outputs = [each["index"] for each in interpreter.get_output_details()]
    layers = sum(each["QLinearConv"] for each in made)
    return made[-1:], [interpreter.get_tensor(index).tobytes() for index in outputs], layers


@pytest.mark.parametrize("name", NETWORKS)
def test_the_graph_is_the_one_that_onnx_runtime_makes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[list[int]] = [[], []]
    fuse = quantized_layers.fuse_layers

    def left(graph: ir.Graph, around: NodesAround) -> None:
        sizes[0].append(len(graph.nodes))

    def counted(graph: ir.Graph, around: NodesAround) -> None:
        fuse(graph, around)
        sizes[1].append(len(graph.nodes))

    with without("weights around zero", "signed weights in pairs"):
        monkeypatch.setattr(quantized_layers, "fuse_layers", left)
        with monkeypatch.context() as patch:
            plain = ran(name, tmp_path, patch)
        monkeypatch.setattr(quantized_layers, "fuse_layers", counted)
        with monkeypatch.context() as patch:
            assert ran(name, tmp_path, patch) == plain
    assert plain[2] > 0
    assert max(sizes[1]) < max(sizes[0])


def layer(
    *,
    result: npt.DTypeLike = np.uint8,
    bias: npt.DTypeLike = np.int32,
    readers: int = 1,
    clip: bool = False,
) -> ir.Graph:
    """One layer as translators write it, or nearly."""

    def constant(name: str, array: Any) -> ir.Value:
        value = ir.Value(name, const_value=ir.Tensor(np.asarray(array)))
        constants.append(value)
        return value

    constants: list[ir.Value] = []
    nodes: list[ir.Node] = []

    def op(kind: str, *inputs: ir.Value) -> ir.Value:
        value = ir.Value(f"{kind}{len(nodes)}")
        nodes.append(ir.Node(kind, inputs, [value]))
        return value

    x = ir.Value("x", dtype=ir.DataType.UINT8, shape=(1, 1, 4, 4))
    half = constant("half", np.float32(0.5))
    zero = [constant(f"zero_{np.dtype(t)}", np.zeros((), t)) for t in (np.uint8, np.int8, result)]
    codes = constant("codes", np.ones((1, 1, 2, 2), np.int8))
    biases = constant("bias", np.ones(1, bias))
    real = op("DequantizeLinear", biases, half) if bias is np.int32 else biases
    weights = op("DequantizeLinear", codes, half, zero[1])
    y = op("Conv", op("DequantizeLinear", x, half, zero[0]), weights, real)
    if clip:
        y = op("Relu", y)
    results = [op("QuantizeLinear", y, half, zero[2]) for _ in range(readers)]
    return ir.Graph([x], results, nodes, initializers=constants)


def test_a_layer_is_one_node() -> None:
    graph = layer()
    fuse_layers(graph, AROUND)
    assert [node.op_type for node in graph.nodes] == ["QLinearConv"]
    assert set(graph.initializers) == {"half", "zero_uint8", "zero_int8", "codes", "bias"}


@pytest.mark.parametrize(
    "choices", [{"result": np.int8}, {"bias": np.float32}, {"readers": 2}, {"clip": True}]
)
def test_what_is_no_layer_stays(choices: dict[str, Any]) -> None:
    graph = layer(**choices)
    before = [node.op_type for node in graph.nodes]
    fuse_layers(graph, AROUND)
    assert [node.op_type for node in graph.nodes] == before
