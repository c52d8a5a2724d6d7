"""A QLinearConv as `make_symmetric` and `make_paired` change it: its weights, and the channels of
its maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.channels import FREE, Uses, maps_by_channel, tied_maps
from tflite_ort.opmap.rules.nodes.block_nodes import replace_constant

Array = npt.NDArray[Any]
_WEIGHTS, _SCALE, _ZERO, _BIAS = 3, 4, 5, 8
_LOW, _HIGH = np.int16(-128), np.int16(127)
# uint8 codes as int8 of the same distance.
_MOVED = np.uint8(128)
# A channel of the result of these depends on this channel of the inputs alone.
BY_CHANNEL = frozenset({"Add", "Clip", "Mul", "Relu", "GlobalAveragePool"})
BY_CHANNEL |= {"AveragePool", "MaxPool", "DequantizeLinear", "QuantizeLinear"}


class Layer:
    """A two-dimensional QLinearConv by constants of 8 bits, dense or depthwise.

    Attributes:
        signed: whether the node has int8 weights, not uint8 ones.
        weights: [out, in / groups, kh, kw], as int8.
        zero: their zero point, one or for each output channel.
    """

    def __init__(self, node: ir.Node, constants: dict[int, Array], *, is_dense: bool) -> None:
        self.node, self.is_dense = node, is_dense
        self.signed = constants[_WEIGHTS].dtype == np.int8
        self._constants = constants if self.signed else _moved(constants, np.int8)
        self._changed = False

    @classmethod
    def of(cls, node: ir.Node, weights_type: npt.DTypeLike = np.int8) -> Layer | None:
        """That of a node; None of other nodes, and of those by weights of another type."""
        if node.op_type != "QLinearConv" or node.domain:
            return None
        places = (_WEIGHTS, _SCALE, _ZERO, *range(_BIAS, len(node.inputs)))
        constants = {
            place: array for place in places if (array := node.constant(place)) is not None
        }
        weights = constants.get(_WEIGHTS)
        if len(constants) < len(places) or weights is None or weights.ndim != 4:
            return None
        if not weights.size:
            return None  # no channels: nothing can be too large
        if constants[_ZERO].size not in (1, len(weights)):  # which ONNX Runtime will refuse
            return None
        groups = node.attributes.get("group", 1)
        is_depthwise = weights.shape[1] == 1 and groups == len(weights) > 1
        if weights.dtype != weights_type or not (groups == 1 or is_depthwise):
            return None
        return cls(node, constants, is_dense=groups == 1)

    @property
    def weights(self) -> Array:
        return self._constants[_WEIGHTS]

    @property
    def zero(self) -> Array:
        return self._constants[_ZERO]

    @property
    def source(self) -> ir.Value:
        """What it reads."""
        value = self.node.inputs[0]
        assert value is not None
        return value

    @property
    def channels(self) -> int:
        """Of the input."""
        return self.weights.shape[1] if self.is_dense else len(self.weights)

    @cached_property
    def wanted(self) -> dict[int, int]:
        """By channel of the input, how many more copies of it the layer has to read to do with
        weights of 8 bits and the zero point 0."""
        if not self._is_off_zero:
            return {}
        zeros = _along(self.zero, np.int16)
        rows = self.weights.reshape(len(self.weights), -1)
        over = np.zeros(len(rows), np.bool_)
        if zeros.max() > 0:
            over |= rows.min(axis=1) < (_LOW + zeros).ravel()
        if zeros.min() < 0:
            over |= rows.max(axis=1) > (_HIGH + zeros).ravel()
        channels = np.flatnonzero(over)
        if not channels.size:
            return {}
        rest = self.rest(channels)
        axes = (0, 2, 3) if self.is_dense else (1, 2, 3)
        above, below = rest.max(axis=axes), -rest.min(axis=axes)
        more = (np.maximum(-(-above // _HIGH), -(below // _LOW)) - 1).tolist()
        named = range(self.channels) if self.is_dense else channels.tolist()
        return {channel: count for channel, count in zip(named, more, strict=True) if count > 0}

    @property
    def _is_off_zero(self) -> bool:
        return bool(self.zero.any())

    def rest(self, channels: Any = slice(None)) -> Array:
        """The weights of some output channels less their zero points, [out, in / groups, kh, kw],
        as int16."""
        zeros = _along(self.zero, np.int16)
        own = zeros if len(zeros) == 1 else zeros[channels]
        rest: Array = self.weights[channels].astype(np.int16) - own
        return rest

    def take(self, weights: Array) -> None:
        """Have int8 weights [out, in, kh, kw] of the zero point 0, of a map as wide as these."""
        self._set(weights.astype(np.int8))
        self._changed = self.signed = True

    def make(self, order: Sequence[int]) -> None:
        """Make other channels than before; those of free places are zeros."""
        self._constants = _for_channels(self._constants, order)
        if not self.is_dense:
            self.node.attributes["group"] = len(order)
        self._changed = True

    def read_in_order(self, order: npt.NDArray[np.intp]) -> None:
        """Let a dense layer read the same channels in another order."""
        self._constants = {**self._constants, _WEIGHTS: self.weights[:, order]}
        self._changed = True

    def read(self, order: Sequence[int]) -> None:
        """Let a dense layer read a map whose channels have other places, and have the zero point 0.

        Args:
            order: has all channels at their own places or later, and as many copies of each as the
                layer wants.
        """
        channels = self.channels
        count, _, *window = self.weights.shape
        weights = np.zeros((count, len(order), *window), np.int8)
        np.subtract(self.weights, _along(self.zero, np.int8), out=weights[:, :channels])
        places: dict[int, list[int]] = {}
        for place in range(channels, len(order)):
            places.setdefault(order[place], []).append(place)
        several = sorted({*self.wanted, *places} - {FREE})
        if several:
            rest = self.weights[:, several].astype(np.int16) - _along(self.zero, np.int16)
            weights[:, several] = 0
            given = [([] if order[c] == FREE else [c]) + places.get(c, []) for c in several]
            for level, part in enumerate(_parts(rest)):
                those = [i for i, own in enumerate(given) if level < len(own)]
                weights[:, [given[i][level] for i in those]] = part[:, those]
        self._set(weights)

    def center(self) -> None:
        """Have signed weights of the zero point 0; a weight that does not fit in 8 bits then is
        another one."""
        self._set(self._centered())
        self._changed |= not self.signed
        self.signed = True

    def leave_zero(self) -> None:
        """Have the zero point -1 or 1 in place of 0, with which all weights fit in 8 bits; stay as
        it is if there is none."""
        step = np.int8(1 if self.weights.min() == _LOW else -1)
        if step < 0 or self.weights.max() < _HIGH:
            zero, weights = np.full_like(self.zero, step), self.weights + step
            self._constants = {**self._constants, _WEIGHTS: weights, _ZERO: zero}
            self._changed = True

    def onto(self, result: ir.Value) -> None:
        """Give another value, by a new node."""
        node = self.node
        self.node = ir.Node(
            node.op_type, node.inputs, [result], attributes=node.attributes, name=node.name
        )

    def _centered(self) -> Array:
        if not self._is_off_zero:
            return self.weights
        return self.weights - _along(self.zero, np.int8)

    def _set(self, weights: Array) -> None:
        if weights is not self.weights:
            zero = np.zeros_like(self.zero)
            self._constants = {**self._constants, _WEIGHTS: weights, _ZERO: zero}
            self._changed = True

    def store(self, graph: ir.Graph) -> None:
        """Give the node its new constants."""
        if self._changed:
            constants = self._constants if self.signed else _moved(self._constants, np.uint8)
            for place, array in constants.items():
                if array is not self.node.constant(place):
                    replace_constant(graph, self.node, place, array)

    def beside(self, before: Layer, order: Sequence[int], step: int) -> tuple[Layer, Layer]:
        """Channels of a depthwise layer by two dense ones: one that gives copies of the channels
        that they read, in the place of `before`, and one over these.

        Args:
            order: the channels; the result has zeros at free places.
            step: the copies are a multiple of it.
        """
        counts = [0 if channel == FREE else 1 + self.wanted.get(channel, 0) for channel in order]
        sources = [c for c, count in zip(order, counts, strict=True) for _ in range(count)]
        sources += [FREE] * (-len(sources) % step)
        weights = np.zeros((len(order), len(sources), *self.weights.shape[2:]), np.int8)
        starts, rest = np.cumsum([0, *counts[:-1]]), self.rest(np.array(order))
        for level, part in enumerate(_parts(rest)):
            those = np.flatnonzero(np.array(counts) > level)
            weights[those, starts[those] + level] = part[those, 0]
        copied = _beside(before.node, before.source, _for_channels(before._constants, sources))
        constants = _for_channels(self._constants, order)
        constants |= {_WEIGHTS: weights, _ZERO: np.zeros_like(constants[_ZERO])}
        return copied, _beside(self.node, copied.node.outputs[0], constants)


def tied_to(
    uses: Uses,
    layers: Mapping[int, Layer],
    layer: Layer,
    is_fixed: Callable[[Layer], bool] = lambda each: False,
) -> dict[int, ir.Value]:
    """The maps that have to have the order of channels that `layer` reads; none where that cannot
    be changed.

    Args:
        layers: by node.
        is_fixed: whether a depthwise layer cannot have other channels.
    """

    def layer_of(node: ir.Node) -> Layer | None:
        other = layers.get(id(node))
        return None if other is None or (not other.is_dense and is_fixed(other)) else other

    return tied_maps(uses, layer.source, layer.channels, layer_of, by_channel)


def by_channel(node: ir.Node) -> Sequence[ir.Value] | None:
    """The maps of a node whose channels do not meet, and that has no constant by channel."""
    return maps_by_channel(node, BY_CHANNEL, lambda place, array: array.size <= 1)


def cells_of(value: ir.Value) -> int:
    """The cells of a map [N, C, H, W]; 0 where they are not known."""
    sizes = [] if value.shape is None else [value.shape[0], *value.shape[2:]]
    return int(np.prod([size if isinstance(size, int) else 0 for size in sizes or [0]]))


def _moved(constants: dict[int, Array], dtype: npt.DTypeLike) -> dict[int, Array]:
    """Weights and their zero point in the other type of 8 bits, which are as far apart."""
    codes = {place: constants[place].view(np.uint8) for place in (_WEIGHTS, _ZERO)}
    moved = {place: np.asarray(array ^ _MOVED).view(dtype) for place, array in codes.items()}
    return {**constants, **moved}


def _parts(rest: Array) -> Iterator[Array]:
    """Integers as a sum of arrays of int8."""
    while True:
        part = np.minimum(np.maximum(rest, _LOW), _HIGH)
        yield part.astype(np.int8)
        rest = rest - part
        if not rest.any():
            return


def _along(zero: Array, dtype: npt.DTypeLike) -> Array:
    """A zero point along the output channels of weights."""
    return zero.astype(dtype).reshape(-1, 1, 1, 1)


def _for_channels(constants: dict[int, Array], order: Sequence[int]) -> dict[int, Array]:
    """The constants of a layer for other output channels."""
    count = len(constants[_WEIGHTS])
    places = np.array(order)
    made = {
        place: array[places] if array.ndim and len(array) == count else array
        for place, array in constants.items()
    }
    free = places == FREE
    zero = made[_ZERO].reshape(-1, 1, 1, 1)
    made[_WEIGHTS][free] = zero[free] if zero.size > 1 else zero
    if _BIAS in made:
        made[_BIAS][free] = 0
    return made


def _beside(node: ir.Node, source: ir.Value, constants: dict[int, Array]) -> Layer:
    """A dense layer with the window of another one."""
    result = ir.Value(f"{node.outputs[0].name}/beside", dtype=node.outputs[0].dtype)
    attributes = {**node.attributes, "group": 1}
    inputs = (source, *node.inputs[1:])
    name = f"{node.name}/beside"
    made = ir.Node("QLinearConv", inputs, [result], attributes=attributes, name=name)
    layer = Layer(made, constants, is_dense=True)
    layer._changed = True
    return layer
