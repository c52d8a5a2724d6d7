"""Clip of Relu and Clip of Clip as one node, as graphs of dequantized models have them."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# What a bound that is not said allows.
_OPEN = (-np.inf, np.inf)
Bounds = tuple[float, float]


def join_clips(graph: ir.Graph) -> None:
    """Make one Clip of two nodes in a row that clip floats, where nothing else reads between."""
    reads, names = graph.read_counts(), Names(graph)
    ends = {id(value) for value in graph.outputs}
    for node in graph.nodes:
        bounds, value = _bounds(node), node.inputs[0] if node.inputs else None
        before = None if value is None else value.producer()
        if bounds is None or before is None or id(value) in ends or reads[id(value)] != 1:
            continue
        inner, source = _bounds(before), before.inputs[0]
        if inner is None or source is None:
            continue
        low = min(max(inner[0], bounds[0]), bounds[1])
        high = max(min(inner[1], bounds[1]), bounds[0])
        ends_of = [
            None
            if np.isinf(bound)
            else graph.add_initializer(
                names.free(f"{node.name}/{what}"), np.array(bound, np.float32)
            )
            for bound, what in ((low, "low"), (high, "high"))
        ]
        node.op_type, node.inputs = "Clip", (source, *ends_of)
    graph.nodes = ir.leading_to(graph.outputs, graph.nodes)
    graph.drop_unread()


def _bounds(node: ir.Node) -> Bounds | None:
    """What `node` clips floats to; None for any other node."""
    if node.op_type == "Relu" and not node.domain:
        return 0.0, np.inf
    if node.op_type != "Clip" or node.domain:
        return None
    found = list(_OPEN)
    for place, value in enumerate(node.inputs[1:]):
        if value is None:
            continue
        constant = value.const_value
        if constant is None or constant.dtype is not ir.DataType.FLOAT or constant.array.size != 1:
            return None
        found[place] = float(constant.array.reshape(()))
    return found[0], found[1]
