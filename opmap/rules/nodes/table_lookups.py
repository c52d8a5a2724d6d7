"""Elements of a table by GatherElements, which ONNX Runtime runs in a tenth of the time of Gather.

Gather copies slices, of which an element of a row is the smallest. Places along the last axis read
a table along it; others are a row for the time being.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

# Fewer elements are looked up in the time of the nodes that change the shape.
_LEAST = 256


def look_up_elements(graph: ir.Graph, around: NodesAround) -> None:
    """Change each Gather of many elements of a constant row."""
    graph.nodes = [each for node in graph.nodes for each in _looked_up(graph, node)]


def _looked_up(graph: ir.Graph, node: ir.Node) -> Iterator[ir.Node]:
    shape, table = _sizes(node.outputs[0]), node.constant(0)
    if node.op_type != "Gather" or node.attributes.get("axis", 0) or shape is None:
        yield node
        return
    count = int(np.prod(shape))
    is_row = shape[-1:] == (count,)
    if table is None or table.ndim != 1 or not count or (count < _LEAST and not is_row):
        yield node
        return
    (row, places), (result,) = node.inputs, node.outputs
    flat, found, axis = places, result, 0
    if is_row and len(shape) > 1:
        axis = len(shape) - 1
        row = graph.add_initializer(f"{node.name}/table", table.reshape(*[1] * axis, -1))
    elif len(shape) > 1:
        flat, found = (ir.Value(f"{result.name}/{name}") for name in ("places", "found"))
        one = graph.add_initializer(f"{node.name}/one", np.array([-1]))
        yield ir.Node("Reshape", [places, one], [flat], name=f"{node.name}/Reshape")
    attributes = {"axis": axis}
    yield ir.Node("GatherElements", [row, flat], [found], attributes=attributes, name=node.name)
    if found is not result:
        sizes = graph.add_initializer(f"{node.name}/sizes", np.array(shape))
        yield ir.Node("Reshape", [found, sizes], [result], name=f"{node.name}/Reshape_1")


def _sizes(value: ir.Value) -> tuple[int, ...] | None:
    """The shape of a value, if it is known."""
    sizes = [] if value.shape is None else [size for size in value.shape if isinstance(size, int)]
    return None if value.shape is None or len(sizes) < len(value.shape) else tuple(sizes)
