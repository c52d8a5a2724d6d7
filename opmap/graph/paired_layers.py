"""Quantised convolutions by signed weights on an x86 processor without VNNI.

ONNX Runtime's kernels for uint8 by int8 take half to three quarters of the time of those for uint8
by uint8. Their sums are the same integers in two cases:

- Depthwise kernels add in 32 bits. Their weights need to have the zero point 0.
- Dense kernels add the products of two neighbouring channels in 16 bits. A layer gets an order of
  its input channels in which no sum of two exceeds these, see `paired_weights`. The layers that
  make and read these channels get the same order, along residuals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tflite_ort.opmap.graph import ir
from tflite_ort.opmap.graph.block_nodes import Uses
from tflite_ort.opmap.graph.integer_layers import Layer, cells_of, filled, nodes_of, tied_maps
from tflite_ort.opmap.graph.paired_weights import Rows, are_exact, excess, paired

# The kernels want the channels of a depthwise layer in groups of 16, others in groups of 8.
_DEPTHWISE, _DENSE = 16, 8
# Nanoseconds on a Zen 3: what signed weights save of a result and of a product, what these take
# with them, and what a product of a depthwise layer and an element of another map take.
_SAVED_RESULT, _SAVED_PRODUCT = 0.5, 0.006
_RESULT, _PRODUCT, _DEPTHWISE_PRODUCT, _ELEMENT = 0.41, 0.016, 0.17, 0.3
# An order is looked for where it saves so many nanoseconds of a run for each weight.
_SEARCH = 0.01
# With more excesses in the mean of all pairs than this, no order has few.
_MANY = 3


def make_paired(graph: ir.Graph, multiplies_in_pairs: Callable[[], bool]) -> None:
    """Give QLinearConv nodes of `graph` signed weights where that is exact and saves time.

    Args:
        multiplies_in_pairs: whether this processor does as above; asked if there are such layers.
    """
    found = {id(node): Layer.of(node, np.uint8) for node in graph.nodes}
    layers = {key: layer for key, layer in found.items() if layer is not None}
    if not (layers and multiplies_in_pairs()):
        return
    uses, seen = Uses(graph), set[int]()
    for layer in layers.values():
        if layer.is_dense and id(layer.source) not in seen:
            tied = tied_maps(uses, layers, layer)
            seen.update(tied)
            nodes = [layers[id(node)] for node in nodes_of(uses, tied) if id(node) in layers]
            _order(tied, nodes)
    for layer in layers.values():
        if layer.signed or layer.wanted:
            pass
        elif not layer.is_dense:
            if layer.channels % _DEPTHWISE == 0:
                layer.center()
        elif _is_even(layer) and are_exact(_rows([layer])):
            layer.center()
        layer.store(graph)


def _order(tied: Mapping[int, ir.Value], layers: Sequence[Layer]) -> None:
    """Let maps have an order of channels in which all layers that read them are exact, if there is
    one that saves time."""
    readers = [each for each in layers if each.is_dense and id(each.source) in tied]
    if not tied or all(are_exact(_rows([each])) and _is_even(each) for each in readers):
        return
    rows, channels = _rows(readers), readers[0].channels
    step = _DENSE if all(each.is_dense for each in layers) else _DEPTHWISE
    most = _most_places(tied, layers, readers, rows.size)
    if channels * (1.5 if excess(rows) > _MANY else 1) > most:
        return
    found = paired(rows)
    order = filled(found.order, step)
    if len(order) > most:
        return
    more = len(order) - len(found.order)
    weights = np.pad(found.weights, [(0, more), (0, 0)]).reshape(len(order), -1)
    start = 0
    for reader in readers:
        count, _, *window = reader.weights.shape
        end = start + count * int(np.prod(window))
        own = weights[:, start:end].reshape(len(order), count, *window)
        reader.take(own.swapaxes(0, 1))
        start = end
    for layer in layers:
        if id(layer.node.outputs[0]) in tied:
            layer.make(order)
    for value in tied.values():
        if value.shape is not None:
            value.shape = (value.shape[0], len(order), *value.shape[2:])


def _most_places(
    tied: Mapping[int, ir.Value], layers: Sequence[Layer], readers: Sequence[Layer], weights: int
) -> float:
    """With how many channels of the maps signed weights still save time."""
    saved = more = 0.0
    channels = readers[0].channels
    for reader in readers:
        cells, products = cells_of(reader.node.outputs[0]), reader.weights[:, 0].size
        saved += cells * (
            _SAVED_RESULT * len(reader.weights) + _SAVED_PRODUCT * reader.weights.size
        )
        more += cells * _PRODUCT * products
    if saved < _SEARCH * weights:
        return 0
    for layer in layers:
        value = layer.node.outputs[0]
        if id(value) in tied:
            each = _PRODUCT if layer.is_dense else _DEPTHWISE_PRODUCT
            more += cells_of(value) * (_RESULT + each * layer.weights[0].size)
    made = {id(layer.node.outputs[0]) for layer in layers}
    more += sum(_ELEMENT * cells_of(value) for key, value in tied.items() if key not in made)
    return channels + saved / more


def _rows(layers: Sequence[Layer]) -> Rows:
    """The weights of dense layers that read one map less their zero points, [channels, ...]."""
    parts = [each.rest().swapaxes(0, 1).reshape(each.channels, -1) for each in layers]
    return np.concatenate(parts, axis=1)


def _is_even(layer: Layer) -> bool:
    """Whether no pair of neighbours is of two cells."""
    return layer.channels % 2 == 0 or layer.weights[0, 0].size == 1
