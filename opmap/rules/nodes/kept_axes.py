"""Reductions that keep the axes that they reduce, and behind each a Squeeze that leaves them out.

Some accelerators make one operator of a reduction and of an element-wise operator behind it. A
constant of one number for each place along an axis is then added along another axis, if the
reduction has left out an axis. With a Squeeze between them the two stay apart.
"""

from __future__ import annotations

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

_REDUCING = ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum")


def keep_axes(graph: ir.Graph, around: NodesAround) -> None:
    """Do so in `graph` and in bodies, where the axes are constant."""
    nodes = list[ir.Node]()
    for node in graph.nodes:
        nodes.append(node)
        for body in node.bodies:
            keep_axes(body, around)
        if node.op_type not in _REDUCING or node.attributes.get("keepdims", 1):
            continue
        axes = node.constant(1)
        if axes is None or not axes.size:  # without any a Squeeze would leave out all
            continue
        (made,) = node.outputs
        node.attributes["keepdims"] = 1
        whole = ir.Value(f"{made.name}/kept", dtype=made.dtype)
        node.give(0, whole)
        nodes.append(
            ir.Node("Squeeze", [whole, node.inputs[1]], [made], name=f"{node.name}/Squeeze")
        )
    graph.nodes = nodes
