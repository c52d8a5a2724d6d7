"""Edits of a model's tree: a new model that differs in one table."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import Buffer, Model, Operator, SubGraph, Tensor
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, PACKED_BITS

Array = npt.NDArray[Any]
T = TypeVar("T")


class Unfit(Exception):
    """A mutation has nothing to change in this model."""


def pick(draw: random.Random, items: Sequence[T]) -> T:
    """One of `items`; Unfit if there are none."""
    if not items:
        raise Unfit
    return items[draw.randrange(len(items))]


def set_at(items: Sequence[T], at: int, item: T) -> tuple[T, ...]:
    """`items` with another one at `at`."""
    return (*items[:at], item, *items[at + 1 :])


def graph_number(draw: random.Random, model: Model) -> int:
    """A subgraph; mostly the main one."""
    if not model.subgraphs:
        raise Unfit
    return 0 if draw.random() < 0.6 else draw.randrange(len(model.subgraphs))


def with_graph(model: Model, number: int, **changes: Any) -> Model:
    graph = replace(model.subgraphs[number], **changes)
    return replace(model, subgraphs=set_at(model.subgraphs, number, graph))


def with_tensor(model: Model, graph: int, number: int, **changes: Any) -> Model:
    tensors = model.subgraphs[graph].tensors
    changed = set_at(tensors, number, replace(tensors[number], **changes))
    return with_graph(model, graph, tensors=changed)


def with_operator(model: Model, graph: int, number: int, **changes: Any) -> Model:
    operators = model.subgraphs[graph].operators
    changed = set_at(operators, number, replace(operators[number], **changes))
    return with_graph(model, graph, operators=changed)


def with_data(model: Model, graph: int, number: int, data: bytes, **changes: Any) -> Model:
    """The tensor with constant data of its own."""
    buffers = (*model.buffers, Buffer(data=np.frombuffer(data, np.uint8)))
    model = replace(model, buffers=buffers)
    return with_tensor(model, graph, number, buffer=len(buffers) - 1, **changes)


def data_of(model: Model, tensor: Tensor) -> Array | None:
    """The constant bytes of a tensor, if it has any."""
    if not 0 < tensor.buffer < len(model.buffers):
        return None
    data = model.buffers[tensor.buffer].data
    return data if data is not None and data.size else None


def values_of(model: Model, tensor: Tensor) -> Array | None:
    """A copy of the elements of a constant of whole bytes, flat; None if it is none."""
    data = data_of(model, tensor)
    dtype = NUMPY_DTYPE.get(tensor.type)
    if data is None or dtype is None or dtype.kind == "O" or tensor.type in PACKED_BITS:
        return None
    whole = data.size - data.size % dtype.itemsize
    return np.frombuffer(data[:whole].tobytes(), dtype).copy() if whole else None


def constants(model: Model, graph: int) -> list[int]:
    """The tensors of a subgraph that have data."""
    tensors = model.subgraphs[graph].tensors
    return [i for i, tensor in enumerate(tensors) if data_of(model, tensor) is not None]


def operator_at(draw: random.Random, model: Model) -> tuple[int, int, Operator]:
    """(subgraph, number, operator)."""
    graph = graph_number(draw, model)
    operators = model.subgraphs[graph].operators
    number = pick(draw, range(len(operators)))
    return graph, number, operators[number]


def tensor_at(draw: random.Random, model: Model) -> tuple[int, int, Tensor]:
    """(subgraph, number, tensor)."""
    graph = graph_number(draw, model)
    tensors = model.subgraphs[graph].tensors
    number = pick(draw, range(len(tensors)))
    return graph, number, tensors[number]


def constant_at(draw: random.Random, model: Model) -> tuple[int, int, Tensor]:
    """(subgraph, number, tensor) of a constant."""
    graph = graph_number(draw, model)
    number = pick(draw, constants(model, graph))
    return graph, number, model.subgraphs[graph].tensors[number]


def used(graph: SubGraph) -> set[int]:
    """The tensors that a subgraph's operators make."""
    return {index for op in graph.operators for index in op.outputs}
