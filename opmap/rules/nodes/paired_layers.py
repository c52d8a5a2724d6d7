"""Quantized convolutions by signed weights on an x86 processor without VNNI.

ONNX Runtime's kernels for uint8 by int8 take half to three quarters of the time of those for uint8
by uint8. Their sums are the same integers in two cases:

- Depthwise kernels add in 32 bits. Their weights need to have the zero point 0.
- Dense kernels add the products of two neighbouring channels in 16 bits. A layer gets an order of
  its input channels in which no sum of two exceeds these, see `paired_weights`. The layers that
  make and read these channels get the same order, along residuals. Orders that cost nothing are
  tried first, see `free_orders`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import numpy as np

from tflite_ort.opmap.graph.costs import paired_costs
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.channels import Uses, filled, give_channels
from tflite_ort.opmap.rules.nodes.free_orders import may_be_exact, order_freely
from tflite_ort.opmap.rules.nodes.integer_layers import Layer, cells_of, tied_to
from tflite_ort.opmap.rules.nodes.paired_weights import Rows, are_exact, excess, paired
from tflite_ort.opmap.rules.rule import NodesAround

# The kernels want the channels of a depthwise layer in groups of 16, others in groups of 8.
_DEPTHWISE, _DENSE = 16, 8
_COSTS = paired_costs()
# With more excesses in the mean of all pairs than this, no order has few.
_MANY = 3


def make_paired(graph: ir.Graph, around: NodesAround) -> None:
    """Give QLinearConv nodes of `graph` signed weights where that is exact and saves time."""
    multiplies_in_pairs, runs = around.multiplies_in_pairs, around.runs
    nodes = [node for node in graph.nodes if node.op_type == "QLinearConv"]
    even = [node for node in nodes if may_be_exact(node)]
    if not (runs or even):
        nodes = [node for node in nodes if node.attributes.get("group", 1) != 1]
    found = {id(node): Layer.of(node, np.uint8) for node in nodes}
    layers = {key: layer for key, layer in found.items() if layer is not None}
    if not (layers and multiplies_in_pairs()):
        return
    for layer in order_freely(graph, layers, even):
        layer.center()
    if runs:
        _look_for_orders(graph, layers, runs)
    for layer in layers.values():
        if not (layer.is_dense or layer.wanted or layer.channels % _DEPTHWISE):
            layer.center()
        layer.store(graph)
    graph.drop_unread()


def _look_for_orders(graph: ir.Graph, layers: Mapping[int, Layer], runs: int) -> None:
    """Give dense layers signed weights in orders that take time to find, or with more channels."""
    uses, seen = Uses(graph), set[int]()
    for layer in layers.values():
        if layer.is_dense and id(layer.source) not in seen:
            tied = tied_to(uses, layers, layer)
            seen.update(tied or [id(layer.source)])
            near = uses.around(tied.values() or [layer.source])
            tied_layers = [layers[id(node)] for node in near if id(node) in layers]
            _sign(tied, tied_layers, layer.source, runs)


def _sign(
    tied: Mapping[int, ir.Value], layers: Sequence[Layer], source: ir.Value, runs: int
) -> None:
    """Give signed weights to the dense layers that read a map, or one of the maps that are tied to
    it; by another order of channels where this is possible and saves time.

    Args:
        layers: that make or read one of the maps.
    """
    maps = tied or {id(source): source}
    readers = [each for each in layers if each.is_dense and id(each.source) in maps]
    parts = [_rows(each) for each in readers]
    exact = [_is_even(each) and are_exact(rows) for each, rows in zip(readers, parts, strict=True)]
    most = 0.0 if all(exact) or not tied else _most_places(tied, layers, readers, runs)
    if not (most and _order(tied, layers, readers, np.concatenate(parts, 1), most)):
        for reader in compress(readers, exact):
            reader.center()


def _order(
    tied: Mapping[int, ir.Value],
    layers: Sequence[Layer],
    readers: Sequence[Layer],
    rows: Rows,
    most: float,
) -> bool:
    """Let maps have an order of channels in which all layers that read them are exact; returns
    whether there is one that saves time.

    Args:
        rows: the weights of the readers, [channels, ...].
        most: with how many channels signed weights still save time.
    """
    if len(rows) * (1.5 if excess(rows) > _MANY else 1) > most:
        return False
    found, is_dense = paired(rows), all(each.is_dense for each in layers)
    order = filled(found.order, _DENSE if is_dense else _DEPTHWISE)
    if len(order) > most:
        return False
    weights = np.pad(found.weights, [(0, len(order) - len(found.order)), (0, 0)])
    sizes = [each.weights[:, 0].size for each in readers]
    for reader, own in zip(readers, np.split(weights, np.cumsum(sizes)[:-1], axis=1), strict=True):
        count, _, *window = reader.weights.shape
        reader.take(own.reshape(len(order), count, *window).swapaxes(0, 1))
    give_channels(tied, layers, order)
    return True


def _most_places(
    tied: Mapping[int, ir.Value], layers: Sequence[Layer], readers: Sequence[Layer], runs: int
) -> float:
    """With how many channels of the maps signed weights still save time; 0 where an order saves too
    little in so many runs."""
    saved = more = 0.0
    channels = readers[0].channels
    for reader in readers:
        cells, products = cells_of(reader.node.outputs[0]), reader.weights[:, 0].size
        results, weights = len(reader.weights), reader.weights.size
        saved += cells * (_COSTS.saved_result * results + _COSTS.saved_product * weights)
        more += cells * _COSTS.product * products
    weights = sum(each.weights.size for each in readers)
    if saved * runs < _COSTS.search + _COSTS.search_weight * weights:
        return 0
    for layer in layers:
        value = layer.node.outputs[0]
        if id(value) in tied:
            each = _COSTS.product if layer.is_dense else _COSTS.depthwise_product
            more += cells_of(value) * (_COSTS.result + each * layer.weights[0].size)
    made = {id(layer.node.outputs[0]) for layer in layers}
    more += sum(_COSTS.element * cells_of(value) for key, value in tied.items() if key not in made)
    return channels + saved / more


def _rows(layer: Layer) -> Rows:
    """The weights of a dense layer less their zero points, [channels, ...]."""
    return layer.rest().swapaxes(0, 1).reshape(layer.channels, -1)


def _is_even(layer: Layer) -> bool:
    """Whether no pair of neighbours is of two cells."""
    return layer.channels % 2 == 0 or layer.weights[0, 0].size == 1
