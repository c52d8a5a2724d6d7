"""The negative of what a layer makes, as an exact sigmoid begins: a layer of negative weights.

Products and sums of the opposite numbers are the opposite ones, so no result changes.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

_LAYERS = frozenset({"Conv", "Gemm"})


def negate_layers(graph: ir.Graph, around: NodesAround) -> None:
    """Change each Neg of a layer of constants that nothing else reads."""
    reads = graph.read_counts()
    own = {id(node) for node in graph.nodes}
    gone = set[int]()
    for node in graph.nodes:
        layer = _negated(node, reads)
        if layer is None or id(layer) not in own:
            continue
        negative = [
            value if array is None else around.constants.add(-array, "negative")
            for value, array in zip(layer.inputs[1:], layer.constants(), strict=True)
        ]
        layer.inputs = (layer.inputs[0], *negative)
        layer.give(0, node.outputs[0])
        gone.add(id(node))
    if gone:
        graph.nodes = [node for node in graph.nodes if id(node) not in gone]


def _negated(node: ir.Node, reads: Counter[int]) -> ir.Node | None:
    """The layer of which `node` makes the negative."""
    if node.op_type != "Neg" or node.domain:
        return None
    value = node.inputs[0]
    layer = None if value is None else value.producer()
    if layer is None or value is None or reads[id(value)] != 1:
        return None
    if layer.op_type not in _LAYERS or layer.domain:
        return None
    constants = layer.constants()
    given = [value is not None for value in layer.inputs[1:]]
    known = [array is not None and array.dtype == np.float32 for array in constants]
    return layer if known == given else None
