"""Quantized convolutions whose weights have the zero point 0.

ONNX Runtime has kernels for these that take a half to a third of the time. A code of 8 bits less
its zero point has 9 bits, but few weights of a layer need the ninth, as a rule the one from which
the scale was computed. The sums stay the same integers by these changes:

- Weights that all fit in 8 bits are written less their zero point.
- A weight of a dense layer that does not fit becomes the sum of two, by two copies of its input
  channel. The layers that make the channel make the copy too, along residuals.
- A depthwise layer reads no other channel. Its channels with such a weight are computed beside it,
  by a small dense layer over copies of these channels, and put behind the others. The copies that
  the next layer wants of other channels are made there too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tflite_ort.opmap.graph.costs import symmetric_costs
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.channels import FREE, Uses, filled, give_channels
from tflite_ort.opmap.rules.nodes.integer_layers import Layer, cells_of, tied_to
from tflite_ort.opmap.rules.rule import NodesAround

# The kernels read 4 channels at a time, and make 16.
_READ, _MADE = 4, 16
_SAVED, _NODES, _CELL, _INPUT_CELL = symmetric_costs()


def make_symmetric(graph: ir.Graph, around: NodesAround) -> None:
    """Change the QLinearConv nodes of `graph` as above where it saves time."""
    layers = {id(node): layer for node in graph.nodes if (layer := Layer.of(node)) is not None}
    if any(layer.zero.any() for layer in layers.values()):
        change = _Change(graph, layers)
        change.run()
        graph.nodes = [each for node in graph.nodes for each in change.made.get(id(node), [node])]
        graph.drop_unread()


class _Change:
    def __init__(self, graph: ir.Graph, layers: Mapping[int, Layer]) -> None:
        self._graph, self._layers = graph, layers
        self._uses = Uses(graph)
        parted = filter(self._is_worth_parting, layers.values())
        self._parted = {id(layer): layer for layer in parted}
        # Layers that make copies for depthwise layers.
        self._copying = list[Layer]()
        self._orders: dict[int, list[int]] = {}
        # By node, what takes its place.
        self.made: dict[int, list[ir.Node]] = {}

    def run(self) -> None:
        """Change the layers, one map after the other."""
        for layer in self._parted.values():
            self._part(layer)
        for layer in self._layers.values():
            if layer.is_dense and layer.wanted and id(layer.source) not in self._orders:
                tied = tied_to(self._uses, self._layers, layer, lambda each: bool(each.wanted))
                self._widen(tied)
        for layer in [*self._layers.values(), *self._copying]:
            order = self._orders.get(id(layer.source))
            if layer.is_dense and order is not None:
                layer.read(order)
            elif not layer.wanted or id(layer) in self._parted:
                layer.center()
            layer.store(self._graph)

    # Dense layers -------------------------------------------------------------------------------

    def _widen(self, tied: Mapping[int, ir.Value]) -> None:
        """Let maps have a copy of each channel that a layer wants once more."""
        nodes = self._uses.around(tied.values())
        layers = [self._layers[id(node)] for node in nodes if id(node) in self._layers]
        if not tied or any(id(value) in self._orders for value in tied.values()):
            return
        wanted = _union(each.wanted for each in layers if each.is_dense and id(each.source) in tied)
        channels = next(each.channels for each in layers if id(each.source) in tied)
        step = _READ if all(each.is_dense for each in layers) else _MADE
        order = filled([*range(channels), *wanted], step)
        give_channels(tied, layers, order)
        self._orders.update((key, order) for key in tied)

    # Depthwise layers ---------------------------------------------------------------------------

    def _is_worth_parting(self, layer: Layer) -> bool:
        """Whether a depthwise layer with weights of 9 bits is faster in parts, and can be parted:
        a dense layer gives its input, and dense layers alone read its result."""
        if layer.is_dense or not layer.wanted or layer.channels % _MADE:
            return False
        value, producer = layer.node.outputs[0], layer.source.producer()
        before = None if producer is None else self._layers.get(id(producer))
        if before is None or not before.is_dense or id(value) in self._uses.elsewhere:
            return False
        if len(self._uses.of(layer.source)) > 1 or id(layer.source) in self._uses.elsewhere:
            return False
        after = [self._layers.get(id(node)) for node in self._uses.of(value)]
        if not all(each is not None and each.is_dense for each in after):
            return False
        cells, given = cells_of(value), cells_of(layer.source)
        saved = _SAVED * cells * layer.weights.size
        return saved > _NODES + _CELL * cells + _INPUT_CELL * given

    def _part(self, layer: Layer) -> None:
        """Compute some channels of a depthwise layer beside it, and put them behind the others."""
        value, node, producer = layer.node.outputs[0], layer.node, layer.source.producer()
        assert producer is not None
        wanted = _union(self._layers[id(each)].wanted for each in self._uses.of(value))
        beside = filled([*layer.wanted, *wanted], _MADE)
        copying, small = layer.beside(self._layers[id(producer)], beside, _MADE)
        small.store(self._graph)
        self._copying.append(copying)
        inexact = set(layer.wanted)
        order = [FREE if channel in inexact else channel for channel in range(layer.channels)]
        self._orders[id(value)] = [*order, *beside]
        layer.onto(ir.Value(f"{value.name}/kept", dtype=value.dtype))
        parts = [each.node.outputs[0] for each in (layer, small)]
        joined = ir.Node(
            "Concat", parts, [value], attributes={"axis": 1}, name=f"{node.name}/joined"
        )
        self.made[id(node)] = [copying.node, small.node, layer.node, joined]


def _union(wanted: Iterator[Mapping[int, int]]) -> list[int]:
    """Channels, each as often as one of the layers wants it once more."""
    most = dict[int, int]()
    for each in wanted:
        for channel, count in each.items():
            most[channel] = max(count, most.get(channel, 0))
    return [channel for channel, count in most.items() for _ in range(count)]
