"""Slices that go backwards, for runtimes that have none."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.added_nodes import AddedNodes
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names


def gather_reversals(graph: ir.Graph, known: Known) -> None:
    """Write each Slice that goes backwards along one axis of a known size as a Gather."""
    names = Names(graph)
    for node in graph.nodes:
        places = _places(node, known)
        if places is not None:
            axis, order = places
            added = AddedNodes(graph, node.name, names)
            node.op_type, node.attributes = "Gather", {"axis": axis}
            node.inputs = node.inputs[0], added.ints(order, "order")
    graph.drop_unread()


def _places(node: ir.Node, known: Known) -> tuple[int, range] | None:
    """The axis and the places that a Slice takes; None if it goes forwards, or along several."""
    if node.op_type != "Slice" or node.domain or len(node.inputs) < 5:
        return None
    shape, given = known.shape(node.inputs[0]), [_number(value) for value in node.inputs[1:]]
    if shape is None or None in given:
        return None
    start, end, axis, step = (int(each) for each in given if each is not None)
    size = shape[axis]
    if step >= 0 or not isinstance(size, int):
        return None
    return axis, range(*slice(start, end, step).indices(size))


def _number(value: ir.Value | None) -> int | None:
    """The number of a constant of one."""
    constant = None if value is None else value.const_value
    if constant is None or constant.array.size != 1:
        return None
    return int(np.asarray(constant.array).reshape(-1)[0])
