"""Whether a model's parts fit each other: indices are in range, constants as long as their shape.

Only what would lead later code out of a list or an array is refused here. The rest of what TFLite
asks of a graph (order, quantisation, signatures) depends on who uses the model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tflite_ort.schema.file.budgets import MOST_DIMENSIONS
from tflite_ort.schema.file.declare import Table, fields_of
from tflite_ort.schema.file.element_types import BITS
from tflite_ort.schema.file.enums import BuiltinOperator
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

Problem = tuple[str, str, Table]  # reason, path, the table it is in


def problems(model: Model) -> Iterator[Problem]:
    """What does not fit, in the order of the file."""
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


def _index(index: int, count: int, what: str, path: str, table: Table) -> Iterator[Problem]:
    if not 0 <= index < count:
        yield f"{what} {index}, and there are {count}", path, table


def _tensors(
    indices: Sequence[int | None], graph: SubGraph, path: str, table: Table
) -> Iterator[Problem]:
    for position, index in enumerate(indices):
        if index is not None:
            yield from _index(index, len(graph.tensors), "tensor", f"{path}[{position}]", table)


def _subgraph(model: Model, graph: SubGraph) -> Iterator[Problem]:
    for index, tensor in enumerate(graph.tensors):
        for reason, path, table in _tensor(model, graph, tensor):
            yield reason, f"tensors[{index}].{path}", table
    yield from _tensors(graph.inputs, graph, "inputs", graph)
    yield from _tensors(graph.outputs, graph, "outputs", graph)
    for index, operator in enumerate(graph.operators):
        for reason, path, table in _operator(model, graph, operator):
            yield reason, f"operators[{index}].{path}", table


def _operator(model: Model, graph: SubGraph, operator: Operator) -> Iterator[Problem]:
    count = len(model.operator_codes)
    yield from _index(operator.opcode_index, count, "operator code", "opcode_index", operator)
    yield from _tensors(operator.inputs, graph, "inputs", operator)
    yield from _tensors(operator.outputs, graph, "outputs", operator)
    yield from _tensors(operator.intermediates, graph, "intermediates", operator)
    if operator.options is not None:
        for name, index in called_subgraphs(operator.options):
            path = f"options.{name}"
            yield from _index(index, len(model.subgraphs), "subgraph", path, operator.options)


def called_subgraphs(options: Table) -> Iterator[tuple[str, int]]:
    """The subgraphs that an operator's options name, by field."""
    for name in fields_of(type(options)):
        if name == "subgraph" or name.endswith("subgraph_index"):
            yield name, getattr(options, name)
        elif name == "branch_subgraph_indices":
            yield from ((name, index) for index in getattr(options, name) or ())


def _tensor(model: Model, graph: SubGraph, tensor: Tensor) -> Iterator[Problem]:
    if tensor.buffer:  # 0 is "no data" even where there is no buffer at all
        yield from _index(tensor.buffer, len(model.buffers), "buffer", "buffer", tensor)
    if len(tensor.shape) > MOST_DIMENSIONS:
        yield f"{len(tensor.shape)} dimensions, more than {MOST_DIMENSIONS}", "shape", tensor
    elif min(tensor.shape, default=0) < 0:
        yield f"shape {list(tensor.shape)}", "shape", tensor
    elif tensor.buffer < len(model.buffers):
        yield from _constant(model, tensor)
    if tensor.quantization is not None:
        yield from _quantization(graph, tensor.quantization)


def _constant(model: Model, tensor: Tensor) -> Iterator[Problem]:
    data = model.buffers[tensor.buffer].data
    bits = BITS.get(tensor.type)
    if tensor.is_variable and data is not None and data.size:
        yield f"a variable has no data, this one {data.size} bytes", "buffer", tensor
    if not tensor.buffer or data is None or not data.size or bits is None or tensor.sparsity:
        return
    needed = (math.prod(tensor.shape) * bits + 7) // 8
    if data.size < needed:
        shape = f"{tensor.type.name} {list(tensor.shape)}"
        yield f"{data.size} bytes of data, and {shape} takes {needed}", "buffer", tensor


def _quantization(graph: SubGraph, quantization: QuantizationParameters) -> Iterator[Problem]:
    scale, zero_point = quantization.scale, quantization.zero_point
    if scale is not None and quantization.details is None:
        points = 0 if zero_point is None else zero_point.size
        if scale.size != points:
            reason = f"{scale.size} scales and {points} zero points"
            yield reason, "quantization.zero_point", quantization
    details = quantization.details
    if isinstance(details, (BlockwiseQuantization, MultiAxisQuantization)):
        path = "quantization.details"
        yield from _tensors([details.scales], graph, f"{path}.scales", details)
        if details.zero_points != -1:
            yield from _tensors([details.zero_points], graph, f"{path}.zero_points", details)


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
