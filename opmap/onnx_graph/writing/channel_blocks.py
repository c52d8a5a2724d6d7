"""DepthToSpace with blocks behind channels, as PyTorch's pixel_shuffle has them."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.added_nodes import AddedNodes
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_CHANNELS = 1


def blocks_behind_channels(graph: ir.Graph, known: Known) -> None:
    """Where a DepthToSpace reads the places of a block before its channels, gather the channels
    first."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        if node.op_type == "DepthToSpace" and not node.domain:
            nodes += _gathered(graph, node, known, names)
        nodes.append(node)
    graph.nodes = nodes


def _gathered(graph: ir.Graph, node: ir.Node, known: Known, names: Names) -> list[ir.Node]:
    """What comes before a DepthToSpace, which is changed."""
    (x,), shape = node.inputs, known.shape(node.inputs[0])
    size, channels = node.attributes.get("blocksize"), shape[_CHANNELS] if shape else None
    if node.attributes.get("mode", "DCR") != "DCR" or not isinstance(size, int):
        return []
    if not isinstance(channels, int):
        return []
    added = AddedNodes(graph, node.name, names)
    order = np.arange(channels).reshape(size * size, -1).T.reshape(-1)
    node.inputs = (added.op("Gather", x, added.constant(order, "order"), axis=_CHANNELS),)
    node.attributes["mode"] = "CRD"
    return added.nodes
