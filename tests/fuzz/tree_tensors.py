"""Mutations of tensors: shapes, types, what they hold, how it is quantised or compressed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.fuzz import edges
from tests.fuzz.tree import (
    Unfit,
    constant_at,
    data_of,
    graph_number,
    pick,
    set_at,
    tensor_at,
    values_of,
    with_data,
    with_graph,
    with_tensor,
)
from tflite_ort.schema import Model, QuantizationParameters, Tensor, TensorType
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Array = npt.NDArray[Any]

COMMON = (
    *(TensorType.FLOAT32, TensorType.FLOAT32, TensorType.INT8, TensorType.INT8, TensorType.UINT8),
    *(TensorType.INT16, TensorType.INT32, TensorType.INT64, TensorType.BOOL, TensorType.FLOAT16),
)


def drawn_type(draw: random.Random) -> TensorType:
    return draw.choice(COMMON) if draw.random() < 0.7 else draw.choice(list(TensorType))


# Shapes -------------------------------------------------------------------------------------


def one_size(draw: random.Random, model: Model) -> Model:
    """One dimension of one tensor."""
    graph, number, tensor = tensor_at(draw, model)
    at = pick(draw, range(len(tensor.shape)))
    shape = set_at(tensor.shape, at, edges.dimension(draw))
    return with_tensor(model, graph, number, shape=shape)


def one_rank(draw: random.Random, model: Model) -> Model:
    """A dimension more, one less, two exchanged."""
    graph, number, tensor = tensor_at(draw, model)
    shape, kind = list(tensor.shape), draw.randrange(4)
    if kind == 0 or not shape:
        shape.insert(draw.randrange(len(shape) + 1), draw.choice((1, 1, 2, 3, 0)))
    elif kind == 1:
        del shape[draw.randrange(len(shape))]
    elif kind == 2:
        draw.shuffle(shape)
    else:
        shape = draw.choice(([], [1] * draw.choice((1, 5, 6, 8, 9)), shape * 2))
    return with_tensor(model, graph, number, shape=tuple(shape))


def many_dimensions(draw: random.Random, model: Model) -> Model:
    """Dimensions of 1 before or behind those of a subgraph's tensors, with its constants or not."""
    graph, rank = graph_number(draw, model), draw.choice((9, 32, 33, 63, 64))
    before, constants = draw.random() < 0.5, draw.random() < 0.5
    for number, tensor in enumerate(model.subgraphs[graph].tensors):
        if constants or data_of(model, tensor) is None:
            ones = (1,) * (rank - len(tensor.shape))
            shape = ones + tensor.shape if before else tensor.shape + ones
            model = with_tensor(model, graph, number, shape=shape, shape_signature=None)
    return model


def one_size_everywhere(draw: random.Random, model: Model) -> Model:
    """A size, wherever it stands in a subgraph; constants are cut or repeated."""
    graph, _, tensor = tensor_at(draw, model)
    old, new = pick(draw, tensor.shape), draw.choice((1, 2, 3, 5, 6, 9, 0))
    for number, each in enumerate(model.subgraphs[graph].tensors):
        if old not in each.shape:
            continue
        shape = tuple(new if size == old else size for size in each.shape)
        values = values_of(model, each)
        if values is None:
            model = with_tensor(model, graph, number, shape=shape)
        else:
            data = np.resize(values, int(np.prod(shape))).tobytes()
            model = with_data(model, graph, number, data, shape=shape)
    return model


def dynamic(draw: random.Random, model: Model) -> Model:
    """Dimensions of a tensor that are said to be open, or its rank."""
    graph, number, tensor = tensor_at(draw, model)
    if draw.random() < 0.2:
        return with_tensor(model, graph, number, has_rank=not tensor.has_rank)
    signature = tuple(-1 if draw.random() < 0.5 else size for size in tensor.shape)
    if draw.random() < 0.15:
        signature = (*signature, -1)
    return with_tensor(model, graph, number, shape_signature=signature)


def variable(draw: random.Random, model: Model) -> Model:
    """A tensor that becomes a variable, or is none any more."""
    graph, number, tensor = tensor_at(draw, model)
    return with_tensor(model, graph, number, is_variable=not tensor.is_variable)


# Types --------------------------------------------------------------------------------------


