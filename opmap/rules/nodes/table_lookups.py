"""Elements of a table by GatherElements, which ONNX Runtime runs in a tenth of the time of Gather.

Gather copies slices, of which an element of a row is the smallest.
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
    shape, count = _sizes(node.outputs[0]), 0
    if node.op_type == "Gather" and not node.attributes.get("axis", 0) and shape is not None:
        table = node.constant(0)
        count = int(np.prod(shape)) if table is not None and table.ndim == 1 else 0
    if count < _LEAST or shape is None:
        yield node
        return
    (row, places), (result,) = node.inputs, node.outputs
    flat, found = places, result
    if len(shape) > 1:
        flat, found = (ir.Value(f"{result.name}/{name}") for name in ("places", "found"))
        one = graph.add_initializer(f"{node.name}/one", np.array([-1]))
        yield ir.Node("Reshape", [places, one], [flat], name=f"{node.name}/Reshape")
    attributes = {"axis": 0}
    yield ir.Node("GatherElements", [row, flat], [found], attributes=attributes, name=node.name)
    if found is not result:
        sizes = graph.add_initializer(f"{node.name}/sizes", np.array(shape))
        yield ir.Node("Reshape", [found, sizes], [result], name=f"{node.name}/Reshape_1")


def _sizes(value: ir.Value) -> tuple[int, ...] | None:
    """The shape of a value, if it is known."""
    sizes = [] if value.shape is None else [size for size in value.shape if isinstance(size, int)]
    return None if value.shape is None or len(sizes) < len(value.shape) else tuple(sizes)
