"""Weights so large that a session reads them where they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Array = npt.NDArray[Any]

# ONNX Runtime copies an initializer, and packs it anew for its products. That makes products of
# many rows faster, and takes the time and the memory of two copies. Models with this many bytes of
# weights do without: these become inputs of the graph, which ONNX Runtime reads in place.
LARGE_MODEL_BYTES = 1 << 30
_LARGE_BYTES = 1 << 24

# Operators that read this input as it is. Fusions look at no constant of theirs.
_READERS = {("Gemm", 1), ("MatMul", 0), ("MatMul", 1), ("Gather", 0)}


def read_in_place(model: ir.Model) -> dict[str, Array]:
    """Make the large float weights of a large model inputs of the graph; returns them by name."""
    large = {name: value for name, value in model.graph.initializers.items() if _is_large(value)}
    if sum(map(_size, large.values())) < LARGE_MODEL_BYTES:
        return {}
    weights: dict[str, Array] = {}
    for name, value in large.items():
        assert value.const_value is not None
        weights[name] = np.asarray(value.const_value.numpy(), order="C")
        del model.graph.initializers[name]
        value.const_value = None
        model.graph.inputs.append(value)
    return weights


def _size(value: ir.Value) -> int:
    return 0 if value.const_value is None else value.const_value.nbytes


def _is_large(value: ir.Value) -> bool:
    floats = value.dtype in (ir.DataType.FLOAT, ir.DataType.FLOAT16)
    if not floats or _size(value) < _LARGE_BYTES:
        return False
    return all((use.node.op_type, use.idx) in _READERS for use in value.uses())