def one_type(draw: random.Random, model: Model) -> Model:
    """The type of one tensor."""
    graph, number, _ = tensor_at(draw, model)
    return with_tensor(model, graph, number, type=drawn_type(draw))


def one_type_everywhere(draw: random.Random, model: Model) -> Model:
    """A type, wherever it stands; constants are converted."""
    _, _, drawn = tensor_at(draw, model)
    old, new = drawn.type, drawn_type(draw)
    quantised = draw.choice((None, True, False))
    for graph, subgraph in enumerate(model.subgraphs):
        for number, tensor in enumerate(subgraph.tensors):
            if tensor.type == old:
                model = _retyped(model, graph, number, new)
                if quantised is not None:
                    parameters = drawn_quantisation(draw, new) if quantised else None
                    model = with_tensor(model, graph, number, quantization=parameters)
    return model


def _retyped(model: Model, graph: int, number: int, type_: TensorType) -> Model:
    tensor = model.subgraphs[graph].tensors[number]
    values, dtype = values_of(model, tensor), NUMPY_DTYPE[type_]
    if values is None or dtype.kind == "O":
        return with_tensor(model, graph, number, type=type_)
    with np.errstate(all="ignore"):
        real = values.real if values.dtype.kind == "c" else values
        data = real.astype(np.float64).astype(dtype).tobytes()
    return with_data(model, graph, number, data, type=type_)


# Quantisation -------------------------------------------------------------------------------


def drawn_quantisation(draw: random.Random, type_: TensorType) -> QuantizationParameters:
    """One scale and a zero point that the type can have."""
    zero = {TensorType.UINT8: 128, TensorType.INT8: draw.choice((0, -5, -128, 12))}.get(type_, 0)
    scale = np.array([draw.choice((0.0039, 0.01, 0.03, 0.1, 1.0))], np.float32)
    return QuantizationParameters(scale=scale, zero_point=np.array([zero], np.int64))


def quantisation(draw: random.Random, model: Model) -> Model:
    """Scale and zero point of a tensor: other ones, none, one per channel."""
    graph, number, tensor = tensor_at(draw, model)
    old = tensor.quantization
    if old is None or old.scale is None:
        new: QuantizationParameters | None = drawn_quantisation(draw, tensor.type)
    elif draw.random() < 0.1:
        new = None
    else:
        new = draw.choice(_QUANTISATIONS)(draw, tensor, old)
    return with_tensor(model, graph, number, quantization=new)


def _other_scale(
    draw: random.Random, tensor: Tensor, old: QuantizationParameters
) -> QuantizationParameters:
    assert old.scale is not None
    scale = np.array(old.scale)
    at = draw.randrange(scale.size)
    with np.errstate(all="ignore"):
        if draw.random() < 0.6:
            scale[at] = scale[at] * draw.choice((0.5, 2, 1.1, 0.97, 3, 1 / 3, 1e-3, 1e3, 17.3))
        else:
            scale[at] = draw.choice(edges.SCALES)
    return replace(old, scale=scale)


def _other_zero_point(
    draw: random.Random, tensor: Tensor, old: QuantizationParameters
) -> QuantizationParameters:
    points = edges.ZERO_POINTS if draw.random() < 0.9 else edges.FAR_ZERO_POINTS
    size = 1 if old.scale is None else old.scale.size
    return replace(old, zero_point=np.full(size, draw.choice(points), np.int64))


def _per_channel(
    draw: random.Random, tensor: Tensor, old: QuantizationParameters
) -> QuantizationParameters:
    assert old.scale is not None
    axis = pick(draw, range(len(tensor.shape)))
    size = tensor.shape[axis] if draw.random() < 0.8 else draw.choice((0, 1, 2, 3, 7))
    if not 0 <= size < 4096:
        raise Unfit
    steps = np.array([draw.choice((1, 0.5, 2, 1.3)) for _ in range(size)], np.float32)
    zero = old.zero_point[:1] if old.zero_point is not None else np.zeros(1, np.int64)
    zeros = np.resize(zero, size if draw.random() < 0.9 else 1)
    axis = axis if draw.random() < 0.9 else draw.choice((-1, 4, 2**31 - 1))
    first = old.scale[0] if len(old.scale) else 1.0  # an earlier change may have left none
    return replace(old, scale=first * steps, zero_point=zeros, quantized_dimension=axis)


