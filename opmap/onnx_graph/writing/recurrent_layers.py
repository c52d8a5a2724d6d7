"""Recurrent layers for runtimes that fail on sequences of one number, or that know a layer by what
stands behind it."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.added_nodes import AddedNodes
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_RECURRENT = ("LSTM", "GRU", "RNN")
_END = np.iinfo(np.int64).max  # of a slice


def widen_inputs(graph: ir.Graph) -> None:
    """Give each GRU that reads one number in a step a 0 besides, whose weights are 0."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        weights = node.inputs[1] if node.op_type == "GRU" and not node.domain else None
        constant = None if weights is None else weights.const_value
        if constant is not None and constant.shape[2:] == (1,):
            added, array = AddedNodes(graph, node.name, names), constant.array
            wide = np.concatenate([array, np.zeros_like(array)], axis=2)
            pads = added.ints([0, 0, 0, 0, 0, 1], "pads")
            given = added.op("Pad", node.inputs[0], pads)
            node.inputs = given, added.constant(wide, "weights"), *node.inputs[2:]
            nodes += added.nodes
        nodes.append(node)
    graph.nodes = nodes
    graph.drop_unread()


def squeeze_sequences(graph: ir.Graph) -> None:
    """Have a Squeeze of its directions behind each layer of one direction, and of that the last
    step in place of the last state."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        nodes.append(node)
        if node.op_type in _RECURRENT and not node.domain and node.outputs[0].name:
            nodes += _squeezed(graph, node, names)
    graph.nodes = nodes


def _squeezed(graph: ir.Graph, node: ir.Node, names: Names) -> list[ir.Node]:
    """What comes behind a layer. Nothing does if others than Reshapes read its sequence, or if its
    cell state is read."""
    sequence, *states = node.outputs
    readers = [each for each in graph.nodes if sequence in each.inputs]
    after = [each for each in graph.nodes if set(states) & set(each.inputs)]
    is_read = any(value in node.outputs for value in graph.outputs)
    is_read |= any(state in each.inputs for each in after for state in states[1:])
    if is_read or any(each.op_type != "Reshape" for each in readers):
        return []
    if node.attributes.get("direction", "forward") != "forward":
        return []
    added = AddedNodes(graph, node.name, names)
    squeezed = added.op("Squeeze", sequence, added.ints([1], "directions"))
    for each in readers:
        each.inputs = squeezed, *each.inputs[1:]
    if after:
        place = (([-1], "last"), ([_END], "end"), ([0], "time"))
        last = added.op("Slice", squeezed, *(added.ints(*each) for each in place))
        for each in after:
            each.inputs = tuple(last if value is states[0] else value for value in each.inputs)
    return added.nodes
