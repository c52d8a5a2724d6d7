"""Orders of channels that cost nothing: the dense layers that read the channels are exact by signed
weights in them, see `paired_weights`, and no channel is there twice.

The channels of the largest weights are paired with those of the smallest. That makes layers exact
of which half the weights are zeros, such as those that read half of the channels of a map. A map
that a Concat joins has an order for each of its parts, which the layers that make the part get.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.channels import Part, Uses, tied
from tflite_ort.opmap.rules.nodes.integer_layers import BY_CHANNEL, Layer, by_channel
from tflite_ort.opmap.rules.nodes.paired_weights import Rows, are_exact

# The outputs of a layer that are asked first.
_SOME = slice(0, 8)
# The bits that are 0 in the zero points of int8 weights, which are 128 as uint8, and in 0.
_BETWEEN = 0x7F


def may_be_exact(node: ir.Node) -> bool:
    """Whether some outputs of a dense layer by unsigned weights are exact by signed ones, in an
    order of its channels, or as they stand if they cannot have another one.

    Weights with other zero points have one scale for all, and need further channels.
    """
    weights, zero = node.constant(3), node.constant(5)
    if weights is None or zero is None or weights.ndim != 4 or weights.dtype != np.uint8:
        return False
    if node.attributes.get("group", 1) != 1 or zero.size not in (1, len(weights)):
        return False
    if not weights.size or (zero & _BETWEEN).any():
        return False
    some = weights[_SOME].astype(np.int16) - zero.astype(np.int16).reshape(-1, 1, 1, 1)[_SOME]
    rows = some.swapaxes(0, 1).reshape(weights.shape[1], -1)
    return are_exact(rows[_extremes_first(rows)] if _is_movable(node.inputs[0]) else rows)


def _is_movable(value: ir.Value | None) -> bool:
    """Whether the channels of a map may have another order."""
    node = None if value is None else value.producer()
    if node is None or node.domain:
        return False
    return node.op_type in BY_CHANNEL or node.op_type in ("QLinearConv", "Concat")


def order_freely(
    graph: ir.Graph, layers: Mapping[int, Layer], nodes: Sequence[ir.Node]
) -> Sequence[Layer]:
    """Reorder channels where that makes dense layers exact; returns those that are.

    Args:
        layers: by node.
        nodes: those of the layers that may be exact.
    """
    found = [layers[id(node)] for node in nodes if id(node) in layers]
    if not found:
        return []
    orders = _Orders(graph, layers)
    for layer in found:
        for part in orders.parts_of(layer.source):
            orders.look_for(part)
    return [each for each in found if _is_exact(each)]


class _Orders:
    def __init__(self, graph: ir.Graph, layers: Mapping[int, Layer]) -> None:
        self._uses, self._layers = Uses(graph), layers
        self._seen = set[tuple[int, int]]()
        # Of maps of several parts: by map the first channels of these.
        self._starts: dict[int, Sequence[int]] = {}
        for node in graph.nodes:
            self._cut(node)

    def _cut(self, node: ir.Node) -> None:
        """Note the parts of what a node makes of other maps."""
        if _joins_channels(node):
            widths = [None if each is None else _width(each) for each in node.inputs]
            if None in widths:
                return
            starts, first = list[int](), 0
            for each, width in zip(node.inputs, widths, strict=True):
                starts += [first + start for start in self._starts.get(id(each), (0,))]
                first += width or 0
        else:
            cut = [self._starts[id(each)] for each in node.inputs if id(each) in self._starts]
            if not cut or self._beside(node, Part(node.outputs[0], 0, 0)) is None:
                return
            layer = self._layers.get(id(node))
            if layer is not None and layer.is_dense:
                return
            starts = sorted({start for each in cut for start in each})
        self._starts[id(node.outputs[0])] = starts

    def parts_of(self, value: ir.Value) -> Iterator[Part]:
        """The parts of a map that have an order each; none where its width is not known."""
        width = _width(value)
        if width is not None:
            starts = self._starts.get(id(value), (0,))
            for first, end in zip(starts, [*starts[1:], width], strict=True):
                yield Part(value, first, end - first)

    def look_for(self, part: Part) -> None:
        """Give a part of a map, and what has to be in the same order, one in which some outputs of
        the layers that read it are exact."""
        if part.key in self._seen:
            return
        parts = tied(self._uses, part, self._beside)
        self._seen.add(part.key)
        if not parts or _overlap(parts.values()) or part.count % 2 or part.first % 2:
            return
        self._seen.update(parts)
        readers = list(self._readers(parts))
        rows = np.concatenate([_rows(*each, _SOME) for each in readers], 1)
        order = _extremes_first(rows)
        if are_exact(rows[order]):
            self._put(parts, readers, order)

    def _beside(self, node: ir.Node, part: Part) -> Sequence[Part] | None:
        """The parts of the maps of `node` that are in the order of one of them; None where this has
        to stay as it is."""
        layer = self._layers.get(id(node))
        if layer is not None:
            return [] if layer.is_dense else _at(part, [layer.source, *node.outputs])
        if _joins_channels(node):
            return _across(node, part)
        maps = by_channel(node)
        return None if maps is None else _at(part, maps)

    def _readers(self, parts: Mapping[tuple[int, int], Part]) -> Iterator[tuple[Layer, Part]]:
        """The dense layers that read one of the parts, and which one."""
        for part in parts.values():
            for node in self._uses.of(part.value):
                layer = self._layers.get(id(node))
                if layer is not None and layer.is_dense:
                    yield layer, part

    def _put(
        self,
        parts: Mapping[tuple[int, int], Part],
        readers: Sequence[tuple[Layer, Part]],
        order: npt.NDArray[np.intp],
    ) -> None:
        for layer, part in readers:
            layer.read_in_order(_order_of_all(layer.channels, part, order))
        for part in parts.values():
            maker = self._layers.get(id(part.value.producer()))
            if maker is not None:
                maker.make(_order_of_all(len(maker.weights), part, order).tolist())


def _overlap(parts: Iterable[Part]) -> bool:
    """Whether two different ones of equal parts have channels in common."""
    found = sorted(parts, key=lambda part: part.key)
    return any(a.value is b.value and b.first - a.first < b.count for a, b in pairwise(found))


def _order_of_all(count: int, part: Part, order: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """The order of all channels, of which those of a part change places."""
    whole = np.arange(count)
    whole[part.places] = part.first + order
    return whole


def _width(value: ir.Value) -> int | None:
    """The channels of a map [N, C, H, W]; None where they are not known."""
    width = None if value.shape is None or len(value.shape) != 4 else value.shape[1]
    return width if isinstance(width, int) else None


def _joins_channels(node: ir.Node) -> bool:
    return (node.op_type, node.domain, node.attributes.get("axis")) == ("Concat", "", 1)


def _at(part: Part, values: Sequence[ir.Value]) -> Sequence[Part] | None:
    """The same part of maps that are as wide."""
    width = _width(part.value)
    if width is None or any(_width(each) != width for each in values):
        return None
    return [Part(each, part.first, part.count) for each in values]


def _across(node: ir.Node, part: Part) -> Sequence[Part] | None:
    """The part of what a Concat reads for one of what it makes, and the other way round."""
    (made,), found, first = node.outputs, list[Part](), 0
    for each in node.inputs:
        width = None if each is None else _width(each)
        if each is None or width is None or each.const_value is not None:
            return None
        if each is part.value:
            found.append(Part(made, first + part.first, part.count))
        elif made is part.value and first <= part.first < first + width:
            if part.first + part.count > first + width:
                return None
            found.append(Part(each, part.first - first, part.count))
        first += width
    return found


def _rows(layer: Layer, part: Part, outputs: slice) -> Rows:
    """Weights less their zero points that meet the channels of a part, [channels, ...]."""
    weights = layer.rest(outputs)[:, part.places]
    return weights.swapaxes(0, 1).reshape(part.count, -1)


def _extremes_first(rows: Rows) -> npt.NDArray[np.intp]:
    """Each channel of small weights beside one of large ones."""
    sizes = np.argsort(np.abs(rows).sum(axis=1), kind="stable")
    order, half = np.empty(len(rows), np.intp), -(-len(rows) // 2)
    order[::2], order[1::2] = sizes[:half], sizes[half:][::-1]
    return order


def _is_exact(layer: Layer) -> bool:
    """Whether a dense layer is exact in the order in which its channels stand."""
    if layer.channels % 2 and layer.weights[0, 0].size > 1:
        return False  # a pair of neighbours is of two cells
    whole, end = Part(layer.source, 0, layer.channels), 0
    while end < len(layer.weights):  # most layers that are not exact show it soon
        outputs = slice(end, max(_SOME.stop, 4 * end))
        if not are_exact(_rows(layer, whole, outputs)):
            return False
        end = outputs.stop
    return True
