"""Signed 8-bit weights of layers, one initializer for each layer.

ONNX Runtime on x86 without VNNI makes unsigned weights of signed ones where a session asks for
exact sums (`session.x64quantprecision`). It names what it makes after the initializer, and fails
where two layers share one.
"""

from __future__ import annotations

from itertools import count

from tflite_ort.opmap.onnx_graph import ir


def part_signed_weights(graph: ir.Graph) -> None:
    """Give each DequantizeLinear of int8 constants an initializer of its own; the elements are
    those of the first one."""
    seen, names = set[int](), count()
    for value, node, place in list(graph.reads()):
        if place or node.op_type != "DequantizeLinear" or value.dtype is not ir.DataType.INT8:
            continue
        if value.const_value is None or id(value) not in seen:
            seen.add(id(value))
            continue
        name = next(n for i in names if (n := f"{value.name}/{i}") not in graph.initializers)
        own = ir.Value(name, dtype=value.dtype, shape=value.shape, const_value=value.const_value)
        graph.initializers[name] = own
        node.inputs = (own, *node.inputs[1:])
