"""Indices of which converters count those below 0 from the end, as ONNX Runtime's Gather does.

Keras adds the number of rows to an index below 0, and TFLite refuses what is still outside. Gather
takes the index as it was, and fails for the same ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

_WHOLE = (ir.DataType.UINT32, ir.DataType.INT64)


def read_from_end(graph: ir.Graph, around: NodesAround) -> None:
    """Give each Gather such indices as they were, and drop what nothing reads then."""
    changed = False
    for node in graph.nodes:
        if node.op_type != "Gather" or node.domain:
            continue
        chain = _chain(node.inputs[1])
        size = _size(node)
        if chain and size is not None and chain[-1].op_type == "Where":
            index = _wrapped(chain[-1], size)
            if index is not None:
                node.inputs, changed = (node.inputs[0], index), True
    if changed:
        graph.nodes = ir.leading_to(graph.outputs, graph.nodes)


def _chain(indices: ir.Value | None) -> Sequence[ir.Node]:
    """The Casts by which an int32 below 0 becomes too large, and what is before them."""
    nodes = list[ir.Node]()
    for wanted in reversed(_WHOLE):
        cast = None if indices is None else indices.producer()
        if cast is None or cast.op_type != "Cast" or cast.attributes.get("to") != wanted:
            return []
        nodes.append(cast)
        indices = cast.inputs[0]
    source = None if indices is None else indices.producer()
    return [] if source is None else [*nodes, source]


def _size(gather: ir.Node) -> int | None:
    """How many rows there are to be gathered."""
    table = gather.inputs[0]
    shape = None if table is None else table.shape
    if table is not None and table.const_value is not None:
        shape = table.const_value.shape
    axis = gather.attributes.get("axis", 0)
    size = shape[axis] if shape is not None and isinstance(axis, int) else None
    return size if isinstance(size, int) else None


def _wrapped(where: ir.Node, size: int) -> ir.Value | None:
    """The indices of which `where` adds `size` to those below 0."""
    below, total = (None if v is None else v.producer() for v in where.inputs[:2])
    x = where.inputs[2]
    if x is None or below is None or total is None:
        return None
    if below.op_type != "Less" or below.inputs[0] is not x or total.op_type != "Add":
        return None
    zero, added = below.constant(1), total.constant(1)
    if total.inputs[0] is not x:
        added = total.constant(0) if total.inputs[1] is x else None
    if zero is None or added is None or zero.size != 1 or added.size != 1:
        return None
    plain = max(zero.ndim, added.ndim) < 2 and zero.dtype == added.dtype == "i4"
    return x if plain and zero.item() == 0 and added.item() == size else None
