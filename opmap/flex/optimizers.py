"""TensorFlow's optimizers on what their variables hold."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import FLOATS, computed_type, read_computed, write_computed
from tflite_ort.opmap.graph import Graph, Layout
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView
from tflite_ort.schema.values.flex import node_of
from tflite_ort.schema.values.optimizers import DENSE

View = OperatorView[Any]


class Number:
    """A value of a graph with the operators of numbers."""

    def __init__(self, maths: Maths, value: ir.Value) -> None:
        self._maths, self.value = maths, value

    def __add__(self, other: Any) -> Number:
        return self._maths.node("Add", self, other)

    def __radd__(self, other: Any) -> Number:
        return self._maths.node("Add", other, self)

    def __sub__(self, other: Any) -> Number:
        return self._maths.node("Sub", self, other)

    def __rsub__(self, other: Any) -> Number:
        return self._maths.node("Sub", other, self)

    def __mul__(self, other: Any) -> Number:
        return self._maths.node("Mul", self, other)

    def __rmul__(self, other: Any) -> Number:
        return self._maths.node("Mul", other, self)

    def __truediv__(self, other: Any) -> Number:
        return self._maths.node("Div", self, other)


class Maths:
    """The functions of numpy's names on numbers of one type."""

    def __init__(self, g: Graph, dtype: np.dtype[Any]) -> None:
        self._g, self._dtype = g, dtype

    def node(self, op_type: str, *values: Any) -> Number:
        """A node of numbers and constants."""
        operands = [
            each.value if isinstance(each, Number) else self._g.constant(each, self._dtype)
            for each in values
        ]
        return Number(self, self._g.op(op_type, *operands))

    def sqrt(self, x: Number) -> Number:
        return self.node("Sqrt", x)

    def abs(self, x: Number) -> Number:
        return self.node("Abs", x)

    def sign(self, x: Number) -> Number:
        return self.node("Sign", x)

    def exp(self, x: Number) -> Number:
        return self.node("Exp", x)

    def maximum(self, x: Number, y: Any) -> Number:
        return self.node("Max", x, y)

    def minimum(self, x: Number, y: Any) -> Number:
        return self.node("Min", x, y)

    def power(self, x: Number, y: Number) -> Number:
        return self.node("Pow", x, y)


@flex_translator(*DENSE)
def step(op: View, g: Graph) -> None:
    """The nodes of the formulas."""
    dtype, first = computed_type(op.output.type), op.present_inputs()[0]
    maths, given = Maths(g, dtype), {}
    for name, tensor in zip(op.names, op.present_inputs(), strict=True):
        if tensor.type is first.type:
            value = read_computed(g, tensor, FLOATS, Layout.LAST)
        else:
            value = g.cast(g.whole(tensor), dtype)
        given[name] = Number(maths, value)
    found = DENSE[str(op.name).removeprefix("Flex")](maths, given, node_of(op).attributes)
    for output, number in zip(op.outputs, found, strict=True):
        write_computed(g, output, number.value, Layout.LAST)
