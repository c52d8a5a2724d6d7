"""LSTM, GRU and RNN nodes written step by step give what the nodes give."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tests.models import model_path
from tests.rnn_models import Rnn
from tflite_ort import ExportError, export_onnx
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.recurrent_layers import squeeze_sequences, widen_inputs
from tflite_ort.opmap.onnx_graph.writing.unrolled_sequences import MOST_STEPS, unroll_sequences
from tflite_ort.schema import ActivationFunctionType

Array = npt.NDArray[Any]

GATES = {"GRU": 3, "LSTM": 4, "RNN": 1}
T, B, W, H = 5, 2, 3, 4
CASES = [
    (op_type, direction, first, late)
    for op_type in GATES
    for direction in ("forward", "reverse", "bidirectional")
    for first in (False, True)
    for late in ((0, 1) if op_type == "GRU" else (0,))
]


def cell(
    op_type: str, direction: str, first: bool, late: int, steps: int = T, width: int = W
) -> ir.Model:
    """A graph of one node, with random weights; seed 0."""
    rng, gates = np.random.default_rng(0), GATES[op_type]
    sides, states = 2 if direction == "bidirectional" else 1, 2 if op_type == "LSTM" else 1
    x = ir.Value("x", dtype=ir.DataType.FLOAT, shape=(steps, B, width))
    outputs = [ir.Value("y", dtype=ir.DataType.FLOAT)]
    outputs += [ir.Value(f"last{place}", dtype=ir.DataType.FLOAT) for place in range(states)]
    graph = ir.Graph([x], outputs, [])

    def constant(name: str, *shape: int) -> ir.Value:
        return graph.add_initializer(name, rng.normal(0, 1, shape).astype(np.float32))

    weights = [
        constant("w", sides, gates * H, width),
        constant("r", sides, gates * H, H),
        constant("b", sides, 2 * gates * H),
    ]
    given = [constant(f"state{n}", sides, B, H) for n in range(states)] if first else []
    attributes: dict[str, Any] = {"hidden_size": H, "direction": direction}
    attributes |= {"linear_before_reset": late} if op_type == "GRU" else {}
    inputs = [x, *weights, *([None, *given] if first else [])]
    graph.nodes.append(ir.Node(op_type, inputs, outputs, attributes=attributes, name="cell"))
    return ir.Model(graph, opset_imports={"": 17}, ir_version=8)


def results(model: ir.Model, x: Array) -> list[Array]:
    session = onnxruntime.InferenceSession(serialized(model), providers=["CPUExecutionProvider"])
    return [np.asarray(each) for each in session.run(None, {"x": x})]


@pytest.mark.parametrize(("op_type", "direction", "first", "late"), CASES)
def test_steps_give_what_the_node_gives(
    op_type: str, direction: str, first: bool, late: int
) -> None:
    model = cell(op_type, direction, first, late)
    x = np.random.default_rng(1).normal(0, 1, (T, B, W)).astype(np.float32)
    want = results(model, x)
    unroll_sequences(model.graph, {"x": (T, B, W)})
    assert op_type not in {node.op_type for node in model.graph.nodes}
    for one, other in zip(results(model, x), want, strict=True):
        np.testing.assert_allclose(one, other, atol=2e-6)


@pytest.mark.parametrize("names", [["Relu", "Sigmoid"], ["Sigmoid", "Tanh"]])
def test_steps_of_rnns_with_other_activations(names: list[str]) -> None:
    model = cell("RNN", "bidirectional", True, 0)
    model.graph.nodes[0].attributes["activations"] = names
    x = np.random.default_rng(1).normal(0, 1, (T, B, W)).astype(np.float32)
    want = results(model, x)
    unroll_sequences(model.graph, {"x": (T, B, W)})
    assert "RNN" not in {node.op_type for node in model.graph.nodes}
    for one, other in zip(results(model, x), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=2e-6)


@pytest.mark.parametrize("activation", ["TANH", "RELU"])
def test_opencv_has_lstms_and_no_rnns(activation: str) -> None:
    rnn = Rnn(activation=ActivationFunctionType[activation])
    model = export_onnx(rnn.model(), for_="opencv", stateful=False, check=True)
    assert "RNN" not in {node.op_type for node in model.graph.node}
    path = model_path("tf__lstm_seq_f32.tflite")
    model = export_onnx(path, for_="opencv", lstm_clip="ignore", stateful=False)
    assert "LSTM" in {node.op_type for node in model.graph.node}
    with pytest.raises(ExportError, match="RNN"):
        export_onnx(Rnn(time=MOST_STEPS + 1).model(), for_="opencv", stateful=False)


@pytest.mark.parametrize(
    ("changes", "shapes"),
    [
        ({}, {}),
        ({"clip": 3.0}, {"x": (T, B, W)}),
        ({"activations": ["Sigmoid", "Relu", "Tanh"]}, {"x": (T, B, W)}),
        ({}, {"x": (MOST_STEPS + 1, B, W)}),
    ],
)
def test_other_nodes_stay(changes: dict[str, Any], shapes: dict[str, Any]) -> None:
    """Of a sequence of unknown length or very many steps, and with what a step would have to do
    besides."""
    model = cell("LSTM", "forward", False, 0)
    model.graph.nodes[0].attributes.update(changes)
    unroll_sequences(model.graph, shapes)
    assert [node.op_type for node in model.graph.nodes] == ["LSTM"]


@pytest.mark.parametrize("name", ["tf__lstm_seq_f32", "tf__gru_f32"])
def test_real_layers_for_runtimes_without_them(name: str) -> None:
    model = export_onnx(
        model_path(f"{name}.tflite"), for_="tvm", lstm_clip="ignore", stateful=False, check=True
    )
    found = Counter(node.op_type for node in model.graph.node)
    assert not {"LSTM", "GRU", "Scan", "If", "Loop"} & set(found)
    assert found["MatMul"] > 10


@pytest.mark.parametrize("late", [0, 1])
def test_a_gru_of_one_number_gets_a_second_one(late: int) -> None:
    """tract 0.23.9 fails on a GRU of sequences of one number: "xw not contiguous"."""
    shape = (T, B, 1)
    model = cell("GRU", "bidirectional", True, late, width=1)
    x = np.random.default_rng(1).normal(0, 1, shape).astype(np.float32)
    want = results(model, x)
    widen_inputs(model.graph)
    assert [node.op_type for node in model.graph.nodes] == ["Pad", "GRU"]
    for one, other in zip(results(model, x), want, strict=True):
        np.testing.assert_array_equal(one, other)
    model = cell("GRU", "forward", False, late)
    widen_inputs(model.graph)
    assert [node.op_type for node in model.graph.nodes] == ["GRU"], "of several numbers"


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("read", ["sequence", "state", "both", "cell state", "output"])
def test_sequences_are_read_by_a_squeeze(op_type: str, direction: str, read: str) -> None:
    """pnnx knows a recurrent layer by the Squeeze behind its sequence, and has no last state."""
    model = cell(op_type, direction, False, 0)
    graph = model.graph
    y, *states = graph.outputs
    flat = graph.add_initializer("flat", np.array([-1], np.int64))
    values = {"sequence": [y], "state": [states[0]], "both": [y, states[0]], "output": [y]}
    read_values = values.get(read, states)
    graph.outputs = [ir.Value(f"flat{n}", dtype=ir.DataType.FLOAT) for n in range(len(read_values))]
    for value, made in zip(read_values, graph.outputs, strict=True):
        graph.nodes.append(ir.Node("Reshape", [value, flat], [made], name=made.name))
    if read == "output":
        graph.outputs.append(y)
    x = np.random.default_rng(1).normal(0, 1, (T, B, W)).astype(np.float32)
    want = results(model, x)
    squeeze_sequences(graph)
    changed = direction == "forward" and read != "output"
    changed &= not (read == "cell state" and op_type == "LSTM")
    found = [node.op_type for node in graph.nodes]
    assert found.count("Squeeze") == changed
    assert found.count("Slice") == (changed and read != "sequence")
    for one, other in zip(results(model, x), want, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("name", ["tf__lstm_seq_f32", "tf__gru_f32"])
def test_files_for_ncnn_have_it(name: str) -> None:
    model = export_onnx(
        model_path(f"{name}.tflite"), for_="ncnn", lstm_clip="ignore", stateful=False, check=True
    )
    kinds = [node.op_type for node in model.graph.node]
    layer = next(place for place, kind in enumerate(kinds) if kind in GATES)
    assert kinds[layer + 1] == "Squeeze"
