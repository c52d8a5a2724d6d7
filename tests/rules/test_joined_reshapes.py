"""Reshapes in a row: one node, with the same elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from tests.nodes_around import AROUND
from tests.one_op import Node, T, graph_model
from tests.optimised import optimised_nodes
from tests.oracle import litert
from tests.rules.trees import answers
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes.joined_reshapes import join_reshapes
from tflite_ort.schema import Op


def chain(
    shapes: Sequence[Sequence[int] | None], seen: Sequence[int] = (), allowzero: int = 0
) -> ir.Graph:
    """Reshapes of `x` one after the other; a shape of None is an input.

    Args:
        seen: the numbers of those that are outputs, besides the last one.
    """
    values = [ir.Value("x"), *(ir.Value(f"y{number}") for number in range(len(shapes)))]
    graph = ir.Graph([values[0]], [*(values[n + 1] for n in seen), values[-1]], [])
    for number, shape in enumerate(shapes):
        if shape is None:
            given = ir.Value(f"shape{number}")
            graph.inputs.append(given)
        else:
            given = graph.add_initializer(f"shape{number}", np.array(shape, np.int64))
        attributes = {"allowzero": allowzero} if allowzero else {}
        inputs, outputs = [values[number], given], [values[number + 1]]
        graph.nodes.append(ir.Node("Reshape", inputs, outputs, attributes=attributes))
    return graph


@pytest.mark.parametrize(
    ("graph", "left"),
    [
        (chain([[4, 6], [24], [2, 12]]), [("x", "y2")]),
        (chain([[4, 6], [-1, 3]]), [("x", "y1")]),
        (chain([[4, 6], [24]], seen=[0]), [("x", "y0"), ("y0", "y1")]),
        (chain([[4, 6], [0, -1]]), [("x", "y0"), ("y0", "y1")]),
        (chain([[0, 6], [0, 3]], allowzero=1), [("x", "y1")]),
        (chain([None, [24]]), [("x", "y0"), ("y0", "y1")]),
        (chain([[4, 6], None]), [("x", "y0"), ("y0", "y1")]),
        (chain([None, [24], [4, 6]]), [("x", "y0"), ("y0", "y2")]),
        (chain([[24]]), [("x", "y0")]),
    ],
)
def test_chains(graph: ir.Graph, left: list[tuple[str, str]]) -> None:
    join_reshapes(graph, AROUND)
    found = [(node.inputs[0].name, node.outputs[0].name) for node in graph.nodes if node.inputs[0]]
    assert found == left
    read = graph.read_ids()
    assert all(id(value) in read for value in graph.initializers.values())


def test_heads_between_layers() -> None:
    """The rows of a layer as heads and back, as in attention."""
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(16, 16)).astype(np.float32)
    shapes = {"a": (1, 4, 16), "b": (1, 4, 2, 8), "c": (1, 4, 16), "y": (1, 4, 16)}
    tensors = {"x": T((1, 4, 16)), "w": T.constant(weights)}
    tensors |= {name: T(shape) for name, shape in shapes.items()}
    tensors |= {f"to_{name}": T.constant(np.int32(shapes[name])) for name in "bc"}
    nodes = [
        Node(Op.FULLY_CONNECTED, ["x", "w"], ["a"]),
        Node(Op.RESHAPE, ["a", "to_b"], ["b"]),
        Node(Op.RESHAPE, ["b", "to_c"], ["c"]),
        Node(Op.FULLY_CONNECTED, ["c", "w"], ["y"]),
    ]
    content, x = graph_model(tensors, nodes, ["y"]), rng.normal(size=(1, 4, 16)).astype(np.float32)
    np.testing.assert_allclose(answers(content, [x])[0], litert(content, [x])[0], rtol=1e-5)
    assert optimised_nodes(content)["Reshape"] <= 2
