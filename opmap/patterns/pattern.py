"""A row of the table of patterns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflite_ort.opmap.graph import Graph, Target
from tflite_ort.opmap.patterns.matching import Found, Node, Producers
from tflite_ort.records import record
from tflite_ort.schema import OperatorView


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
        name: what it is called in messages and in the documentation.
        root: the tree; its root is the group's last operator.
        takes: whether a tree that was found is the group: its shapes and constants are right, what
            reads its result allows the bound, and the target has the nodes.
        emit: adds the nodes; it gets the last operator, whose output it writes.
    """

    name: str
    root: Node
    takes: Callable[[Found, Surroundings], bool]
    emit: Callable[[Found, Graph, OperatorView[Any]], None]
