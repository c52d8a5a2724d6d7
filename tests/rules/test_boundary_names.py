"""Names of inputs and outputs in sessions."""

from __future__ import annotations

import numpy as np

from tests.one_op import Node, T, graph_model, ours
from tests.ops.operands import exported
from tests.optimised import optimised_graphs
from tests.rules.trees import answers
from tflite_ort.schema import AddOptions, Op

LONG = "a tensor whose name is long"


def names(content: bytes) -> tuple[list[str], list[str]]:
    """Of inputs and outputs of the only session."""
    (model,) = optimised_graphs(content)
    inputs, outputs = model.graph.input, model.graph.output
    return [each.name for each in inputs], [each.name for each in outputs]


def test_long_names_become_short() -> None:
    tensors = {name: T((3,)) for name in (f"{LONG} 1", "x", f"{LONG} 2", "t0", "y")}
    nodes = [
        Node(Op.ADD, [f"{LONG} 1", "x"], ["t0"], AddOptions()),
        Node(Op.ADD, ["t0", f"{LONG} 1"], [f"{LONG} 2"], AddOptions()),
        Node(Op.NEG, [f"{LONG} 2"], ["y"]),
    ]
    content = graph_model(tensors, nodes, [f"{LONG} 2", "y"])
    assert names(content) == (["t1", "x"], ["t2", "y"])  # t0 is the name of another tensor
    given = [np.float32([1, 2, 3]), np.float32([10, 20, 30])]
    both, negated = answers(content, given)
    np.testing.assert_array_equal(both, [12, 24, 36])
    np.testing.assert_array_equal(negated, [-12, -24, -36])


def test_two_outputs_that_are_one_value_in_two_layouts() -> None:
    """A map of one cell and one channel stands in all layouts at once."""
    order = T.constant(np.int32([0, 2, 3, 1]))
    tensors = {"x": T((1, 1, 1, 1)), "y": T((1, 1, 1, 1)), "order": order, "z": T((1, 1, 1, 1))}
    nodes = [Node(Op.NEG, ["x"], ["y"]), Node(Op.TRANSPOSE, ["y", "order"], ["z"])]
    content, given = graph_model(tensors, nodes, ["y", "z"]), np.full((1, 1, 1, 1), 7, np.float32)
    for results in (ours(content, [given])[0], exported(content, [given])):
        assert [float(each.item()) for each in results] == [-7, -7]
