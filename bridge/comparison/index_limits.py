"""How large the integers of an input may be where they choose rows of a table, or count them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tflite_ort.schema import BuiltinOperator as Op
from tflite_ort.schema import GatherOptions, Model, OperatorView, TensorView
from tflite_ort.schema.file.element_types import PACKED_BITS
from tflite_ort.schema.values.inlining import inlined
from tflite_ort.schema.values.resolve import operator_view, tensor_views
from tflite_ort.schema.values.semantics import quantized_range

View = OperatorView[Any]

# Operators whose result holds the values of their first input.
_SAME_VALUES = {
    *(Op.CAST, Op.RESHAPE, Op.EXPAND_DIMS, Op.SQUEEZE, Op.TRANSPOSE, Op.SLICE, Op.STRIDED_SLICE),
    *(Op.UNPACK, Op.TILE, Op.BROADCAST_TO, Op.REVERSE_V2),
}


def index_limits(model: Model, subgraph: int = 0) -> dict[int, int]:
    """By tensor index, the number that the elements of an input stay below: the rows of the
    smallest table that they choose from, or one more where they say how many of the elements are
    wanted; of inputs of 2 or 4 bits what these hold. Other inputs are absent.

    Values are followed through operators that move or cast them, such as RESHAPE.

    Raises:
        BudgetExceeded: calls hold more operators than their budget.
    """
    flat = inlined(model, subgraph)
    views = tensor_views(flat, subgraph)
    limits = {
        index: quantized_range(tensor.type)[1] + 1
        for index, tensor in enumerate(flat.subgraphs[subgraph].tensors)
        if tensor.type in PACKED_BITS
    }
    for number in reversed(range(len(flat.subgraphs[subgraph].operators))):
        for index, limit in _limited(operator_view(flat, subgraph, number, views), limits):
            limits[index] = min(limit, limits.get(index, limit))
    return {i: limits[i] for i in flat.subgraphs[subgraph].inputs if i in limits}


def _limited(op: View, limits: dict[int, int]) -> list[tuple[int, int]]:
    """Tensor indices that `op` reads, with their limits; `limits` are those of what it makes."""
    if op.op in _SAME_VALUES and op.inputs and (first := op.inputs[0]) is not None:
        return [(first.index, limits[out.index]) for out in op.outputs if out.index in limits]
    table = _TABLES.get(op.op)
    tensors = op.inputs[:2]
    if table is None or len(tensors) < 2 or tensors[0] is None or tensors[1] is None:
        return []
    rows, indices = table(op, tensors[0], tensors[1])
    return [(indices.index, rows)] if rows > 0 else []


def _gathered(op: View, data: TensorView, indices: TensorView) -> tuple[int, TensorView]:
    axis = op.options.axis if isinstance(op.options, GatherOptions) else 0
    return (data.shape[axis] if -len(data.shape) <= axis < len(data.shape) else 0), indices


def _looked_up(op: View, indices: TensorView, table: TensorView) -> tuple[int, TensorView]:
    return (table.shape[0] if table.shape else 0), indices


def _gathered_nd(op: View, data: TensorView, indices: TensorView) -> tuple[int, TensorView]:
    depth = indices.shape[-1] if indices.shape else 0
    return min(data.shape[:depth], default=0), indices


def _sorted(op: View, data: TensorView, count: TensorView) -> tuple[int, TensorView]:
    return (data.shape[-1] + 1 if data.shape else 0), count


# The size of the table and the tensor that chooses from it.
_TABLES: dict[Op, Callable[[View, TensorView, TensorView], tuple[int, TensorView]]] = {
    Op.GATHER: _gathered,
    Op.GATHER_ND: _gathered_nd,
    Op.EMBEDDING_LOOKUP: _looked_up,
    Op.TOPK_V2: _sorted,
}
