"""A subgraph for given input shapes: shapes carried through it, what is constant computed once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels import Kernel
from tflite_ort.schema import (
    KernelError,
    Model,
    ModelError,
    Op,
    OperatorView,
    SubGraph,
    Tensor,
    TensorView,
)
from tflite_ort.schema.errors import MALFORMED_OPERATOR
from tflite_ort.schema.resolve import operator_view, tensor_views
from tflite_ort.schema.shapes import output_shapes
from tflite_ort.versioning.registry import Entry, Registry

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

# The value of these depends on the input's shape alone.
_OF_SHAPE = frozenset({Op.SHAPE, Op.RANK})
# A constant larger than this is computed only if it is not much larger than what it comes from.
_FOLDED_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Specialized:
    """A subgraph whose every tensor has its shape.

    Args:
        tensors: as views; one whose shape depends on data is `dynamic`.
        operators: those left to run, in execution order.
        folded: those whose results are constants now.
    """

    tensors: Sequence[TensorView]
    operators: Sequence[OperatorView[Any]]
    folded: Sequence[OperatorView[Any]]
    inputs: Sequence[int]
    outputs: Sequence[int]


def specialize(
    model: Model, subgraph: int, shapes: Mapping[int, Shape], kernels: Registry[Kernel]
) -> Specialized:
    """Subgraph `subgraph` with its inputs shaped as `shapes` says, else as the file says.

    Raises:
        ModelError: an operator cannot take the shapes that reach it; names the operator.
    """
    graph = model.subgraphs[subgraph]
    tensors = tensor_views(model, subgraph)
    for index, shape in shapes.items():
        tensors[index] = replace(tensors[index], shape=shape)
    live: list[OperatorView[Any]] = []
    folded: list[OperatorView[Any]] = []
    _check_flow(graph, tensors)
    for index in range(len(graph.operators)):
        op = _reshaped(operator_view(model, subgraph, index, tensors), graph.tensors)
        constants = _fold(op, kernels)
        results = op.outputs if constants is None else _with_data(op.outputs, constants)
        for tensor in results:
            tensors[tensor.index] = tensor
        op = replace(op, outputs=tuple(results))
        (live if constants is None else folded).append(op)
    return Specialized(tensors, live, folded, graph.inputs, graph.outputs)


def _check_flow(graph: SubGraph, tensors: Sequence[TensorView]) -> None:
    """Every tensor that is read is computed, given or constant, and none is computed twice."""
    made: set[int] = set()
    for i, operator in enumerate(graph.operators):
        for index in operator.outputs:
            early = index in made or index in graph.inputs or index in operator.inputs
            if early or tensors[index].is_constant:
                raise ModelError(f"operator {i}: tensor {index} has a value before it is computed")
            made.add(index)
    read = [(i, t) for i, operator in enumerate(graph.operators) for t in operator.inputs]
    read += [(len(graph.operators), t) for t in graph.outputs]
    for i, source in read:
        if source is None or source in made or source in graph.inputs:
            continue
        if not tensors[source].is_constant and not tensors[source].is_variable:
            raise ModelError(f"operator {i}: input tensor {source} lacks data")


def _reshaped(op: OperatorView[Any], declared: Sequence[Tensor]) -> OperatorView[Any]:
    """`op` with the shapes of its outputs that follow from its inputs."""
    if any(tensor.dynamic for tensor in op.present_inputs()):
        return replace(op, outputs=tuple(replace(out, dynamic=True) for out in op.outputs))
    try:
        shapes = output_shapes(op)
    except ModelError:
        raise
    except MALFORMED_OPERATOR as error:
        raise ModelError(f"{op.label}: {error}") from error
    if shapes is None and op.op is Op.CUSTOM and _as_declared(op, declared):
        return op
    if shapes is None:
        return replace(op, outputs=tuple(replace(out, dynamic=True) for out in op.outputs))
    if len(shapes) != len(op.outputs):
        raise ModelError(f"{op.label} has {len(op.outputs)} outputs, expected {len(shapes)}")
    outputs = (
        out if out.shape == shape else replace(out, shape=shape)
        for out, shape in zip(op.outputs, shapes, strict=True)
    )
    return replace(op, outputs=tuple(outputs))


def _as_declared(op: OperatorView[Any], declared: Sequence[Tensor]) -> bool:
    """The file says what shapes `op` makes, and its inputs have the shapes of the file."""
    return all(
        tensor.shape == declared[tensor.index].shape
        and -1 not in (declared[tensor.index].shape_signature or ())
        and (tensor.rank > 0 or declared[tensor.index].has_rank)
        for tensor in (*op.present_inputs(), *op.outputs)
    )


def _with_data(outputs: Sequence[TensorView], arrays: Sequence[Array]) -> list[TensorView]:
    views = []
    for tensor, array in zip(outputs, arrays, strict=True):
        array.flags.writeable = False
        views.append(replace(tensor, data=array, shape=array.shape, dynamic=False))
    return views


def _fold(op: OperatorView[Any], kernels: Registry[Kernel]) -> Sequence[Array] | None:
    """The results of `op` if they are the same at every invoke and not too large to keep."""
    entry = kernels.of(op)
    inputs = op.present_inputs()
    if entry is None or entry.state is not None or not inputs:
        return None
    if op.op in _OF_SHAPE:
        if inputs[0].dynamic:
            return None
        shaped = np.broadcast_to(np.zeros((), inputs[0].dtype), inputs[0].shape)
        return run_kernel(entry.inputs.bind(op), entry, [shaped])
    if not all(tensor.is_constant for tensor in inputs) or any(t.is_variable for t in op.outputs):
        return None
    before = sum(tensor.data.nbytes for tensor in inputs if tensor.data is not None)
    after = sum(math.prod(out.shape) * out.dtype.itemsize for out in op.outputs)
    if after > max(_FOLDED_BYTES, 4 * before):
        return None
    arrays = [None if tensor is None else tensor.data for tensor in op.inputs]
    return run_kernel(entry.inputs.bind(op), entry, arrays)


def run_kernel(
    op: OperatorView[Any],
    entry: Entry[Kernel],
    inputs: Sequence[Array | None],
    state: Any = None,
) -> Sequence[Array]:
    """The results of a numpy kernel: the outputs, then the new values of variable inputs.

    Raises:
        KernelError: names the operator; the kernel refused, or made another dtype than declared.
    """
    try:
        results = entry.function(op, inputs, state)
    except (KernelError, *MALFORMED_OPERATOR) as error:
        raise KernelError(f"{op.label} failed to invoke: {error}") from error
    made = (*op.outputs, *op.variables())
    if len(results) != len(made):
        raise KernelError(
            f"{op.label}: the kernel made {len(results)} results, expected {len(made)}"
        )
    for tensor, result in zip(made, results, strict=True):
        if result.dtype != tensor.dtype:
            raise KernelError(
                f"{op.label}: the kernel made {result.dtype}, the model says {tensor.dtype}"
            )
    return results
