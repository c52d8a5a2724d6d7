"""Pads in forms that runtimes compute: even at both ends, along sides alone, of the last axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_RANK, _CHANNELS = 4, 1
_TO_THE_END = np.iinfo(np.int64).max
# As many of the first axes are not padded.
_FIRST = 2


def join_channel_pads(graph: ir.Graph, shapes: Mapping[str, Sequence[int]]) -> None:
    """Write each Pad that adds a number to the channels of a picture of floats, and nothing to its
    sides, as a Concat with constants.

    Args:
        shapes: of values whose sizes are all known, by name.
    """
    names = Names(graph)
    for node in graph.nodes:
        value = node.inputs[0] if node.op_type == "Pad" and not node.domain else None
        shape = [] if value is None else shapes.get(value.name, [])
        counts = _added(node) if len(shape) == _RANK else None
        if value is None or counts is None:
            continue
        number = _constant(node, 2)
        parts = [value]
        for place, count in enumerate(counts):
            if count:
                sizes = (*shape[:_CHANNELS], count, *shape[_CHANNELS + 1 :])
                filled = np.full(sizes, 0 if number is None else number.reshape(()), np.float32)
                added = graph.add_initializer(names.free(f"{node.name}/added"), filled)
                parts.insert(place * len(parts), added)
        node.op_type, node.inputs = "Concat", tuple(parts)
        node.attributes = {"axis": _CHANNELS}
    graph.nodes = ir.leading_to(graph.outputs, graph.nodes)
    graph.drop_unread()


def _added(node: ir.Node) -> Sequence[int] | None:
    """How many channels a Pad adds before and after; None where it adds something else."""
    pads, mode = _constant(node, 1), node.attributes.get("mode", "constant")
    if pads is None or pads.size != 2 * _RANK or mode != "constant":
        return None
    if len(node.inputs) > 2 and _constant(node, 2) is None:
        return None
    counts = pads.reshape(2, _RANK)[:, _CHANNELS].tolist()
    sides = np.delete(pads.reshape(2, _RANK), _CHANNELS, axis=1)
    return counts if not sides.any() and min(counts) >= 0 and any(counts) else None


def _constant(node: ir.Node, place: int) -> npt.NDArray[Any] | None:
    """The elements of a constant input; None where it is left out or computed."""
    value = node.inputs[place] if place < len(node.inputs) else None
    value = None if value is None else ir.before_reshapes(value)
    return None if value is None or value.const_value is None else value.const_value.array


def cut_uneven_pads(graph: ir.Graph) -> None:
    """Where a ConvTranspose takes off more at one end, let it take off nothing, and a Slice cut
    both ends: the elements that stay are the same."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        nodes.append(node)
        pads = node.attributes.get("pads", ())
        if node.op_type != "ConvTranspose" or node.domain or not isinstance(pads, Sequence):
            continue
        begins, ends = pads[: len(pads) // 2], pads[len(pads) // 2 :]
        if list(begins) == list(ends):
            continue
        bounds = [
            list(begins),
            [-end if end else _TO_THE_END for end in map(int, ends)],
            list(range(2, 2 + len(begins))),
        ]
        (made,) = node.outputs
        whole = ir.Value(names.free(f"{made.name}/whole"), dtype=made.dtype)
        del node.attributes["pads"]
        node.give(0, whole)
        label = names.free(f"{node.name}/Slice")
        given = [
            graph.add_initializer(names.free(f"{label}/{what}"), np.array(numbers, np.int64))
            for what, numbers in zip(("starts", "ends", "axes"), bounds, strict=True)
        ]
        nodes.append(ir.Node("Slice", [whole, *given], [made], name=label))
    graph.nodes = nodes


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
