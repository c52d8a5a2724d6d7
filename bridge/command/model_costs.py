"""What a model costs, as far as its file tells: parameters, multiply-adds, and memory."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from tflite_ort.base.records import record
from tflite_ort.schema import Model, Op, Operator, SubGraph, TensorView
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.file.flow import called_subgraphs
from tflite_ort.schema.values.resolve import tensor_views

# TFLite's arena begins each tensor at a multiple of this.
_ALIGNMENT = 64
# Planning the arena takes time with the square of the number of tensors: larger graphs get none.
_MOST_PLANNED = 5000

Shapes = Sequence[TensorView | None]


@record
class Costs:
    """The costs of one subgraph at the shapes that the file declares.

    Args:
        parameters: elements of constants that are floats or have a scale, of all subgraphs.
        constant_bytes: of all constants.
        multiply_adds: of convolutions, matrix products and recurrent layers; a loop's body counts
            once, and so does each branch.
        arena: bytes that TFLite's planner needs for what is computed; None of huge graphs.
        peak: bytes of the tensors that are needed at one time, at most.
        peak_at: the operator at which they are.
    """

    parameters: int
    constant_bytes: int
    multiply_adds: int
    arena: int | None
    peak: int
    peak_at: int | None


def costs(model: Model, subgraph: int = 0) -> Costs:
    """The costs of a subgraph; all are 0 for a model without subgraphs."""
    if not model.subgraphs:
        return Costs(0, 0, 0, 0, 0, None)
    views = [tensor_views(model, index) for index in range(len(model.subgraphs))]
    constants = {
        view.data.__array_interface__["data"][0]: view
        for each in views
        for view in each
        if view.data is not None and view.data.size
    }.values()
    lives = _lives(model.subgraphs[subgraph], views[subgraph])
    peak, peak_at = _peak(lives, len(model.subgraphs[subgraph].operators))
    return Costs(
        sum(math.prod(each.shape) for each in constants if _is_parameter(each)),
        sum(each.data.nbytes for each in constants if each.data is not None),
        _multiply_adds(model, views, subgraph, {}),
        _arena(lives) if len(lives) <= _MOST_PLANNED else None,
        peak,
        peak_at,
    )


def _is_parameter(view: TensorView) -> bool:
    return view.quantization is not None or np.dtype(NUMPY_DTYPE[view.type]).kind in "fcV"


# Multiply-adds -----------------------------------------------------------------------------------


def _window(inputs: Shapes, outputs: Shapes) -> int:
    """The products of a convolution: each output takes the elements of one channel's filter."""
    kernel, out = inputs[1], outputs[0]
    return 0 if kernel is None or out is None else math.prod(kernel.shape[1:]) * _count(out)


def _deep_window(inputs: Shapes, outputs: Shapes) -> int:
    """The products of CONV_3D, whose filter has its output channels last."""
    kernel, out = inputs[1], outputs[0]
    return 0 if kernel is None or out is None else math.prod(kernel.shape[:-1]) * _count(out)


def _depthwise(inputs: Shapes, outputs: Shapes) -> int:
    kernel, out = inputs[1], outputs[0]
    return 0 if kernel is None or out is None else math.prod(kernel.shape[1:3]) * _count(out)


