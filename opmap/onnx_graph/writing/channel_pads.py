"""Pads of channels as Concat, for runtimes that pad pictures along their sides alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_RANK, _CHANNELS = 4, 1


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
