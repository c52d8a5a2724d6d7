"""Slices that go backwards, for runtimes that have none."""

from __future__ import annotations

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
    shape, given = known.shape(node.inputs[0]), node.constants()
    if shape is None or any(each is None or each.size != 1 for each in given):
        return None
    start, end, axis, step = (int(each.reshape(())) for each in given if each is not None)
    size = shape[axis]
    if step >= 0 or not isinstance(size, int):
        return None
    return axis, range(*slice(start, end, step).indices(size))