def _transposed(inputs: Shapes, outputs: Shapes) -> int:
    """Each input element meets a filter's elements of its channel."""
    kernel, given = inputs[1], inputs[2]
    channels = 0 if given is None or not given.shape else given.shape[-1]
    if kernel is None or given is None or not channels:
        return 0
    return _count(given) * (_count(kernel) // channels)


def _matrix(inputs: Shapes, outputs: Shapes) -> int:
    """The products of FULLY_CONNECTED: each output takes a row of weights."""
    weights, out = inputs[1], outputs[0]
    if weights is None or out is None or not weights.shape:
        return 0
    return weights.shape[-1] * _count(out)


def _batched_matrix(inputs: Shapes, outputs: Shapes) -> int:
    """The products of BATCH_MATMUL: the inner size times the elements of the output."""
    left, right, out = inputs[0], inputs[1], outputs[0]
    if left is None or right is None or out is None or min(left.rank, right.rank, out.rank) < 2:
        return 0
    rows = out.shape[-2]
    matrix = math.prod(left.shape[-2:])
    return matrix // rows * _count(out) if rows else 0


def _recurrent(inputs: Shapes, outputs: Shapes) -> int:
    """The products of recurrent layers: each row of the input takes every weight once."""
    given = inputs[0]
    if given is None or not given.shape:
        return 0
    weights = (each for each in inputs[1:] if each is not None and each.is_constant)
    rows = _count(given) // max(given.shape[-1], 1)
    return rows * sum(_count(each) for each in weights if each.rank == 2)


_COUNTED: Mapping[Op, Callable[[Shapes, Shapes], int]] = {
    Op.CONV_2D: _window,
    Op.DEPTHWISE_CONV_2D: _depthwise,
    Op.TRANSPOSE_CONV: _transposed,
    Op.CONV_3D: _deep_window,
    Op.CONV_3D_TRANSPOSE: _transposed,
    Op.FULLY_CONNECTED: _matrix,
    Op.BATCH_MATMUL: _batched_matrix,
    Op.LSTM: _recurrent,
    Op.UNIDIRECTIONAL_SEQUENCE_LSTM: _recurrent,
    Op.BIDIRECTIONAL_SEQUENCE_LSTM: _recurrent,
    Op.RNN: _recurrent,
    Op.UNIDIRECTIONAL_SEQUENCE_RNN: _recurrent,
    Op.BIDIRECTIONAL_SEQUENCE_RNN: _recurrent,
    Op.SVDF: _recurrent,
}


def _multiply_adds(
    model: Model, views: Sequence[Shapes], subgraph: int, known: dict[int, int]
) -> int:
    if subgraph in known:
        return known[subgraph]
    total, known[subgraph] = 0, 0
    for each in model.subgraphs[subgraph].operators:
        code = model.operator_codes[each.opcode_index].builtin_code
        count, tensors = _COUNTED.get(code), views[subgraph]
        if count is not None:
            total += count(_padded(each, tensors), [tensors[i] for i in each.outputs] or [None])
        called = () if each.options is None else called_subgraphs(each.options)
        for index in {index for _, index in called if 0 <= index < len(views)}:
            total += _multiply_adds(model, views, index, known)
    known[subgraph] = total
    return total


def _padded(operator: Operator, tensors: Shapes) -> Shapes:
    given = [None if index is None else tensors[index] for index in operator.inputs]
    return [*given, *[None] * (3 - len(given))]


def _count(view: TensorView) -> int:
    return math.prod(max(size, 0) for size in view.shape)


# Memory ------------------------------------------------------------------------------------------


@record
class _Life:
    """A tensor's bytes, and the first and the last operator that need it."""

    size: int
    first: int
    last: int


def _lives(graph: SubGraph, views: Shapes) -> list[_Life]:
    """The lives of all inputs and results, except variables and strings."""
    end = len(graph.operators)
    spans = {index: [0, 0] for index in graph.inputs}
    for number, operator in enumerate(graph.operators):
        for index in (*operator.inputs, *operator.outputs):
            if index is not None:
                spans.setdefault(index, [number, number])[1] = number
    for index in graph.outputs:
        spans.setdefault(index, [0, end])[1] = end
    lives = []
    for index, (first, last) in spans.items():
        view = views[index]
        if view is None or view.is_constant or view.is_variable:
            continue
        dtype: np.dtype[np.generic] = np.dtype(NUMPY_DTYPE[view.type])
        if dtype.kind not in "OS" and (size := _count(view) * dtype.itemsize):
            lives.append(_Life(-(-size // _ALIGNMENT) * _ALIGNMENT, first, last))
    return lives


def _peak(lives: Sequence[_Life], operators: int) -> tuple[int, int | None]:
    """The most bytes at a time, and the operator."""
    changes = [0] * (operators + 2)
    for each in lives:
        changes[each.first] += each.size
        changes[each.last + 1] -= each.size
    most, at, now = 0, None, 0
    for number, change in enumerate(changes[:operators]):
        now += change
        if now > most:
            most, at = now, number
    return most, at


def _arena(lives: Sequence[_Life]) -> int:
    """What TFLite's planner needs: the largest tensor first, each in the first gap that is wide
    enough between tensors that are needed at the same time."""
    placed: list[tuple[int, _Life]] = []
    whole = 0
    for each in sorted(lives, key=lambda life: (-life.size, life.first)):
        start = 0
        for offset, other in placed:
            if other.last < each.first or each.last < other.first:
                continue
            if offset - start >= each.size:
                break
            start = max(start, offset + other.size)
        insort(placed, (start, each), key=lambda pair: pair[0])
        whole = max(whole, start + each.size)
    return whole
