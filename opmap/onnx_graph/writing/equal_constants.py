"""Narrow constants of equal elements, once.

Only what nothing but a Cast reads, as `narrow_constants` writes it. ONNX Runtime's optimiser names
constants that it makes after those that it makes them of, and fails where two layers share one.
"""

from __future__ import annotations

from tflite_ort.opmap.onnx_graph import ir

# Others are not worth a node less; larger ones are hardly ever equal.
_BYTES = range(64, 1 << 20)


def join_equal_constants(graph: ir.Graph) -> None:
    """Let nodes read one of the narrow initializers of a graph that have equal elements."""
    elsewhere = {id(v) for v, node, _ in graph.reads() if node.op_type != "Cast"}
    elsewhere |= {id(value) for value in (*graph.inputs, *graph.outputs)}  # a state's first value
    first: dict[tuple[ir.DataType, tuple[int, ...], bytes], ir.Value] = {}
    joined: dict[int, ir.Value] = {}
    for value in graph.initializers.values():
        tensor = value.const_value
        if tensor is None or tensor.nbytes not in _BYTES or id(value) in elsewhere:
            continue
        key = tensor.dtype, tensor.shape, bytes(tensor.data())
        found = first.setdefault(key, value)
        if found is not value:
            joined[id(value)] = found
    if joined:
        for node in graph.all_nodes():
            node.inputs = tuple(joined.get(id(value), value) for value in node.inputs)
        graph.initializers = {
            name: value for name, value in graph.initializers.items() if id(value) not in joined
        }
