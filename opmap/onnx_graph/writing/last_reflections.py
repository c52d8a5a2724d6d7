"""Reflections of the last axes alone, for runtimes that do no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# As many of the first axes are not padded.
_FIRST = 2


def reflect_last_axes(graph: ir.Graph) -> None:
    """Move the axes that a Pad reflects behind all others, and back behind the Pad."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        order = _order(node)
        if order is None:
            nodes.append(node)
            continue
        x, pads = node.inputs[:2]
        assert pads is not None
        assert pads.const_value is not None
        (made,) = node.outputs
        moved, padded = (
            ir.Value(names.free(f"{node.name}/{each}")) for each in ("moved", "padded")
        )
        label = names.free(f"{node.name}/pads")
        array = pads.const_value.array.reshape(2, -1)[:, order].reshape(-1)
        node.inputs = (moved, graph.add_initializer(label, array))
        node.give(0, padded)
        back = [order.index(axis) for axis in range(len(order))]
        nodes += [_transpose(x, moved, order, names), node, _transpose(padded, made, back, names)]
    graph.nodes = nodes
    graph.drop_unread()


def _transpose(
    given: ir.Value | None, made: ir.Value, order: Sequence[int], names: Names
) -> ir.Node:
    label = names.free(f"{made.name}/Transpose")
    return ir.Node("Transpose", [given], [made], attributes={"perm": order}, name=label)


def _order(node: ir.Node) -> list[int] | None:
    """The axes of what a Pad reflects, those that it pads at the end; None where it can stay."""
    if node.op_type != "Pad" or node.domain or node.attributes.get("mode") != "reflect":
        return None
    constant = None if node.inputs[1] is None else node.inputs[1].const_value
    if constant is None or len(node.inputs) > 2:
        return None
    padded = np.flatnonzero(constant.array.reshape(2, -1).any(axis=0)).tolist()
    rank = constant.array.size // 2
    if not padded or min(padded) >= _FIRST or len(padded) > rank - _FIRST:
        return None
    return [*(axis for axis in range(rank) if axis not in padded), *padded]
