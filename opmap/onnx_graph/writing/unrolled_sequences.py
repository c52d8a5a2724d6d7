"""LSTM, GRU and RNN nodes as products and activations, step by step, for runtimes that have no such
nodes.

D directions, T steps, B batch, I inputs, H units, G gates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.added_nodes import AddedNodes, Array
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# Longer sequences stay nodes: a file has twelve nodes for each step.
MOST_STEPS = 256
SEQUENCES = frozenset({"GRU", "LSTM", "RNN"})
_USUAL = frozenset({"direction", "hidden_size", "linear_before_reset"})
# What an RNN may have in the place of Tanh.
_ACTIVATIONS = frozenset({"Relu", "Sigmoid", "Tanh"})


def unroll_sequences(
    graph: ir.Graph, shapes: Mapping[str, Sequence[int]], kinds: frozenset[str] = SEQUENCES
) -> None:
    """Write the steps of each LSTM, GRU and RNN whose sequence has a known shape.

    Args:
        shapes: of values by their names, where all sizes are known.
        kinds: of nodes; others stay.
    """
    names, nodes = Names(graph), list[ir.Node]()
    for node in graph.nodes:
        given = node.inputs[0] if node.inputs else None
        shape = () if given is None else shapes.get(given.name, ())
        if (
            node.op_type in kinds
            and _is_plain(node)
            and len(shape) == 3
            and 0 < shape[0] <= MOST_STEPS
            and shape[1]
        ):
            nodes += _Unrolled(graph, node, shape, names).nodes
        else:
            nodes.append(node)
    graph.nodes = ir.leading_to(graph.outputs, nodes)
    graph.drop_unread()


def _is_plain(node: ir.Node) -> bool:
    """Whether a node has its usual activations, constant weights and nothing else. An RNN may have
    other activations."""
    told = dict(node.attributes)
    names = told.pop("activations", ()) if node.op_type == "RNN" else ()
    if node.op_type not in SEQUENCES or node.domain or not set(told) <= _USUAL:
        return False
    if not isinstance(names, Sequence) or not set(names) <= _ACTIVATIONS:
        return False
    weights = node.inputs[1:4]
    constant = all(each is not None and each.const_value is not None for each in weights)
    lengths, peepholes = node.inputs[4:5], node.inputs[7:8]
    return len(weights) == 3 and constant and not any((*lengths, *peepholes))


class _Unrolled(AddedNodes):
    """The nodes of one cell."""

    def __init__(self, graph: ir.Graph, node: ir.Node, shape: Sequence[int], names: Names) -> None:
        super().__init__(graph, node.name, names)
        self._node = node
        self._steps, self._batch = shape[:2]
        self._weights = [self._array(place) for place in (1, 2, 3)]
        self._units = self._weights[1].shape[2]
        how = node.attributes.get("direction", "forward")
        backward = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}
        sides = [self._side(number, back) for number, back in enumerate(backward[str(how)])]
        for place, value in enumerate(node.outputs):
            parts = [side[place] for side in sides]
            if len(parts) == 1:
                self.emit("Identity", parts, [value])
            else:
                self.emit("Concat", parts, [value], axis=0 if place else 1)

    def _array(self, place: int) -> Array:
        value = self._node.inputs[place]
        assert value is not None
        assert value.const_value is not None
        return value.const_value.array

    def _side(self, number: int, back: bool) -> list[ir.Value]:
        """All outputs [T, 1, B, H] of a direction and its last states [1, B, H]."""
        activations = self._node.attributes.get("activations")
        self._squash = str(activations[number]) if isinstance(activations, Sequence) else "Tanh"
        weights, recurrent, bias = (each[number] for each in self._weights)
        own, other = np.split(bias, 2)
        x = self._node.inputs[0]
        assert x is not None
        late = self._node.op_type == "GRU" and self._node.attributes.get("linear_before_reset")
        added = own + other
        if late:
            added[-self._units :] = own[-self._units :]
        sums = self.op("MatMul", x, self.constant(weights.T, "weights"))
        sums = self.op("Add", sums, self.constant(added, "bias"))
        states = [self._first(place, number) for place in range(5, 4 + len(self._node.outputs))]
        step = {"LSTM": self._lstm, "GRU": self._gru, "RNN": self._rnn}[self._node.op_type]
        found = dict[int, ir.Value]()
        for time in reversed(range(self._steps)) if back else range(self._steps):
            row = self.op("Gather", sums, self.constant(np.array(time), "step"), axis=0)
            states = step(row, states, recurrent, other)
            found[time] = states[0]
        whole = [self._steps, 1, self._batch, self._units]
        rows = [found[time] for time in range(self._steps)]
        every = rows[0] if len(rows) == 1 else self.op("Concat", *rows, axis=0)
        return [self._shaped(every, whole), *(self._shaped(each, whole[1:]) for each in states)]

    def _first(self, place: int, number: int) -> ir.Value:
        """A state [B, H] before the first step."""
        given = self._node.inputs[place] if place < len(self._node.inputs) else None
        if given is None:
            return self.constant(np.zeros((self._batch, self._units), np.float32), "zeros")
        return self.op("Gather", given, self.constant(np.array(number), "side"), axis=0)

    def _lstm(
        self, row: ir.Value, states: Sequence[ir.Value], recurrent: Array, _: Array
    ) -> list[ir.Value]:
        """Gates in the order input, output, forget, update."""
        h, c = states
        sums = self.op("Add", row, self._times(h, recurrent))
        gates, update = self._parts(sums, [3 * self._units, self._units])
        admit, show, keep = self._parts(self.op("Sigmoid", gates), [self._units] * 3)
        added = self.op("Mul", admit, self.op("Tanh", update))
        c = self.op("Add", self.op("Mul", keep, c), added)
        return [self.op("Mul", show, self.op("Tanh", c)), c]

    def _gru(
        self, row: ir.Value, states: Sequence[ir.Value], recurrent: Array, bias: Array
    ) -> list[ir.Value]:
        """Gates in the order update, reset, hidden."""
        (h,), units = states, self._units
        x_gates, x_hidden = self._parts(row, [2 * units, units])
        gates = self.op("Add", x_gates, self._times(h, recurrent[: 2 * units]))
        keep, reset = self._parts(self.op("Sigmoid", gates), [units] * 2)
        if self._node.attributes.get("linear_before_reset"):
            product = self._times(h, recurrent[2 * units :])
            sums = self.op("Add", product, self.constant(bias[2 * units :], "bias"))
            inner = self.op("Mul", reset, sums)
        else:
            inner = self._times(self.op("Mul", reset, h), recurrent[2 * units :])
        hidden = self.op("Tanh", self.op("Add", x_hidden, inner))
        one = self.constant(np.ones(1, np.float32), "one")
        new = self.op("Mul", self.op("Sub", one, keep), hidden)
        return [self.op("Add", new, self.op("Mul", keep, h))]

    def _rnn(
        self, row: ir.Value, states: Sequence[ir.Value], recurrent: Array, _: Array
    ) -> list[ir.Value]:
        sums = self.op("Add", row, self._times(states[0], recurrent))
        return [self.op(self._squash, sums)]

    def _times(self, h: ir.Value, recurrent: Array) -> ir.Value:
        return self.op("MatMul", h, self.constant(recurrent.T, "recurrent"))

    def _parts(self, value: ir.Value, sizes: Sequence[int]) -> list[ir.Value]:
        made = [self.value(f"Split_{place}") for place in range(len(sizes))]
        self.emit("Split", [value, self.ints(sizes, "sizes")], made, axis=1)
        return made

    def _shaped(self, value: ir.Value, shape: Sequence[int]) -> ir.Value:
        return self.op("Reshape", value, self.ints(shape, "shape"))
