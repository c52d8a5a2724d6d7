"""Inputs of recurrent layers, for runtimes that fail on sequences of one number."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.added_nodes import AddedNodes
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names


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
