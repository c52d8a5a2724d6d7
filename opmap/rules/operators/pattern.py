"""A row of the table of patterns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators.matching import Found, Node, Producers
from tflite_ort.schema import OperatorView, TensorView

View = OperatorView[Any]

# Adds the nodes of a group to a graph; it gets the group's last operator, whose output it writes.
Emit = Callable[[Graph, View], None]


@record
class Surroundings:
    """Where a tree was found.

    Args:
        producers: what makes and reads each tensor.
        target: what the nodes are made for.
    """

    producers: Producers
    target: Target


@record
class Pattern:
    """A group of operators, and the nodes that it becomes.

    Args:
        name: what it is called in the documentation.
        root: the tree; its root is the group's last operator.
        plan: what adds the nodes. None if the tree that was found is not the group: its shapes or
            constants are others, what reads its result does not allow the bound, or the target
            lacks the nodes.
    """

    name: str
    root: Node
    plan: Callable[[Found, Surroundings], Emit | None]


def shaped(g: Graph, tensor: TensorView, shape: Sequence[int]) -> ir.Value:
    """The elements of `tensor` in `shape`."""
    value = g.read(tensor)
    return value if tuple(tensor.shape) == tuple(shape) else g.reshape(value, shape)
