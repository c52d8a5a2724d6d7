"""Models with a size of 0 in one dimension, or one integer of the options 0."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.attempts import Attempt
from tflite_ort.schema import Buffer, Model, SubGraph, Tensor, read_model, write_model
from tflite_ort.schema.file.tables import fields_of


def zeroed(content: bytes, name: str = "") -> Iterator[Attempt]:
    """The model with each dimension of each tensor and each option of its operators at 0, and each
    dimension of each input resized to 0."""
    model = read_model(content)
    yield from _resized(model, content, name)
    yield from _stored(model, name)
    yield from _options(model, name)


def _resized(model: Model, content: bytes, name: str) -> Iterator[Attempt]:
    graph = model.subgraphs[0]
    for position, index in enumerate(graph.inputs):
        shape = graph.tensors[index].shape
        for axis in range(len(shape)):
            shapes = {position: (*shape[:axis], 0, *shape[axis + 1 :])}
            yield Attempt(content, shapes, f"{name} resize {position} {shapes[position]}")


def _stored(model: Model, name: str) -> Iterator[Attempt]:
    for index, tensor in enumerate(model.subgraphs[0].tensors):
        for axis in range(len(tensor.shape)):
            if tensor.shape[axis]:
                shape = (*tensor.shape[:axis], 0, *tensor.shape[axis + 1 :])
                changed = _with_tensor(model, index, replace(tensor, shape=shape))
                yield Attempt(write_model(changed), name=f"{name} tensor {index} {shape}")


def _with_tensor(model: Model, index: int, tensor: Tensor) -> Model:
    graph = model.subgraphs[0]
    buffers = list(model.buffers)
    if tensor.buffer and math.prod(tensor.shape) == 0:
        buffers[tensor.buffer] = Buffer(data=np.empty(0, np.uint8))
    tensors = (*graph.tensors[:index], tensor, *graph.tensors[index + 1 :])
    return _with_graph(replace(model, buffers=tuple(buffers)), replace(graph, tensors=tensors))


def _with_graph(model: Model, graph: SubGraph) -> Model:
    return replace(model, subgraphs=(graph, *model.subgraphs[1:]))


def _options(model: Model, name: str) -> Iterator[Attempt]:
    graph = model.subgraphs[0]
    for index, operator in enumerate(graph.operators):
        if operator.options is None:
            continue
        for field in fields_of(type(operator.options)):
            value = getattr(operator.options, field)
            if type(value) is not int or not value:
                continue
            changed = replace(operator, options=replace(operator.options, **{field: 0}))
            operators = (*graph.operators[:index], changed, *graph.operators[index + 1 :])
            zero = _with_graph(model, replace(graph, operators=operators))
            yield Attempt(write_model(zero), name=f"{name} {field} 0")
