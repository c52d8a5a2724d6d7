"""Maps that get more channels, or their channels in another order: one algorithm for all rules.

A layer makes the channels of a map, other layers read them. Nodes between them tie maps together: a
sum ties three, so what is done to the channels of one is done to all along the residuals. `tied`
follows them, from one part of a map to the next. A rule says which parts a node ties (`Beside`).
Then each layer that makes one of the maps makes other channels, and each layer that reads one reads
them (`Layer`).

An order says of each new channel which old one stands there. A channel may stand in several places,
and a place may be free: that channel is 0, or nothing reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.onnx_graph import ir

Array = npt.NDArray[Any]
Order = Sequence[int] | npt.NDArray[np.intp]

# A place without a channel.
FREE = -1


def filled(order: Sequence[int], step: int) -> list[int]:
    """`order` with free places up to a multiple of `step`."""
    return [*order, *[FREE] * (-len(order) % step)]


def in_channels(array: Array, axis: int, order: Order, free: Any = 0) -> Array:
    """An array whose channels along `axis` have this order, with `free` at free places."""
    places = np.asarray(order, np.intp)
    moved = np.take(array, places, axis)
    moved[(slice(None),) * axis + (places == FREE,)] = free
    return moved


class Layer(Protocol):
    """A convolution by constants."""

    node: ir.Node
    # Each channel of its result is made of all channels that it reads, else of that of its number.
    is_dense: bool

    @property
    def weights(self) -> Array:
        """[out, in / groups, kh, kw]."""

    @property
    def source(self) -> ir.Value:
        """The map that it reads."""

    @property
    def channels(self) -> int:
        """How many channels it reads."""

    def make(self, order: Sequence[int]) -> None:
        """Make other channels."""


class Uses:
    """Which nodes read a value, and whether something outside of the graph's own nodes does."""

    def __init__(self, graph: ir.Graph) -> None:
        self._readers = graph.readers()
        self.elsewhere = {id(value) for value in graph.outputs}
        for node in graph.nodes:
            for body in node.bodies:
                self.elsewhere |= body.read_ids()

    def of(self, value: ir.Value) -> Sequence[ir.Node]:
        """The nodes that read `value`, as often as they do."""
        return self._readers.get(id(value), ())

    def around(self, maps: Iterable[ir.Value]) -> Sequence[ir.Node]:
        """The nodes that make or read one of `maps`."""
        nodes = dict[int, ir.Node]()
        for value in maps:
            producer = value.producer()
            near = [*self.of(value), *([] if producer is None else [producer])]
            nodes.update((id(node), node) for node in near)
        return list(nodes.values())


@record(eq=False)
class Part:
    """Neighbouring channels of a map."""

    value: ir.Value
    first: int
    count: int

    @property
    def key(self) -> tuple[int, int]:
        return id(self.value), self.first

    @property
    def places(self) -> slice:
        return slice(self.first, self.first + self.count)


# The parts that a node ties to one of the maps that it makes or reads; None where the channels of
# this one have to stay as they are.
Beside = Callable[[ir.Node, Part], Sequence[Part] | None]


def tied(uses: Uses, start: Part, beside: Beside) -> dict[tuple[int, int], Part]:
    """`start` and all parts that are tied to it; none where one of them has to stay as it is."""
    parts, waiting = {start.key: start}, [start]
    while waiting:
        part = waiting.pop()
        producer = part.value.producer()
        if producer is None or id(part.value) in uses.elsewhere:
            return {}
        for node in (producer, *uses.of(part.value)):
            others = beside(node, part)
            if others is None:
                return {}
            new = {each.key: each for each in others if each.key not in parts}
            parts |= new
            waiting += new.values()
    return parts


def tied_maps(
    uses: Uses,
    start: ir.Value,
    channels: int,
    layer_of: Callable[[ir.Node], Layer | None],
    maps_by_channel: Callable[[ir.Node], Sequence[ir.Value] | None],
) -> dict[int, ir.Value]:
    """The map `start` of so many channels and all that are tied to it, by identity; none where one
    of them has to stay as it is.

    Args:
        layer_of: the layer of a node that can make or read other channels.
        maps_by_channel: of another node, the maps that have the same channels.
    """

    def beside(node: ir.Node, part: Part) -> Sequence[Part] | None:
        layer = layer_of(node)
        if layer is None:
            maps = maps_by_channel(node)
        elif _width(layer, part.value) != channels:
            return None  # a map of one channel, which is broadcast to others
        else:
            maps = [] if layer.is_dense else [layer.source, node.outputs[0]]
        return None if maps is None else [Part(each, 0, channels) for each in maps]

    parts = tied(uses, Part(start, 0, channels), beside)
    return {id(part.value): part.value for part in parts.values()}


def _width(layer: Layer, value: ir.Value) -> int:
    """The channels of a map that a layer reads or makes."""
    return layer.channels if layer.source is value else len(layer.weights)


def give_channels(
    maps: Mapping[int, ir.Value], layers: Iterable[Layer], order: Sequence[int]
) -> None:
    """Let the layers that make one of `maps` make channels in this order."""
    for layer in layers:
        if id(layer.node.outputs[0]) in maps:
            layer.make(order)
    for value in maps.values():
        if value.shape is not None:
            value.shape = (value.shape[0], len(order), *value.shape[2:])


def maps_by_channel(
    node: ir.Node, kinds: frozenset[str], may_have: Callable[[int, Array], bool]
) -> Sequence[ir.Value] | None:
    """The maps that a node reads and makes, if a channel of the one depends on this channel of the
    others alone; else None.

    Args:
        kinds: the types of such nodes.
        may_have: whether the node may have this constant as input of this number.
    """
    if node.domain or node.op_type not in kinds or len(node.outputs) > 1:
        return None
    maps = list[ir.Value]()
    for place, value in enumerate(node.inputs):
        constant = None if value is None else value.const_value
        if constant is not None:
            if not may_have(place, constant.array):
                return None
        elif value is not None:
            maps.append(value)
    return [*maps, *node.outputs]
