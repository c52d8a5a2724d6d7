"""Reshapes in a row as one: only the last shape counts."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround


def join_reshapes(graph: ir.Graph, around: NodesAround) -> None:
    """Let each Reshape of `graph` read what stands before the Reshapes that it reads.

    A Reshape that takes sizes of what it reads stays as it is. Those that nothing reads any more
    are left out.
    """
    reshapes = [node for node in graph.nodes if node.op_type == "Reshape"]
    own, joined = set(map(id, reshapes)), False
    for node in reshapes:
        value, shape = node.inputs
        before = None if value is None else value.producer()
        if before is None or id(before) not in own or not _names_all_sizes(node, shape):
            continue
        if before.inputs[1] is None or before.inputs[1].const_value is None:
            continue  # it fails where a computed shape does not fit
        node.inputs = (before.inputs[0], shape)
        joined = True
    if not joined:
        return
    read = graph.read_ids() | set(map(id, graph.outputs))
    graph.nodes = [n for n in graph.nodes if id(n) not in own or id(n.outputs[0]) in read]
    graph.drop_unread()


def _names_all_sizes(node: ir.Node, shape: ir.Value | None) -> bool:
    """Whether no size is taken from the input: a 0 does that unless it means zero."""
    constant = None if shape is None else shape.const_value
    if constant is None:
        return False
    return bool(node.attributes.get("allowzero", 0)) or bool(np.all(constant.array != 0))
