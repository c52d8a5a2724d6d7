"""Float convolutions whose channels stay in the blocks in which ONNX Runtime computes them.

On x86 its convolutions hold 8 or 16 channels of a cell side by side. Between two convolutions the
blocks stay as they are, if all nodes between them can take blocks. One node that cannot makes
ONNX Runtime reorder the map, then the map that is added to it, and so on along all residuals.

These changes keep the blocks. By the second one floats are added in another order:

- Maps of fewer channels than a block has get channels of zeros, unless wide windows read them. A
  convolution over fewer channels reads them unblocked, so they are moved for it. Maps of an uneven
  number of channels get zeros up to a multiple of four, which ONNX Runtime needs.
- A convolution to one channel, which would be computed as many as a block has, becomes a depthwise
  convolution and the sum of its channels.
- A convolution whose channels are sliced becomes one convolution a slice, with the activation
  behind it: ONNX Runtime slices no blocks.
- A factor for each channel, such as squeeze-and-excitation has, is repeated for all cells by a
  Resize, which takes blocks: a product of two maps does, one of a map and of factors does not.
- A depthwise convolution by ones puts a map into blocks where it is added to one in blocks. With
  such a convolution before it, a Clip is a part of it, and stays in blocks too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph.costs import widening_costs
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.channels import (
    FREE,
    Uses,
    filled,
    give_channels,
    in_channels,
    maps_by_channel,
    tied_maps,
)
from tflite_ort.opmap.rules.nodes.block_nodes import (
    BY_ELEMENT,
    is_convolution,
    is_dense,
    is_depthwise,
    replace_constant,
    weights_of,
)
from tflite_ort.opmap.rules.nodes.block_parts import part_all
from tflite_ort.opmap.rules.rule import NodesAround

Array = npt.NDArray[Any]

_POOLS = frozenset({"MaxPool", "AveragePool", "GlobalAveragePool"})
# Nodes of which a channel of the result depends on this channel alone, and is finite for zeros.
_BY_CHANNEL = _POOLS | {"Add", "Clip", "Max", "Min", "Mul", "PRelu", "Relu", "Resize", "Sigmoid"}
_BY_CHANNEL |= {"Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Tanh"}
# Nodes that stay in blocks as a part of the convolution before them.
_PARTS = frozenset({"Clip", "HardSigmoid", "HardSwish", "LeakyRelu"})
# Nodes that ONNX Runtime runs in blocks where their inputs are in blocks.
_IN_BLOCKS = _POOLS | {"Add", "Gelu", "Mul", "Relu", "Sigmoid", "Tanh"}
# Nodes that put their results into blocks, and those that would be better off with blocks.
_BLOCKED = _IN_BLOCKS | _PARTS | {"Conv", "Resize"}
# ONNX Runtime reads maps in blocks whose channels are a multiple of this. Dense layers read maps of
# less than a block unblocked all the same.
_ALIGNED = 4


def keep_blocks(graph: ir.Graph, around: NodesAround) -> None:
    """Change `graph` as above."""
    block = around.target.block
    if sum(map(is_convolution, graph.nodes)) > 1:
        part_all(graph, Uses(graph), block)
        _widen_all(graph, Uses(graph), block)
        graph.nodes = [each for node in graph.nodes for each in _divided(graph, node, block)]
        _anchor_all(graph, Uses(graph))
        graph.drop_unread()


# Channels of zeros ------------------------------------------------------------------------------


class _FloatLayer:
    """A convolution of floats, dense or depthwise."""

    def __init__(self, node: ir.Node) -> None:
        self.node, self.is_dense = node, is_dense(node)
        self.weights, self._bias = weights_of(node), node.constant(2)

    @classmethod
    def of(cls, node: ir.Node) -> _FloatLayer | None:
        """That of a node; None of other nodes."""
        known = is_convolution(node) and (is_dense(node) or is_depthwise(node))
        return cls(node) if known else None

    @property
    def source(self) -> ir.Value:
        """The map that it reads."""
        value = self.node.inputs[0]
        assert value is not None
        return value

    @property
    def channels(self) -> int:
        """How many channels it reads."""
        return int(self.weights.shape[1] if self.is_dense else len(self.weights))

    def make(self, order: Sequence[int]) -> None:
        """Make other channels."""
        self.weights = in_channels(self.weights, 0, order)
        if self._bias is not None:
            self._bias = in_channels(self._bias, 0, order)
        if not self.is_dense:
            self.node.attributes["group"] = len(order)

    def read(self, order: Sequence[int]) -> None:
        """Read other channels."""
        self.weights = in_channels(self.weights, 1, order)

    def store(self, graph: ir.Graph) -> None:
        """Give the node its new constants."""
        for place, array in ((1, self.weights), (2, self._bias)):
            if array is not None and array is not self.node.constant(place):
                replace_constant(graph, self.node, place, array)


def _widen_all(graph: ir.Graph, uses: Uses, block: int) -> None:
    seen: set[int] = set()
    for node in list(graph.nodes):
        layer = _FloatLayer.of(node)
        if layer is None or not layer.is_dense or id(node.outputs[0]) in seen:
            continue
        channels = len(layer.weights)
        # A map of one channel may be broadcast to others.
        if channels > 1 and (channels < block or channels % _ALIGNED):
            by_channel = partial(_by_channel, channels)
            tied = tied_maps(uses, node.outputs[0], channels, _FloatLayer.of, by_channel)
            seen.update(tied)
            if channels < block and _saved(tied.values(), channels, uses, block) > 0:
                _widen(graph, tied, filled(range(channels), block))
            elif channels % _ALIGNED and _is_read(tied.values(), uses):
                _widen(graph, tied, filled(range(channels), _ALIGNED))


def _by_channel(channels: int, node: ir.Node) -> Sequence[ir.Value] | None:
    """The maps of a node that can have other channels than so many."""
    return maps_by_channel(
        node, _BY_CHANNEL, lambda place, array: _change(node, place, array, channels) is not None
    )


def _change(
    node: ir.Node, place: int, array: Array, channels: int
) -> Callable[[Sequence[int]], Array] | None:
    """What a constant operand becomes for an order of channels; None where that is not known."""
    if node.op_type == "Resize":
        is_first = place == 3 and len(array) == 4 and array[1] == channels
        return (lambda order: np.array([array[0], len(order), *array[2:]])) if is_first else None
    if array.size == 1:
        return lambda order: array
    if array.ndim >= 3 and array.shape[-3] == channels:
        return lambda order: in_channels(array, array.ndim - 3, order)
    return None


def _is_read(maps: Iterable[ir.Value], uses: Uses) -> bool:
    """Whether a convolution reads one of `maps`."""
    return any(
        is_convolution(node) and node.inputs[0] is value
        for value in maps
        for node in uses.of(value)
    )


def _saved(maps: Iterable[ir.Value], channels: int, uses: Uses, block: int) -> float:
    """What channels of zeros save, in microseconds: dense layers that read `maps` have more
    products, but the channels are not moved for them."""
    costs, saved = widening_costs(), 0.0
    for value in maps:
        readers = [node for node in uses.of(value) if is_convolution(node) and is_dense(node)]
        readers = [node for node in readers if node.inputs[0] is value]
        by_cell = costs.moved * channels if readers else 0.0
        for node in readers:
            outputs, _, *window = weights_of(node).shape
            strides: Any = node.attributes.get("strides", (1, 1))
            # That of a window to one channel becomes depthwise, see `_divided`.
            more = 1 - channels if outputs == 1 < prod(window) else block - channels
            results = -(-outputs // block) / prod(strides)
            products = costs.product * prod(window) * more
            by_cell += results * (costs.read * channels - products)
        saved += by_cell * _cells(value) + (costs.node if readers else 0.0)
    return saved


def _cells(value: ir.Value) -> int:
    """The cells of a map; 1 where they are not known."""
    sizes = value.shape[2:] if value.shape is not None else ()
    return prod([size if isinstance(size, int) else 1 for size in sizes])


def _widen(graph: ir.Graph, tied: dict[int, ir.Value], order: Sequence[int]) -> None:
    channels = sum(place != FREE for place in order)
    layers = {id(node): layer for node in graph.nodes if (layer := _FloatLayer.of(node))}
    give_channels(tied, layers.values(), order)
    for node in graph.nodes:
        layer = layers.get(id(node))
        if layer is not None:
            if layer.is_dense and id(layer.source) in tied:
                layer.read(order)
            layer.store(graph)
        elif id(node.outputs[0]) in tied:
            _widen_operands(graph, node, channels, order)


def _widen_operands(graph: ir.Graph, node: ir.Node, channels: int, order: Sequence[int]) -> None:
    for place in range(len(node.inputs)):
        array = node.constant(place)
        change = None if array is None else _change(node, place, array, channels)
        if array is not None and array.size > 1 and change is not None:
            replace_constant(graph, node, place, change(order))


# One channel ------------------------------------------------------------------------------------


def _divided(graph: ir.Graph, node: ir.Node, block: int) -> Sequence[ir.Node]:
    """A convolution of a window over blocks to one channel as two nodes; any other one as it is."""
    if not (is_convolution(node) and is_dense(node)):
        return [node]
    weights = weights_of(node)
    outputs, channels, *window = weights.shape
    if outputs > 1 or window == [1, 1] or channels < block:
        return [node]
    source, _, *bias = node.inputs
    by_channel = graph.add_initializer(
        f"{node.name}/by_channel", weights.reshape(channels, 1, *window)
    )
    ones = graph.add_initializer(f"{node.name}/ones", np.ones((1, channels, 1, 1), np.float32))
    parts = ir.Value(f"{node.outputs[0].name}/by_channel", dtype=ir.DataType.FLOAT)
    attributes = {**node.attributes, "group": channels}
    return [
        ir.Node(
            "Conv",
            [source, by_channel],
            [parts],
            attributes=attributes,
            name=f"{node.name}/by_channel",
        ),
        ir.Node("Conv", [parts, ones, *bias], node.outputs, name=node.name),
    ]


# Anchors ----------------------------------------------------------------------------------------


def _anchor_all(graph: ir.Graph, uses: Uses) -> None:
    """Put maps into blocks where they meet others that are, and Clips into convolutions."""
    blocked: dict[int, int] = {}  # by map in blocks, its channels
    cells: set[int] = set()  # maps in blocks of a single cell
    nodes = list[ir.Node]()
    for node in graph.nodes:
        found = [blocked.get(id(value), 0) for value in node.inputs]
        channels = _channels(node) or max(found, default=0)
        loose = _loose(node, found, uses) if channels else None
        if loose is not None and node.op_type == "Mul":
            repeated = _repeated(graph, node, cells)
            loose = None if repeated is None else loose
            nodes += repeated or []
        if _is_cell(node, cells):
            cells.add(id(node.outputs[0]))
        if loose is not None and (not loose or _meets_blocks(node.outputs[0], uses)):
            nodes += [_anchor(graph, node, place, channels) for place in loose]
            blocked[id(node.outputs[0])] = channels
        nodes.append(node)
    graph.nodes = nodes


def _channels(node: ir.Node) -> int:
    """How many channels a convolution puts into blocks; 0 for other nodes."""
    in_blocks = is_convolution(node) and (is_dense(node) or is_depthwise(node))
    return len(weights_of(node)) if in_blocks else 0


def _loose(node: ir.Node, found: Sequence[int], uses: Uses) -> Sequence[int] | None:
    """The inputs of `node` that need an anchor to have its result in blocks; None where that
    cannot be.

    Args:
        found: the channels of each input that is in blocks, 0 for others.
    """
    if node.op_type in ("Conv", "Resize") and not node.domain:
        return []
    if node.op_type in _PARTS:
        return [] if _is_part_of_convolution(node, uses) else [0]
    if node.op_type not in _IN_BLOCKS or node.domain:
        return None
    loose = [i for i, each in enumerate(node.inputs) if each is not None and not found[i]]
    if node.op_type == "Mul" and loose:
        return None
    alike = all(_is_like(value, node.outputs[0]) for value in node.inputs)
    return loose if alike or not loose else None


def _is_like(value: ir.Value | None, result: ir.Value) -> bool:
    """Whether `value` is computed and known to have the shape of `result`: a map that is broadcast
    has other channels, or other cells."""
    if value is None or value.const_value is not None:
        return False
    return value.shape is not None and value.shape == result.shape


def _is_cell(node: ir.Node, cells: set[int]) -> bool:
    """Whether the result of `node` has a single cell, given the maps that are known to."""
    if node.op_type == "GlobalAveragePool":
        return True
    maps = [value for value in node.inputs if value is not None and value.const_value is None]
    keeps = node.op_type in BY_ELEMENT or (
        is_convolution(node) and weights_of(node).shape[2:] == (1, 1)
    )
    return bool(maps) and keeps and all(id(value) in cells for value in maps)


def _repeated(graph: ir.Graph, node: ir.Node, cells: set[int]) -> Sequence[ir.Node] | None:
    """The Resize of the factors of a product, which then reads its result; none where both are
    maps, and None where the size of the map is not known."""
    single = [value is not None and id(value) in cells for value in node.inputs]
    if all(single) or not any(single):
        return []
    shape = node.outputs[0].shape
    if shape is None or len(shape) != 4 or not all(isinstance(size, int) for size in shape):
        return None
    place = single.index(True)
    made = ir.Value(f"{node.outputs[0].name}/factors", dtype=ir.DataType.FLOAT)
    name = f"{node.name}/factors"
    sizes = graph.add_initializer(f"{name}/sizes", np.array(shape, np.int64))
    points = {"mode": "nearest", "nearest_mode": "floor"}
    resize = ir.Node(
        "Resize",
        [node.inputs[place], None, None, sizes],
        [made],
        attributes={**points, "coordinate_transformation_mode": "asymmetric"},
        name=name,
    )
    node.inputs = (*node.inputs[:place], made, *node.inputs[place + 1 :])
    return [resize]


def _is_part_of_convolution(node: ir.Node, uses: Uses) -> bool:
    """Whether ONNX Runtime makes `node` a part of the convolution before it."""
    source = node.inputs[0]
    producer = None if source is None else source.producer()
    if source is None or producer is None or producer.op_type != "Conv":
        return False
    return len(uses.of(source)) == 1 and id(source) not in uses.elsewhere


def _meets_blocks(value: ir.Value, uses: Uses) -> bool:
    """Whether a node reads `value` that takes it in blocks."""
    return any(node.op_type in _BLOCKED for node in uses.of(value))


def _anchor(graph: ir.Graph, node: ir.Node, place: int, channels: int) -> ir.Node:
    """A depthwise convolution by ones of an input of `node`, which reads its result instead."""
    source = node.inputs[place]
    ones = graph.initializers.get(f"ones/{channels}")
    if ones is None:
        ones = graph.add_initializer(f"ones/{channels}", np.ones((channels, 1, 1, 1), np.float32))
    made = ir.Value(f"{node.outputs[0].name}/in_blocks/{place}", dtype=ir.DataType.FLOAT)
    node.inputs = (*node.inputs[:place], made, *node.inputs[place + 1 :])
    return ir.Node(
        "Conv",
        [source, ones],
        [made],
        attributes={"group": channels},
        name=f"{node.name}/in_blocks/{place}",
    )
