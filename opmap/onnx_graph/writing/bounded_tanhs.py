"""Tanh and Softplus within the numbers that OpenCV computes.

Its Tanh divides powers of e, which is NaN from 44.2 on, and its Softplus is infinite from 88.8 on.
As 32-bit floats, tanh is 1 from 9.1 on, and softplus the number itself from 17 on.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_MOST = np.float32(20)


def bound_tanhs(graph: ir.Graph) -> None:
    """Put a Clip before each Tanh and Softplus, which changes no result."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        if node.op_type not in ("Tanh", "Softplus") or node.domain:
            nodes.append(node)
            continue
        is_tanh, (x,) = node.op_type == "Tanh", node.inputs
        ends = [
            graph.add_initializer(names.free(f"{node.name}/{name}"), np.array(end, np.float32))
            for name, end in (("least", -_MOST if is_tanh else -np.inf), ("most", _MOST))
        ]
        near = ir.Value(names.free(f"{node.name}/near"))
        label = names.free(f"{node.name}/Clip")
        nodes.append(ir.Node("Clip", [x, *ends], [near], name=label))
        node.inputs = (near,)
        nodes.append(node)
        if not is_tanh:
            (made,) = node.outputs
            small = ir.Value(names.free(f"{node.name}/small"))
            node.give(0, small)
            label = names.free(f"{node.name}/Max")
            nodes.append(ir.Node("Max", [small, x], [made], name=label))
    graph.nodes = nodes
