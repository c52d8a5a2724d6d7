"""TensorFlow's comparisons, logic and bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.flex.elementwise import (
    FLOATS,
    INTEGERS,
    operands,
    read_computed,
    write_computed,
)
from tflite_ort.opmap.graph import Domain, Graph, Layout
from tflite_ort.opmap.idioms.bits import bits_set, left_shift, right_shift
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, TensorType
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_BOOL = frozenset({TensorType.BOOL})
# An unsigned integer of 64 bits is not compared as a signed one.
_ORDERED = FLOATS | INTEGERS - {TensorType.UINT64}
_COMPARED = {
    "Equal": ("Equal", FLOATS | INTEGERS | _BOOL),
    "Greater": ("Greater", _ORDERED),
    "GreaterEqual": ("GreaterOrEqual", _ORDERED),
    "Less": ("Less", _ORDERED),
    "LessEqual": ("LessOrEqual", _ORDERED),
    "NotEqual": ("Equal", FLOATS | INTEGERS | _BOOL),
}
_BITS = {"BitwiseAnd": "BitwiseAnd", "BitwiseOr": "BitwiseOr", "BitwiseXor": "BitwiseXor"}
_LOGIC = {"LogicalAnd": "And", "LogicalOr": "Or"}


@flex_translator(*_COMPARED)
def comparison(op: View, g: Graph) -> None:
    """The node of `_COMPARED`."""
    name = op.name.removeprefix("Flex")
    node, types = _COMPARED[name]
    values, layout = operands(op, g, types)
    result = g.op(node, *values)
    result = g.op("Not", result) if name == "NotEqual" else result
    g.write(op.output, result, layout=layout, domain=Domain.FILE)


@flex_translator(*_BITS)
def bits(op: View, g: Graph) -> None:
    """The node of `_BITS`."""
    values, layout = operands(op, g, INTEGERS)
    write_computed(g, op.output, g.op(_BITS[op.name.removeprefix("Flex")], *values), layout)


@flex_translator(*_LOGIC)
def logic(op: View, g: Graph) -> None:
    """The node of `_LOGIC`."""
    values = [g.read(tensor, domain=Domain.FILE) for tensor in op.present_inputs()]
    result = g.op(_LOGIC[op.name.removeprefix("Flex")], *values)
    g.write(op.output, result, domain=Domain.FILE)


@flex_translator("LogicalNot")
def logical_not(op: View, g: Graph) -> None:
    """Not."""
    (x,) = op.present_inputs()
    layout = g.layout(x)
    result = g.op("Not", g.read(x, layout=layout, domain=Domain.FILE))
    g.write(op.output, result, layout=layout, domain=Domain.FILE)


@flex_translator("Invert")
def invert(op: View, g: Graph) -> None:
    """BitwiseNot."""
    (x,) = op.present_inputs()
    layout = g.layout(x)
    write_computed(g, op.output, g.op("BitwiseNot", read_computed(g, x, INTEGERS, layout)), layout)


@flex_translator("LeftShift", "RightShift")
def shifts(op: View, g: Graph) -> None:
    """BitShift of unsigned bits."""
    x, amount = (g.read(tensor, domain=Domain.FILE) for tensor in op.present_inputs())
    if op.name == "FlexLeftShift":
        made = left_shift(g, x, amount, op.output.dtype)
    else:
        made = right_shift(op, g, x, amount)
    g.write(op.output, made, domain=Domain.FILE)


@flex_translator("PopulationCount")
def population_count(op: View, g: Graph) -> None:
    """The number of set bits, looked up for each byte."""
    (x,) = op.present_inputs()
    made = bits_set(g, g.read(x, domain=Domain.FILE), x.dtype)
    g.write(op.output, made, domain=Domain.FILE)


@flex_translator("IsFinite", "IsNan")
def special(op: View, g: Graph) -> None:
    """IsNaN, and IsInf."""
    (x,) = op.present_inputs()
    layout = g.layout(x)
    value = read_computed(g, x, FLOATS, layout)
    result = g.op("IsNaN", value)
    if op.name == "FlexIsFinite":
        result = g.op("Not", g.op("Or", result, g.op("IsInf", value)))
    g.write(op.output, result, layout=layout, domain=Domain.FILE)


@flex_translator("ApproximateEqual")
def approximate_equal(op: View, g: Graph) -> None:
    """Less(Abs(Sub))."""
    x, y = op.present_inputs()
    (first, second), layout = operands(op, g, frozenset({TensorType.FLOAT32, TensorType.FLOAT64}))
    bound: ir.Value = g.constant(np.asarray(node_of(op)["tolerance"], x.dtype))
    result = g.op("Less", g.op("Abs", g.op("Sub", first, second)), bound)
    g.write(op.output, result, layout=layout if x.rank == y.rank else Layout.LAST)
