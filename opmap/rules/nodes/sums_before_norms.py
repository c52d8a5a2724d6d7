"""Sums that an RMS norm reads, as one node with it: SkipSimplifiedLayerNormalization.

A transformer adds what a layer makes to what it has read, and norms the sum; the next sum reads it
too. ONNX Runtime's node gives both. It adds and norms as the two nodes do. (The one with means,
SkipLayerNormalization, is left alone: it takes the variance from a difference of squares.)
"""

from __future__ import annotations

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.marks import SUM_OF_EQUALS
from tflite_ort.opmap.rules.rule import NodesAround

NORM, _DOMAIN = "SimplifiedLayerNormalization", "com.microsoft"


def join_sums_and_norms(graph: ir.Graph, around: NodesAround) -> None:
    """Change `graph` as above."""
    own = {id(node) for node in graph.nodes}
    joined = dict[int, ir.Node]()
    gone = set[int]()
    for norm in graph.nodes:
        value = norm.inputs[0] if norm.op_type == NORM else None
        add = None if value is None else value.producer()
        if add is None or value is None or add.op_type != "Add":
            continue
        if id(add) not in own or id(add) in joined:  # of another graph, or of another norm
            continue
        if SUM_OF_EQUALS in value.marks and norm.attributes.get("axis") == -1:
            joined[id(add)] = _joined(add, norm)
            gone.add(id(norm))
    nodes = (joined.get(id(node), node) for node in graph.nodes if id(node) not in gone)
    graph.nodes = list(nodes)


def _joined(add: ir.Node, norm: ir.Node) -> ir.Node:
    """The node that makes the result of `norm`, and the sum."""
    absent = (ir.Value(""), ir.Value(""))
    return ir.Node(
        "SkipSimplifiedLayerNormalization",
        [*add.inputs, norm.inputs[1]],
        [norm.outputs[0], *absent, add.outputs[0]],
        domain=_DOMAIN,
        attributes={"epsilon": norm.attributes["epsilon"]},
        name=norm.name,
    )