def _other_parts(
    draw: random.Random, tensor: Tensor, old: QuantizationParameters
) -> QuantizationParameters:
    part = draw.choice(("zero_point", "scale", "min", "max"))
    return replace(old, **{part: None})  # type: ignore[arg-type]


_QUANTISATIONS: tuple[
    Callable[[random.Random, Tensor, QuantizationParameters], QuantizationParameters], ...
] = (_other_scale, _other_scale, _other_scale, _other_zero_point, _per_channel, _other_parts)


# Constants ----------------------------------------------------------------------------------


def one_value(draw: random.Random, model: Model) -> Model:
    """Elements of a constant at the edges of their type."""
    graph, number, tensor = constant_at(draw, model)
    values = values_of(model, tensor)
    if values is None:
        raise Unfit
    for _ in range(draw.choice((1, 1, 1, 2, 8))):
        values[draw.randrange(values.size)] = _edge(draw, values.dtype)
    return with_data(model, graph, number, values.tobytes())


def all_values(draw: random.Random, model: Model) -> Model:
    """All elements of a constant: the same one, larger, noise."""
    graph, number, tensor = constant_at(draw, model)
    values = values_of(model, tensor)
    if values is None:
        raise Unfit
    kind = draw.randrange(5)
    with np.errstate(all="ignore"):
        if kind == 0:
            values[:] = _edge(draw, values.dtype)
        elif kind == 1:
            values = np.frombuffer(draw.randbytes(values.nbytes), values.dtype)
        elif kind == 2 and values.dtype.kind == "f":
            values = values * values.dtype.type(draw.choice((-1, 1e-3, 100, 1e4, 1e10, 1e30)))
        elif kind == 3:
            values = values[np.array(draw.sample(range(values.size), values.size))]
        else:
            values[:] = [_edge(draw, values.dtype) for _ in range(values.size)]
    return with_data(model, graph, number, values.tobytes())


def _edge(draw: random.Random, dtype: np.dtype[Any]) -> Any:
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        value = draw.choice(edges.SMALL if draw.random() < 0.5 else edges.LONG)
        fits = info.min <= value <= info.max
        return value if fits else draw.choice((int(info.min), int(info.max)))
    if dtype.kind == "b":
        return bool(draw.getrandbits(1))
    with np.errstate(all="ignore"):
        return np.array(draw.choice(edges.FLOATS)).astype(dtype)


def data_size(draw: random.Random, model: Model) -> Model:
    """Constant data that are too short, too long or missing."""
    graph, number, tensor = constant_at(draw, model)
    data = data_of(model, tensor)
    assert data is not None
    size = draw.choice((0, 1, data.size - 1, data.size + 1, data.size // 2, data.size * 2))
    return with_data(model, graph, number, np.resize(data, size).tobytes())


def constant_to_input(draw: random.Random, model: Model) -> Model:
    """A constant that is computed or fed instead."""
    graph, number, _ = constant_at(draw, model)
    model = with_tensor(model, graph, number, buffer=0)
    if draw.random() < 0.8:
        model = with_graph(model, graph, inputs=(*model.subgraphs[graph].inputs, number))
    return model


def to_constant(draw: random.Random, model: Model) -> Model:
    """A tensor that gets constant data; an input is none any more, or still is one."""
    graph = graph_number(draw, model)
    subgraph = model.subgraphs[graph]
    number = pick(draw, subgraph.inputs or range(len(subgraph.tensors)))
    if not 0 <= number < len(subgraph.tensors):
        raise Unfit
    tensor = subgraph.tensors[number]
    size = int(np.prod([max(0, min(each, 1000)) for each in tensor.shape], dtype=np.int64))
    dtype = NUMPY_DTYPE[tensor.type]
    if size > 1 << 16 or dtype.kind == "O":
        raise Unfit
    values = np.array([_edge(draw, dtype) for _ in range(min(size, 64))], dtype)
    model = with_data(model, graph, number, np.resize(values, size).tobytes())
    if draw.random() < 0.8:
        kept = tuple(each for each in subgraph.inputs if each != number)
        model = with_graph(model, graph, inputs=kept)
    return model
