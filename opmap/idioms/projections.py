"""Pixels of the places that a projection sends the pixels of a new image to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir

_FLOAT = np.dtype(np.float32)


class Places:
    """Arithmetic of float32, and what is taken for a place outside of an image."""

    def __init__(self, g: Graph) -> None:
        self._g = g

    def __call__(self, op_type: str, *values: ir.Value | float) -> ir.Value:
        given = [v if isinstance(v, ir.Value) else self._g.constant(v, _FLOAT) for v in values]
        return self._g.op(op_type, *given)

    def cut(self, value: ir.Value) -> ir.Value:
        """The whole number next to a value towards 0."""
        return self("Mul", self("Sign", value), self("Floor", self("Abs", value)))

    def held(self, at: ir.Value, size: int) -> ir.Value:
        """The nearest place inside."""
        return self("Min", self("Max", at, 0), size - 1)

    def reflected(self, at: ir.Value, size: int) -> ir.Value:
        """The place in a row of images of which every other one is mirrored."""
        if size <= 1:
            return self("Mul", at, 0)
        turns = self("Mul", self.cut(self("Div", self("Neg", at), 2 * size)), 2 * size)
        low = self("Where", self("Less", at, -2 * size), self("Add", turns, at), at)
        mirrored = self("Sub", self("Neg", low), 1)
        low = self("Where", self("Less", low, -size), self("Add", low, 2 * size), mirrored)
        turns = self("Mul", self.cut(self("Div", at, 2 * size)), 2 * size)
        high = self("Sub", at, turns)
        mirrored = self("Sub", self("Sub", 2 * size, high), 1)
        high = self("Where", self("GreaterOrEqual", high, size), mirrored, high)
        return self._chosen(at, low, high, size)

    def wrapped(self, at: ir.Value, size: int) -> ir.Value:
        """The place in a row of images."""
        if size <= 1:
            return self("Mul", at, 0)
        turns = self("Add", self.cut(self("Div", self("Neg", at), size - 1)), 1)
        low = self("Add", at, self("Mul", turns, size))
        high = self("Sub", at, self("Mul", self.cut(self("Div", at, size - 1)), size))
        return self._chosen(at, low, high, size)

    def _chosen(self, at: ir.Value, low: ir.Value, high: ir.Value, size: int) -> ir.Value:
        inside = self("Where", self("Greater", at, size - 1), high, at)
        return self.held(self("Where", self("Less", at, 0), low, inside), size)

    def rounded(self, value: ir.Value) -> ir.Value:
        """Halves away from 0."""
        return self("Mul", self("Sign", value), self("Floor", self("Add", self("Abs", value), 0.5)))


# By TensorFlow's fill modes.
OUTSIDE: dict[str, Callable[[Places, ir.Value, int], ir.Value]] = {
    "CONSTANT": lambda places, at, size: at,
    "NEAREST": Places.held,
    "REFLECT": Places.reflected,
    "WRAP": Places.wrapped,
}
