"""Quantized convolutions as products of matrices, which ONNX Runtime computes in tiles (AMX).

Its kernels for weights of the zero point 0 have no tiles. They read all weights anew for every few
cells. So a layer of many products gets weights that are one code off, and the zero point with
which the sums are the same integers.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.graph.costs import tile_costs
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.nodes.integer_layers import Layer, cells_of
from tflite_ort.opmap.rules.rule import NodesAround

_COSTS = tile_costs()


def multiply_in_tiles(graph: ir.Graph, around: NodesAround) -> None:
    """Change the QLinearConv nodes of `graph` as above where it saves time."""
    layers = filter(None, map(Layer.of, graph.nodes))
    slow = [each for each in layers if not each.zero.any() and _saves_time(each)]
    for layer in slow:
        layer.leave_zero()
        layer.store(graph)
    if slow:
        graph.drop_unread()


def _saves_time(layer: Layer) -> bool:
    """Whether tiles are faster; they have no depthwise layers."""
    cells, weights = cells_of(layer.node.outputs[0]), layer.weights
    count, _, *window = weights.shape
    steps = np.asarray(layer.node.attributes.get("strides", 1))
    is_collected = max(window) > 1 or steps.max() > 1
    collected = _COSTS.collected * weights[0].size if is_collected else 0
    costs = _COSTS.weight * weights.size + cells * (collected + _COSTS.result * count)
    return layer.is_dense and bool(cells * _COSTS.saved * weights.size > costs)
