"""Reshapes in a row as one: only the last shape counts."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround


def join_reshapes(graph: ir.Graph, around: NodesAround) -> None:
    """Let a Reshape of `graph` read what the Reshape before it reads, if nothing else reads that.

    One that takes sizes of what it reads stays as it is.
    """
    reshapes = {id(node): node for node in graph.nodes if node.op_type == "Reshape"}
    found = ((node, reshapes.get(id(_maker(node)))) for node in reshapes.values())
    pairs = [(node, before) for node, before in found if before is not None]
    if not pairs:
        return
    reads, gone = graph.read_counts(), set[int]()
    reads.update(id(value) for value in graph.outputs)
    for node, before in pairs:
        shape = node.inputs[1]
        if reads[id(before.outputs[0])] > 1 or not _names_all_sizes(node):
            continue
        if before.constant(1) is None:
            continue  # it fails where a computed shape does not fit
        node.inputs = (before.inputs[0], shape)
        gone.add(id(before))
    if gone:
        graph.nodes = [node for node in graph.nodes if id(node) not in gone]
        graph.drop_unread()


def _maker(node: ir.Node) -> ir.Node | None:
    """What makes the elements that a Reshape reads."""
    return None if node.inputs[0] is None else node.inputs[0].producer()


def _names_all_sizes(node: ir.Node) -> bool:
    """Whether no size is taken from the input: a 0 does that unless it means zero."""
    sizes = node.constant(1)
    if sizes is None:
        return False
    return bool(node.attributes.get("allowzero", 0)) or bool(np.all(sizes != 0))
