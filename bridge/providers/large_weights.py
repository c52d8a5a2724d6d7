"""Weights that a session reads where they are: of large models, of few channels of large maps."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from math import prod
from typing import Any

import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir

Array = npt.NDArray[Any]

# ONNX Runtime copies an initializer, and packs it anew for its products. That makes products of
# many rows faster, and takes the time and the memory of two copies. Models with this many bytes of
# weights do without: these become inputs of the graph, which ONNX Runtime reads in place.
LARGE_MODEL_BYTES = 1 << 30
_LARGE_BYTES = 1 << 24

# Operators that read this input as it is. Fusions look at no constant of theirs.
_READERS = {("FusedMatMul", 1), ("Gemm", 1), ("MatMul", 0), ("MatMul", 1), ("Gather", 0)}


# A table from which rows are taken needs no packing: ONNX Runtime's copy of it is of no use.
_TABLE_BYTES = 1 << 20
_LOOKUPS = {("Gather", 0)}


# ONNX Runtime's convolutions by constant weights make so many channels at once, of zeros too: one
# channel of a large map would take as many times the memory.
_BLOCK = 16
_LARGE_MAP = 1 << 27


def read_in_place(graph: ir.Graph) -> dict[str, Array]:
    """By name, the weights that are to become inputs of `graph`: large tables that are only looked
    up in, the large float weights of a large model, and those of convolutions that would make large
    maps of zeros."""
    constants = graph.initializers.items()
    tables = {name: value for name, value in constants if _is_table(value)}
    floats = {name: value for name, value in constants if _is_large(value)}
    if _size(floats) >= LARGE_MODEL_BYTES:
        floats = _only_read_by(_READERS, graph, floats)
    tables = _only_read_by(_LOOKUPS, graph, tables) if tables else {}
    large = floats if _size(floats) >= LARGE_MODEL_BYTES else {}
    found = tables | large | _of_few_channels(graph)
    return {name: _tensor(value).array for name, value in found.items()}


def _of_few_channels(graph: ir.Graph) -> dict[str, ir.Value]:
    """The weights of convolutions whose maps would be large only by channels of zeros."""
    found = dict[str, ir.Value]()
    for node in graph.nodes:
        if node.op_type != "Conv" or node.attributes.get("group", 1) != 1:
            continue
        weights, shape = node.inputs[1], node.outputs[0].shape
        if weights is None or weights.const_value is None or shape is None or len(shape) != 4:
            continue
        samples, channels, *cells = (n if isinstance(n, int) else 0 for n in shape)
        if 0 < channels < _BLOCK and samples * _BLOCK * prod(cells) >= _LARGE_MAP:
            found[weights.name] = weights
    return _only_read_by({("Conv", 1)}, graph, found) if found else found


def _only_read_by(
    readers: AbstractSet[tuple[str, int]], graph: ir.Graph, values: Mapping[str, ir.Value]
) -> dict[str, ir.Value]:
    """The values that only `readers` take: nodes by their type and the position of the input."""
    others = {
        value.name for value, node, place in graph.reads() if (node.op_type, place) not in readers
    }
    others.update(value.name for value in graph.outputs)
    return {name: value for name, value in values.items() if name not in others}


def _size(values: Mapping[str, ir.Value]) -> int:
    return sum(_tensor(value).nbytes for value in values.values())


def _tensor(value: ir.Value) -> ir.Tensor:
    assert value.const_value is not None
    return value.const_value


def _is_large(value: ir.Value) -> bool:
    floats = value.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
    return floats and value.const_value is not None and value.const_value.nbytes >= _LARGE_BYTES


def _is_table(value: ir.Value) -> bool:
    tensor = value.const_value
    if tensor is None or tensor.nbytes < _TABLE_BYTES:
        return False
    return tensor.array.dtype.isbuiltin == 1 and tensor.array.dtype.kind in "biuf"
