"""ConvTranspose nodes that take off as much at both ends, for runtimes that do no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_TO_THE_END = np.iinfo(np.int64).max


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
