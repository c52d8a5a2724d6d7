"""Weights so large that a session reads them where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy.typing as npt

from tflite_ort.opmap.graph import ir

Array = npt.NDArray[Any]

# ONNX Runtime copies an initializer, and packs it anew for its products. That makes products of
# many rows faster, and takes the time and the memory of two copies. Models with this many bytes of
# weights do without: these become inputs of the graph, which ONNX Runtime reads in place.
LARGE_MODEL_BYTES = 1 << 30
_LARGE_BYTES = 1 << 24

# Operators that read this input as it is. Fusions look at no constant of theirs.
_READERS = {("Gemm", 1), ("MatMul", 0), ("MatMul", 1), ("Gather", 0)}


def read_in_place(graph: ir.Graph) -> dict[str, Array]:
    """By name, the large float weights of a large model, which are to become inputs of `graph`."""
    large = {n: value.const_value for n, value in graph.initializers.items() if _is_large(value)}
    if _size(large) < LARGE_MODEL_BYTES:
        return {}
    for value, node, position in graph.reads():
        if (node.op_type, position) not in _READERS:
            large.pop(value.name, None)
    if _size(large) < LARGE_MODEL_BYTES:
        return {}
    return {name: tensor.array for name, tensor in large.items() if tensor is not None}


def _size(tensors: Mapping[str, ir.Tensor | None]) -> int:
    return sum(tensor.nbytes for tensor in tensors.values() if tensor is not None)


def _is_large(value: ir.Value) -> bool:
    floats = value.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
    return floats and value.const_value is not None and value.const_value.nbytes >= _LARGE_BYTES
