"""Tanh and Softplus of files for OpenCV, whose own ones are NaN and infinite for large numbers."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest

from tests.one_op import Node, T, graph_model, one_op_model
from tests.test_presets import session
from tflite_ort import export_onnx
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.activations import bound_tanhs
from tflite_ort.schema import AddOptions, MulOptions, Op

EDGES = [0.0, -0.0, 1e-30, 8.9, 9.1, 17.0, 19.99, 20.0, 20.01, 44.2, 88.8, 1e30, np.inf, np.nan]


@pytest.mark.parametrize("op_type", ["Tanh", "Softplus"])
def test_results_are_the_same(op_type: str) -> None:
    numbers = np.float32([*EDGES, *np.negative(EDGES), *np.linspace(-30, 30, 4001)])
    results = []
    for change in (lambda graph: None, bound_tanhs):
        x, y = (ir.Value(name, dtype=ir.DataType.FLOAT, shape=numbers.shape) for name in "xy")
        graph = ir.Graph([x], [y], [ir.Node(op_type, [x], [y], name="node")], name="graph")
        change(graph)
        model = onnx.load_model_from_string(serialized(ir.Model(graph, opset_imports={"": 17})))
        results.append(session(model).run(None, {"x": numbers})[0])
    if op_type == "Tanh":
        np.testing.assert_array_equal(*results)
    else:
        np.testing.assert_allclose(*results, rtol=2e-7)
    assert len(graph.nodes) > 1


def test_a_tanh_for_opencv_reads_no_large_numbers() -> None:
    content = one_op_model(Op.TANH, [T((2, 3))], [T((2, 3))])
    model = export_onnx(content, for_="opencv", check=True)
    assert [node.op_type for node in model.graph.node] == ["Clip", "Tanh"]
    plain = export_onnx(content, for_="mnn")
    assert [node.op_type for node in plain.graph.node] == ["Tanh"]


def test_a_tanh_for_openvino_reads_no_large_softplus() -> None:
    """OpenVINO makes Mish of x * tanh(log(1 + exp(x))), and fails to load between products."""
    tensors = {name: T((2, 3)) for name in ("x", "exp", "more", "log", "tanh", "y", "z")}
    nodes = [
        Node(Op.EXP, ["x"], ["exp"]),
        Node(Op.ADD, ["exp", "one"], ["more"], AddOptions()),
        Node(Op.LOG, ["more"], ["log"]),
        Node(Op.TANH, ["log"], ["tanh"]),
        Node(Op.MUL, ["x", "tanh"], ["y"], MulOptions()),
        Node(Op.TANH, ["y"], ["z"]),
    ]
    tensors["one"] = T.constant(np.ones((), np.float32))
    content = graph_model(tensors, nodes, ["z"])
    model = export_onnx(content, for_="openvino", check=True)
    assert Counter(node.op_type for node in model.graph.node)["Clip"] == 1
    plain = export_onnx(content, for_="mobile")
    assert "Clip" not in {node.op_type for node in plain.graph.node}
