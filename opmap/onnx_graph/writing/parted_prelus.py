"""PRelu nodes as sums, for runtimes that take one slope for each channel alone."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_OF_CHANNELS = 3  # the rank of a slope for each channel of pictures [N, C, H, W]


def part_prelus(graph: ir.Graph) -> None:
    """Write PRelu as Relu(x) + slope * Min(x, 0), of which one is 0, so that the sum is exact; but
    not where there is a slope for each channel of a picture, [C, 1, 1]."""
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        slope = node.inputs[1] if node.op_type == "PRelu" and not node.domain else None
        if slope is None or _is_of_channels(slope):
            nodes.append(node)
            continue
        x, zero = node.inputs[0], f"{node.name}/zero"
        nothing = graph.add_initializer(names.free(zero), np.zeros((), np.float32))
        above, below, scaled = (
            ir.Value(names.free(f"{node.name}/{op}_out")) for op in ("Relu", "Min", "Mul")
        )
        for op, inputs, made in (
            ("Relu", [x], above),
            ("Min", [x, nothing], below),
            ("Mul", [slope, below], scaled),
        ):
            nodes.append(ir.Node(op, inputs, [made], name=names.free(f"{node.name}/{op}")))
        label = names.free(f"{node.name}/Add")
        nodes.append(ir.Node("Add", [above, scaled], node.outputs, name=label))
    graph.nodes = nodes


def _is_of_channels(slope: ir.Value) -> bool:
    sizes = list(slope.shape or ())
    while len(sizes) > _OF_CHANNELS and sizes[0] == 1:
        del sizes[0]
    return len(sizes) == _OF_CHANNELS and all(size == 1 for size in sizes[1:])
