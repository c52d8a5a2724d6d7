"""Signed 8-bit weights of layers and their zero points, one initializer for each layer.

ONNX Runtime on x86 without VNNI makes unsigned weights of signed ones where a session asks for
exact sums (`session.x64quantprecision`). It names what it makes after the initializer, and fails
where two layers share one.
"""

from __future__ import annotations

from itertools import count

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# By node, the input that has weights; their zero point is the second one after it.
_WEIGHTS = {"DequantizeLinear": 0, "MatMulInteger": 1, "QLinearConv": 3, "QLinearMatMul": 3}


def part_signed_weights(graph: ir.Graph) -> None:
    """Give each reader of dequantized int8 constants a DequantizeLinear of its own, and each of
    these and each layer an initializer of its own; the elements are those of the first one."""
    _part_readers(graph)
    seen, names = set[int](), count()
    for value, node, place in list(graph.reads()):
        if not _is_of_weights(node, place):
            continue
        if value.const_value is None or id(value) not in seen:
            seen.add(id(value))
            continue
        name = next(n for i in names if (n := f"{value.name}/{i}") not in graph.initializers)
        own = ir.Value(name, dtype=value.dtype, shape=value.shape, const_value=value.const_value)
        graph.initializers[name] = own
        node.inputs = (*node.inputs[:place], own, *node.inputs[place + 1 :])


def _is_of_weights(node: ir.Node, place: int) -> bool:
    """Whether an input of a node is signed weights, or the zero point of some."""
    first = _WEIGHTS.get(node.op_type)
    if first is None or place not in (first, first + 2):
        return False
    weights = node.inputs[first]
    return (
        weights is not None
        and weights.dtype is ir.DataType.INT8
        and (place == first or weights.const_value is not None)
    )


def _part_readers(graph: ir.Graph) -> None:
    """Let no two nodes read one DequantizeLinear of int8 constants."""
    names, read, nodes = Names(graph), set[int](), list[ir.Node]()
    for node in graph.nodes:
        inputs = list(node.inputs)
        for place, value in enumerate(inputs):
            before = None if value is None else value.producer()
            if before is None or not _dequantizes_constant(before):
                continue
            if id(value) in read:
                (made,) = before.outputs
                own = ir.Value(names.free(f"{made.name}/again"), dtype=made.dtype)
                label = names.free(f"{before.name}/again")
                copies = [_copied(graph, each, names) for each in before.inputs]
                again = ir.Node(
                    before.op_type, copies, [own], attributes=before.attributes, name=label
                )
                nodes.append(again)
                inputs[place] = own
            read.add(id(value))
        node.inputs = tuple(inputs)
        nodes.append(node)
    graph.nodes = nodes


def _copied(graph: ir.Graph, value: ir.Value | None, names: Names) -> ir.Value | None:
    """A constant once more; the elements are the same array."""
    if value is None or value.const_value is None:
        return value
    return graph.add_initializer(names.free(f"{value.name}/again"), value.const_value.array)


def _dequantizes_constant(node: ir.Node) -> bool:
    codes = node.inputs[0] if node.op_type == "DequantizeLinear" else None
    return codes is not None and codes.dtype is ir.DataType.INT8 and codes.const_value is not None
