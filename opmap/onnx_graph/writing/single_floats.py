"""64-bit floats as 32-bit ones, for runtimes that have no others."""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.value_types import value_types

_WIDE, _SINGLE = ir.DataType.DOUBLE, ir.DataType.FLOAT
_TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype")


def without_doubles(graph: ir.Graph) -> list[str]:
    """Compute in 32 bits what a graph computes in 64; its inputs and outputs stay.

    Returns:
        What computed in 64 bits: the beginnings of the names of nodes, which are operators.
    """
    types, ends = value_types(graph), {id(v) for v in (*graph.inputs, *graph.outputs)}
    if any(types.get(each) is _WIDE for each in ends):
        return []
    found = dict[str, None]()
    for node in graph.all_nodes():
        if any(types.get(id(value)) is _WIDE for value in node.outputs):
            found[node.name.partition("/")[0]] = None
        for value in (*node.inputs, *node.outputs):
            if value is not None and types.get(id(value)) is _WIDE:
                _narrow(value)
        for name in _TYPE_ATTRIBUTES:
            if node.attributes.get(name) == _WIDE:
                node.attributes[name] = int(_SINGLE)
        filled = node.attributes.get("value")
        if isinstance(filled, ir.Tensor) and filled.dtype is _WIDE:
            node.attributes["value"] = ir.Tensor(filled.array.astype(np.float32))
    return list(found)


def _narrow(value: ir.Value) -> None:
    """Make a value 32-bit; numbers beyond 32 bits become the largest ones."""
    value.dtype = _SINGLE
    constant = value.const_value
    if constant is not None and constant.dtype is _WIDE:
        most = np.finfo(np.float32).max
        value.const_value = ir.Tensor(np.clip(constant.array, -most, most).astype(np.float32))
