"""TensorFlow's fake quantization."""

from __future__ import annotations

from typing import Any

import numpy as np

from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.registry import flex_translator
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.arithmetic.fake_quantization import nudged
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]


@flex_translator("FakeQuantWithMinMaxArgs")
def by_attributes(op: View, g: Graph) -> None:
    """Bounds of the file."""
    node = node_of(op)
    low, high = (np.asarray(node[name], np.float32) for name in ("min", "max"))
    if not low < high:
        raise Untranslatable(f"bounds of {low} and {high}")
    found = nudged(low, high, node["num_bits"], node["narrow_range"])
    _write(op, g, *(g.constant(value) for value in found))


@flex_translator("FakeQuantWithMinMaxVars", "FakeQuantWithMinMaxVarsPerChannel")
def by_bounds(op: View, g: Graph) -> None:
    """Bounds that are inputs; between two zeros all is zero."""
    node, (low, high) = node_of(op), (g.read(op[name]) for name in ("min", "max"))
    first = np.float32(node["narrow_range"])
    last = np.float32(2 ** node["num_bits"] - 1)
    zero, none, most = (g.constant(number, np.float32) for number in (0, first, last))
    width, count = g.op("Sub", high, low), g.constant(last - first, np.float32)
    step, factor = g.op("Div", width, count), g.op("Div", count, width)
    place = g.op("Sub", none, g.op("Div", low, step))
    place = g.op("Floor", g.op("Add", place, g.constant(0.5, np.float32)))
    place = g.op("Min", g.op("Max", place, none), most)
    bottom, top = (g.op("Mul", g.op("Sub", end, place), step) for end in (none, most))
    empty = g.op("And", g.op("Equal", low, zero), g.op("Equal", high, zero))
    _write(op, g, step, factor, bottom, top, empty)


def _write(
    op: View,
    g: Graph,
    step: ir.Value,
    factor: ir.Value,
    bottom: ir.Value,
    top: ir.Value,
    empty: ir.Value | None = None,
) -> None:
    """The floor of places among the steps, as the kernel computes it; 0 where it is `empty`."""
    half = g.constant(0.5, np.float32)
    zero = g.op("Floor", g.op("Add", g.op("Mul", g.op("Neg", bottom), factor), half))
    shifted = g.op("Sub", g.op("Max", g.op("Min", g.read(op["inputs"]), top), bottom), bottom)
    divides = op.name == "FlexFakeQuantWithMinMaxVars"
    place = g.op("Div", shifted, step) if divides else g.op("Mul", shifted, factor)
    place = g.op("Add", g.op("Sub", place, zero), half)
    made = g.op("Mul", g.op("Floor", place), step)
    if empty is not None:
        made = g.op("Where", empty, g.constant(0, np.float32), made)
    g.write(op.output, made)
