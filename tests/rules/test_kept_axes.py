"""Reductions keep the axes that they reduce, and a Squeeze leaves them out, for OpenVINO."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest

from tests.lstm_models import Lstm
from tests.models import model_path
from tests.nodes_around import AROUND
from tests.rnn_models import Svdf
from tflite_ort import export_onnx
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes.kept_axes import keep_axes
from tflite_ort.providers.graph_session import graph_session

SEED, SHAPE = 4, (2, 6, 5)


def reduced(name: str, axes: Sequence[int] | None, **attributes: Any) -> ir.Graph:
    """A reduction of x, and a sum of it and a constant."""
    x = ir.Value("x", dtype=ir.DataType.FLOAT, shape=SHAPE)
    graph = ir.Graph([x], [], [], name="reduced")
    given = [] if axes is None else [graph.add_initializer("axes", np.array(axes, np.int64))]
    less, made = ir.Value("less"), ir.Value("made", dtype=ir.DataType.FLOAT)
    one = graph.add_initializer("one", np.float32(1))
    graph.nodes = [
        ir.Node(name, [x, *given], [less], attributes=attributes, name="op/reduce"),
        ir.Node("Add", [less, one], [made], name="op/add"),
    ]
    graph.outputs = [made]
    return graph


def answer(graph: ir.Graph) -> npt.NDArray[Any]:
    print(f"seed {SEED}")
    x = np.random.default_rng(SEED).normal(size=SHAPE).astype(np.float32)
    return graph_session(ir.Model(graph, opset_imports={"": 21})).call([x])[0]


@pytest.mark.parametrize(
    "name", ["ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"]
)
@pytest.mark.parametrize("axes", [(2,), (-1,), (0, 2), (0, 1, 2)])
def test_results_stay(name: str, axes: Sequence[int]) -> None:
    before = answer(reduced(name, axes, keepdims=0))
    graph = reduced(name, axes, keepdims=0)
    keep_axes(graph, AROUND)
    assert [node.op_type for node in graph.nodes] == [name, "Squeeze", "Add"]
    np.testing.assert_array_equal(answer(graph), before)


@pytest.mark.parametrize(
    ("axes", "attributes"),
    [
        ((2,), {}),
        ((2,), {"keepdims": 1}),
        (None, {"keepdims": 0}),
        ((), {"keepdims": 0, "noop_with_empty_axes": 1}),
    ],
)
def test_others_stay(axes: Sequence[int] | None, attributes: dict[str, int]) -> None:
    graph = reduced("ReduceSum", axes, **attributes)
    keep_axes(graph, AROUND)
    assert [node.op_type for node in graph.nodes] == ["ReduceSum", "Add"]
    answer(graph)


def test_in_a_body() -> None:
    inner = reduced("ReduceSum", (2,), keepdims=0)
    test = ir.Value("test", dtype=ir.DataType.BOOL, shape=())
    chosen = ir.Node("If", [test], [ir.Value("chosen")], attributes={"then_branch": inner})
    keep_axes(ir.Graph([test], chosen.outputs, [chosen]), AROUND)
    assert [node.op_type for node in inner.nodes] == ["ReduceSum", "Squeeze", "Add"]


def nodes_of(model: bytes, target: str | None) -> list[onnx.NodeProto]:
    made = export_onnx(model, for_=target, stateful=False).graph
    nodes = list(made.node)
    for node in made.node:
        nodes += [each for x in node.attribute for each in x.g.node]
    return nodes


def test_exports_for_openvino() -> None:
    """Read by OpenVINO, a file whose sums leave out an axis adds the bias along another one."""
    for target, keeps in (("openvino", {1}), (None, {0})):
        sums = [each for each in nodes_of(Svdf().model(), target) if each.op_type == "ReduceSum"]
        kept = {x.i for each in sums for x in each.attribute if x.name == "keepdims"} or {1}
        assert kept == keeps


def test_uint8_weights_for_openvino_have_no_zero_point() -> None:
    """With one it multiplies floats."""
    path = Path(model_path("tflite-support__mobilenet_v2_1.0_224_quant.tflite"))
    graph = export_onnx(path, for_="openvino").graph
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in graph.initializer}
    read = [node.input for node in graph.node if node.op_type == "DequantizeLinear"]
    filters = [each for each in read if np.ndim(constants.get(each[0], 0)) == 4]
    symmetric = [each for each in filters if not any(constants[x].any() for x in each[2:])]
    assert (len(filters), len(symmetric)) == (53, 36)  # the others are depthwise


def test_recurrent_nodes_for_openvino_have_usual_activations() -> None:
    """A GRU that clips the states of an LSTM has the activation Affine, which OpenVINO lacks."""
    model = Lstm(cell_clip=1.5).model()
    for target, there in (("openvino", False), ("onnxruntime", True)):
        used = {x.name for each in nodes_of(model, target) for x in each.attribute}
        assert ("activations" in used) == there
