"""Shared by the LSTM and the RNN of ONNX, whose nodes have one direction or both.

D directions, T time, B batch, C cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.scan import Values
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import ActivationFunctionType, Untranslatable
from tflite_ort.schema.values.sizes import has_zero, is_known

# What a node has where no activations are named; some runtimes read no others.
_DEFAULTS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}
# The activations that mean the same in ONNX.
ONNX_ACTIVATIONS = {ActivationFunctionType.TANH: "Tanh", ActivationFunctionType.RELU: "Relu"}


class Directed(Protocol):
    """A cell over a sequence."""

    @property
    def reverse(self) -> bool:
        """Whether the cell runs from the last step to the first."""


def direction(runs: Sequence[Directed]) -> str | None:
    """The attribute `direction` of a node that runs all `runs`; None for forward."""
    return "bidirectional" if len(runs) == 2 else "reverse" if runs[0].reverse else None


def recurrent_node(
    g: Graph,
    op_type: str,
    x: ir.Value,
    weights: Sequence[ir.Value | None],
    states: Sequence[ir.Value | None],
    peephole: ir.Value | None = None,
    *,
    sizes: Sequence[int],
    sequence: Sequence[int] = (),
    **attributes: Any,
) -> Values:
    """All outputs [T, D, B, C] and the last states [D, B, C] of an RNN, a GRU or an LSTM.

    ONNX Runtime ends the process in a GRU or an LSTM without rows or cells, whose results are
    known, and in a GRU without columns. So an open batch that turns out to be empty gets a row,
    which is cut off afterwards.

    Args:
        x: [T, B, I].
        weights: input weights, recurrent weights, biases.
        states: [D, B, C] of each; None for zeros.
        sizes: B, C, and of a GRU I.
        sequence: T and I, where they are known.
    """
    rows, cells, *columns = sizes
    if op_type != "RNN":
        if has_zero(rows, cells):
            return _empty(g, x, states)
        if op_type == "GRU" and has_zero(*columns):
            raise Untranslatable("a recurrent cell without inputs")
    named, default = attributes.get("activations"), _DEFAULTS[op_type]
    if named is not None and named == default * (len(named) // len(default)):
        attributes["activations"] = None
    if op_type != "RNN" and not is_known(rows):
        row = _Row(g, x)
        whole = [None if each is None else row.added(each, [1, cells]) for each in states]
        x, given = row.added(x, sequence), [*weights, None, *whole, peephole]
        made = g.op_multi(op_type, x, *given, outputs=1 + len(states), **attributes)
        return row.cut_off(made)
    inputs = (x, *weights, None, *states, peephole)
    return g.op_multi(op_type, *inputs, outputs=1 + len(states), **attributes)


# A row of zeros up to so many elements is held.
_HELD = 4096


class _Row:
    """A row of zeros that sequences and states [..., B, ...] get where there is none, so that the
    results are cut off again.

    Args:
        x: [T, B, I].
    """

    def __init__(self, g: Graph, x: ir.Value) -> None:
        self._g, self._count = g, g.op("Shape", x, start=1, end=2)
        self._pads: ir.Value | None = None

    def added(self, value: ir.Value, sizes: Sequence[int]) -> ir.Value:
        """`value` [A, B, C] with the row.

        Args:
            sizes: A and C, where they are known.
        """
        g, one = self._g, self._g.ints([1])
        if sizes and is_known(*sizes) and math.prod(sizes) <= _HELD:
            zeros = g.constant(np.zeros((sizes[0], 1, sizes[1]), np.float32))
            return g.op("Concat", value, g.op("Slice", zeros, self._count, one, one), axis=1)
        if self._pads is None:
            missing = g.op("Sub", g.op("Max", self._count, one), self._count)
            self._pads = g.op("Concat", g.ints([0, 0, 0, 0]), missing, g.ints([0]), axis=0)
        return g.op("Pad", value, self._pads)

    def cut_off(self, made: Values) -> Values:
        """The outputs [T, D, B, C] and the last states [D, B, C] without it."""
        axes = [2, *[1] * (len(made) - 1)]
        bounds = self._g.ints([0]), self._count
        pairs = zip(made, axes, strict=True)
        return [self._g.op("Slice", value, *bounds, self._g.ints([axis])) for value, axis in pairs]


def _empty(g: Graph, x: ir.Value, given: Sequence[ir.Value | None]) -> Values:
    """[T, D, B, C] without elements, and the states."""
    states = [state for state in given if state is not None]
    shape = g.op("Concat", g.op("Shape", x, end=1), g.op("Shape", states[0]), axis=0)
    return [g.op("Expand", g.constant(np.float32(0)), shape), *states]


def stacked_states(g: Graph, states: Values, sizes: Sequence[int] | None = None) -> ir.Value:
    """The states [B, C] of all directions as one [D, B, C].

    Args:
        sizes: B and C.
    """
    if sizes is not None and is_known(*sizes):  # a Reshape of an input takes no time
        expanded = [g.reshape(state, (1, *sizes)) for state in states]
    else:
        axis = g.ints([0])
        expanded = [g.op("Unsqueeze", state, axis) for state in states]
    return expanded[0] if len(expanded) == 1 else g.op("Concat", *expanded, axis=0)


def per_direction(g: Graph, runs: Sequence[Directed], outputs: Values) -> list[Values]:
    """The outputs [T, B, C] and the last states [B, C] of every direction.

    Args:
        outputs: those of the node, [T, D, B, C], then [D, B, C] for every state.
    """
    y, *last = outputs
    if len(runs) == 2:
        places = [g.ints(i) for i in range(2)]
        return [
            [g.op("Gather", y, i, axis=1), *(g.op("Gather", state, i, axis=0) for state in last)]
            for i in places
        ]
    first, second = (g.ints([axis]) for axis in range(2))
    return [[g.op("Squeeze", y, second), *(g.op("Squeeze", state, first) for state in last)]]
