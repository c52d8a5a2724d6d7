"""Exports leave out parts of nodes that say what holds without them; the results are the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnxruntime
import pytest

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import serialized
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.needless_nodes import without_needless_nodes
from tflite_ort.opmap.onnx_graph.writing.usual_parts import leave_out_usual_parts

Array = npt.NDArray[Any]
F = ir.DataType.FLOAT
RNG = np.random.default_rng(0)


def floats(*shape: int) -> Array:
    return RNG.normal(size=shape).astype(np.float32)


def zeros(*shape: int) -> Array:
    return np.zeros(shape, np.float32)


def node_model(
    kind: str,
    x: Array,
    constants: Sequence[Array | None],
    attributes: Mapping[str, Any],
    outputs: int = 1,
) -> ir.Model:
    """A node over `x` and constants, whose first output is the graph's."""
    graph = ir.Graph([ir.Value("x", dtype=F, shape=x.shape)], [], [], name="main")
    held = [
        None if each is None else graph.add_initializer(f"c{place}", each)
        for place, each in enumerate(constants)
    ]
    made = [ir.Value(f"y{place}") for place in range(outputs)]
    graph.nodes = [ir.Node(kind, [*graph.inputs, *held], made, attributes=attributes)]
    graph.outputs = made[:1]
    return ir.Model(graph, opset_imports={"": 21})


def run(model: ir.Model, x: Array) -> Array:
    session = onnxruntime.InferenceSession(serialized(model, small=True))
    return np.concatenate([np.ravel(each) for each in session.run(None, {"x": x})])


LISTS = {"strides": [1, 1], "dilations": [1, 1], "pads": [0, 0, 0, 0]}
PLACES = (floats(1, 12, 4), floats(1, 12, 3))


@pytest.mark.parametrize(
    ("kind", "x", "constants", "attributes", "outputs", "inputs", "left"),
    [
        ("Conv", floats(1, 2, 5, 5), [floats(3, 2, 3, 3), zeros(3)], LISTS, 1, 2, set()),
        ("Conv", floats(1, 2, 5, 5), [floats(3, 2, 3, 3), floats(3)], {}, 1, 3, set()),
        ("Conv", floats(1, 2, 5, 5), [floats(3, 2, 3, 3)], {"pads": [1, 0, 0, 0]}, 1, 2, {"pads"}),
        (
            "ConvTranspose",
            floats(1, 2, 5, 5),
            [floats(2, 3, 3, 3), zeros(3)],
            {**LISTS, "strides": [2, 1], "output_padding": [0, 0]},
            1,
            2,
            {"strides"},
        ),
        ("Gemm", floats(2, 4), [floats(4, 3), zeros(3)], {}, 1, 2, set()),
        (
            "MaxPool",
            floats(1, 2, 5, 5),
            [],
            {**LISTS, "kernel_shape": [2, 2]},
            1,
            1,
            {"kernel_shape", "strides"},
        ),
        (
            "ReduceMean",
            floats(2, 3),
            [np.array([1])],
            {"noop_with_empty_axes": 1},
            1,
            2,
            set(),
        ),
        (
            "ReduceMean",
            floats(2, 3),
            [np.array([], np.int64)],
            {"noop_with_empty_axes": 1},
            1,
            2,
            {"noop_with_empty_axes"},
        ),
        (
            "LSTM",
            floats(5, 1, 4),
            [*PLACES, zeros(1, 24), None, zeros(1, 1, 3), zeros(1, 1, 3)],
            {"hidden_size": 3},
            3,
            3,
            {"hidden_size"},
        ),
        (
            "LSTM",
            floats(5, 1, 4),
            [*PLACES, zeros(1, 24), None, zeros(1, 1, 3), floats(1, 1, 3)],
            {"hidden_size": 3},
            3,
            7,
            {"hidden_size"},
        ),
        (
            "RNN",
            floats(5, 1, 4),
            [floats(1, 3, 4), floats(1, 3, 3), floats(1, 6), None, zeros(1, 1, 3)],
            {"hidden_size": 3},
            2,
            4,
            {"hidden_size"},
        ),
    ],
)
def test_what_is_left_out_changes_nothing(
    kind: str,
    x: Array,
    constants: Sequence[Array | None],
    attributes: Mapping[str, Any],
    outputs: int,
    inputs: int,
    left: set[str],
) -> None:
    model = node_model(kind, x, constants, attributes, outputs)
    before = run(model, x)
    leave_out_usual_parts(model.graph)
    (node,) = model.graph.nodes
    assert (len(node.inputs), len(node.outputs), set(node.attributes)) == (inputs, 1, left)
    assert len(model.graph.initializers) == sum(value is not None for value in node.inputs) - 1
    np.testing.assert_array_equal(run(model, x), before)


def test_a_first_value_of_a_state_stays() -> None:
    """The graph has it as an input, so another one may be given."""
    x = floats(2, 4)
    model = node_model("Gemm", x, [floats(4, 3), zeros(3)], {})
    model.graph.inputs.append(model.graph.initializers["c1"])
    leave_out_usual_parts(model.graph)
    assert len(model.graph.nodes[0].inputs) == 3


def branch(x: ir.Value, names: Sequence[str]) -> ir.Graph:
    """The body of an If, with a node for each output."""
    made = [ir.Value(name) for name in names]
    kinds = ("Neg", "Abs", "Relu")
    nodes = [ir.Node(kind, [x], [value]) for kind, value in zip(kinds, made, strict=False)]
    return ir.Graph([], made, nodes, name=names[0])


@pytest.mark.parametrize("read", [[0], [2], [0, 2], [0, 1, 2]])
def test_an_if_gives_what_is_read(read: list[int]) -> None:
    x = floats(3)
    given = ir.Value("x", dtype=F, shape=(3,))
    graph = ir.Graph([given], [], [], name="main")
    bodies = {
        name: branch(given, [f"{name}{place}" for place in range(3)])
        for name in ("then_branch", "else_branch")
    }
    test = graph.add_initializer("test", np.array(True))
    made = [ir.Value(f"y{place}") for place in range(3)]
    graph.nodes = [ir.Node("If", [test], made, attributes=bodies)]
    ends = [ir.Value(f"z{place}") for place in read]
    graph.nodes += [
        ir.Node("Exp", [made[place]], [end]) for place, end in zip(read, ends, strict=True)
    ]
    graph.outputs = ends
    model = ir.Model(graph, opset_imports={"": 21})
    before = run(model, x)
    without_needless_nodes(graph, Known({}))
    choice = graph.nodes[0]
    assert [value.name for value in choice.outputs] == [f"y{place}" for place in read]
    assert [len(body.nodes) for body in choice.bodies] == [len(read)] * 2
    np.testing.assert_array_equal(run(model, x), before)
