"""Whether a model's parts fit each other, so that all later code may rely on it.

Indices are in range, constants as long as their shape, quantization and sparsity fit the tensor,
and subgraphs call each other to an end. As in TFLite, a model loads whose operators cannot run in
their order (`order_problems`) or cannot take what reaches them: that is found when it is allocated.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence, Set

from tflite_ort.schema.file.budgets import MOST_DIMENSIONS
from tflite_ort.schema.file.element_types import BITS, TensorType
from tflite_ort.schema.file.enums import BuiltinOperator
from tflite_ort.schema.file.errors import MalformedModel
from tflite_ort.schema.file.flow import Problem, call_problems, called_subgraphs
from tflite_ort.schema.file.model import (
    BlockwiseQuantization,
    Model,
    MultiAxisQuantization,
    Operator,
    QuantizationParameters,
    SignatureDef,
    SubGraph,
    Tensor,
)
from tflite_ort.schema.file.sparse_levels import sparse_levels
from tflite_ort.schema.file.strings import string_ends
from tflite_ort.schema.file.tables import Table

_MOST_BYTES = 2**63 - 1  # of an array in numpy


def check(model: Model) -> None:
    """Refuses a model that was not read from a file.

    Raises:
        MalformedModel: names what does not fit, and where.
    """
    for reason, path, _ in problems(model):
        raise MalformedModel(reason, path)


def problems(model: Model) -> Iterator[Problem]:
    """What does not fit, the parts by themselves before what they are together."""
    yield from _misfits(model)
    yield from call_problems(model)  # which relies on there having been no problem


def _misfits(model: Model) -> Iterator[Problem]:
    for index, code in enumerate(model.operator_codes):
        if code.builtin_code == BuiltinOperator.CUSTOM and code.custom_code is None:
            yield "custom operator without a name", f"operator_codes[{index}].custom_code", code
    for index, graph in enumerate(model.subgraphs):
        for reason, path, table in _subgraph(model, graph):
            yield reason, f"subgraphs[{index}].{path}", table
    for index, metadata in enumerate(model.metadata):
        yield from _index(
            metadata.buffer, len(model.buffers), "buffer", f"metadata[{index}].buffer", metadata
        )
    for index, signature in enumerate(model.signature_defs):
        for reason, path, table in _signature(model, signature):
            yield reason, f"signature_defs[{index}].{path}", table
    for index, buffer in enumerate(model.external_buffers):
        count = len(model.external_buffer_groups)
        path = f"external_buffers[{index}].group"
        yield from _index(buffer.group, count, "group", path, buffer)


def _index(index: int, count: int, what: str, path: str, table: Table) -> Iterator[Problem]:
    if not 0 <= index < count:
        yield f"{what} {index}, and there are {count}", path, table


def _tensors(
    indices: Sequence[int | None], graph: SubGraph, path: str, table: Table
) -> Iterator[Problem]:
    count = len(graph.tensors)
    for position, index in enumerate(indices):
        if index is not None and not 0 <= index < count:
            yield from _index(index, count, "tensor", f"{path}[{position}]", table)


def _subgraph(model: Model, graph: SubGraph) -> Iterator[Problem]:
    external = {buffer.id for buffer in model.external_buffers}
    for index, tensor in enumerate(graph.tensors):
        for reason, path, table in _tensor(model, graph, tensor, external):
            yield reason, f"tensors[{index}].{path}", table
    known: frozenset[int | None] = frozenset(range(len(graph.tensors))) | {None}
    if not (known.issuperset(graph.inputs) and known.issuperset(graph.outputs)):
        yield from _tensors(graph.inputs, graph, "inputs", graph)
        yield from _tensors(graph.outputs, graph, "outputs", graph)
    for index, operator in enumerate(graph.operators):
        for reason, path, table in _operator(model, graph, operator, known):
            yield reason, f"operators[{index}].{path}", table


def _operator(
    model: Model, graph: SubGraph, operator: Operator, known: frozenset[int | None]
) -> Iterator[Problem]:
    count = len(model.operator_codes)
    if not 0 <= operator.opcode_index < count:
        yield from _index(operator.opcode_index, count, "operator code", "opcode_index", operator)
    for name in ("inputs", "outputs", "intermediates"):
        indices = getattr(operator, name)
        if not known.issuperset(indices):
            yield from _tensors(indices, graph, name, operator)
    if operator.options is not None:
        for name, index in called_subgraphs(operator.options):
            path = f"options.{name}"
            yield from _index(index, len(model.subgraphs), "subgraph", path, operator.options)


def _tensor(model: Model, graph: SubGraph, tensor: Tensor, external: Set[int]) -> Iterator[Problem]:
    if tensor.buffer:  # 0 is "no data" even where there is no buffer at all
        yield from _index(tensor.buffer, len(model.buffers), "buffer", "buffer", tensor)
    if tensor.external_buffer and tensor.external_buffer not in external:
        yield f"no buffer {tensor.external_buffer}", "external_buffer", tensor
    if len(tensor.shape) > MOST_DIMENSIONS:
        yield f"{len(tensor.shape)} dimensions, more than {MOST_DIMENSIONS}", "shape", tensor
    elif min(tensor.shape, default=0) < 0:
        yield f"shape {list(tensor.shape)}", "shape", tensor
    elif 0 in tensor.shape and _strided(tensor.shape) > _MOST_BYTES:
        yield f"a tensor of shape {list(tensor.shape)} is too large", "shape", tensor
    elif tensor.buffer < len(model.buffers):
        yield from _constant(model, tensor)
    if tensor.quantization is not None:
        yield from _quantization(graph, tensor, tensor.quantization)


def _strided(shape: Sequence[int]) -> int:
    """What numpy limits even of an empty array: bytes of the widest type, with 1 for sizes of 0."""
    return 16 * math.prod(max(size, 1) for size in shape)


def _constant(model: Model, tensor: Tensor) -> Iterator[Problem]:
    data = model.buffers[tensor.buffer].data
    bits = BITS.get(tensor.type)
    if tensor.is_variable and data is not None and data.size:
        yield f"a variable has no data, this one {data.size} bytes", "buffer", tensor
    if not tensor.buffer or data is None or not data.size:
        return
    try:
        if tensor.type is TensorType.STRING:
            string_ends(data, tensor.shape)
        elif tensor.sparsity and bits is not None:
            sparse_levels(tensor.shape, tensor.sparsity, data.size * 8 // bits)
    except MalformedModel as error:
        yield error.reason, "sparsity" if tensor.sparsity else "buffer", tensor
    if bits is None or tensor.sparsity:
        return
    needed = (math.prod(tensor.shape) * bits + 7) // 8
    if data.size < needed:
        shape = f"{tensor.type.name} {list(tensor.shape)}"
        yield f"{data.size} bytes of data, and {shape} takes {needed}", "buffer", tensor


def _quantization(
    graph: SubGraph, tensor: Tensor, quantization: QuantizationParameters
) -> Iterator[Problem]:
    details = quantization.details
    if details is None:
        for name, reason in _affine(tensor, quantization):
            yield reason, f"quantization.{name}", quantization
    if isinstance(details, (BlockwiseQuantization, MultiAxisQuantization)):
        path = "quantization.details"
        yield from _tensors([details.scales], graph, f"{path}.scales", details)
        if details.zero_points != -1:
            yield from _tensors([details.zero_points], graph, f"{path}.zero_points", details)


def _affine(tensor: Tensor, quantization: QuantizationParameters) -> Iterator[tuple[str, str]]:
    """(field, reason) of one scale and zero point, or one per element of an axis."""
    scale, points = quantization.scale, quantization.zero_point
    if scale is None:
        return
    count = 0 if points is None else points.size
    if scale.size != count:
        yield "zero_point", f"{scale.size} scales and {count} zero points"
    axis, rank = quantization.quantized_dimension, len(tensor.shape)
    if scale.size <= 1 or rank <= 1:
        return
    if not 0 <= axis < rank:
        yield "quantized_dimension", f"dimension {axis} of a tensor of rank {rank}"
    elif tensor.buffer and scale.size != tensor.shape[axis]:
        yield "scale", f"{scale.size} scales for {tensor.shape[axis]} channels"


def _signature(model: Model, signature: SignatureDef) -> Iterator[Problem]:
    count = len(model.subgraphs)
    index = signature.subgraph_index
    if index >= count:
        yield from _index(index, count, "subgraph", "subgraph_index", signature)
        return
    tensors = len(model.subgraphs[index].tensors)
    for name in ("inputs", "outputs"):
        for position, entry in enumerate(getattr(signature, name)):
            path = f"{name}[{position}].tensor_index"
            yield from _index(entry.tensor_index, tensors, "tensor", path, entry)
