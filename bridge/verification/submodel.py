"""Some operators of a subgraph as a model of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tflite_ort.model.signature_model import calling, subgraph_fields
from tflite_ort.schema import (
    BlockwiseQuantization,
    Buffer,
    MalformedModel,
    Model,
    MultiAxisQuantization,
    Operator,
    SignatureDef,
    SubGraph,
    Tensor,
)
from tflite_ort.schema.file.model_metadata import (
    NAME,
    ModelMetadata,
    SubGraphMetadata,
    TensorMetadata,
    read_metadata,
    write_metadata,
)

_WITH_SCALE_TENSORS = (BlockwiseQuantization, MultiAxisQuantization)


def submodel(
    model: Model,
    subgraph: int,
    operators: Sequence[int],
    inputs: Sequence[int],
    outputs: Sequence[int],
) -> Model:
    """`operators` of a subgraph with only what they need: tensors, called subgraphs, buffers.

    Signatures and metadata stay if they name all inputs and outputs of the new model.

    Args:
        operators: indices, in execution order.
        inputs, outputs: tensors that are the new model's; the other tensors keep their order.
    """
    graph = model.subgraphs[subgraph]
    kept = [graph.operators[index] for index in operators]
    called = _called(model, kept)
    place = {old: new for new, old in enumerate([subgraph, *called])}
    tensors = _tensors(graph, kept, inputs, outputs)
    where = {old: new for new, old in enumerate(tensors)}
    first = replace(
        graph,
        tensors=tuple(_renumbered_scales(graph.tensors[index], where) for index in tensors),
        inputs=tuple(where[index] for index in inputs),
        outputs=tuple(where[index] for index in outputs),
        operators=tuple(_renumbered(each, where, place) for each in kept),
    )
    bodies = [
        replace(
            model.subgraphs[index],
            operators=tuple(calling(each, place) for each in model.subgraphs[index].operators),
        )
        for index in called
    ]
    made = replace(
        model,
        subgraphs=(first, *bodies),
        signature_defs=_signatures(model, subgraph, where, first, place),
    )
    return _compact(_with_metadata(made, graph, inputs, outputs, subgraph))


def called_by(operator: Operator) -> list[int]:
    """The subgraphs that the options of `operator` name."""
    found: list[int] = []
    for name in subgraph_fields(operator.options):
        value = getattr(operator.options, name)
        found += value if isinstance(value, tuple) else [] if value is None else [value]
    return [index for index in found if index >= 0]


def _called(model: Model, operators: Iterable[Operator]) -> list[int]:
    """The subgraphs that `operators` call, and those that these call, in the file's order."""
    found: set[int] = set()
    waiting = [index for operator in operators for index in called_by(operator)]
    while waiting:
        index = waiting.pop()
        if index not in found:
            found.add(index)
            waiting += [i for each in model.subgraphs[index].operators for i in called_by(each)]
    return sorted(found)


def _tensors(
    graph: SubGraph, operators: Sequence[Operator], inputs: Sequence[int], outputs: Sequence[int]
) -> list[int]:
    used = {*inputs, *outputs}
    for operator in operators:
        used.update(index for index in operator.inputs if index is not None)
        used.update(operator.outputs, operator.intermediates)
    for index in list(used):
        used.update(index for index in _scale_tensors(graph.tensors[index]).values())
    return sorted(used)


def _scale_tensors(tensor: Tensor) -> dict[str, int]:
    """The tensors that hold scales or zero points, by field of the quantization."""
    details = None if tensor.quantization is None else tensor.quantization.details
    if not isinstance(details, _WITH_SCALE_TENSORS):
        return {}
    named = {name: getattr(details, name) for name in ("scales", "zero_points")}
    return {name: index for name, index in named.items() if index >= 0}


def _renumbered_scales(tensor: Tensor, where: Mapping[int, int]) -> Tensor:
    scales = {name: where[index] for name, index in _scale_tensors(tensor).items()}
    if not scales or tensor.quantization is None or tensor.quantization.details is None:
        return tensor
    unchanged: Any = tensor.quantization.details
    details = replace(unchanged, **scales)
    return replace(tensor, quantization=replace(tensor.quantization, details=details))


def _renumbered(operator: Operator, where: Mapping[int, int], place: Mapping[int, int]) -> Operator:
    return replace(
        calling(operator, place),
        inputs=tuple(None if index is None else where[index] for index in operator.inputs),
        outputs=tuple(where[index] for index in operator.outputs),
        intermediates=tuple(where[index] for index in operator.intermediates),
    )


def _signatures(
    model: Model,
    subgraph: int,
    where: Mapping[int, int],
    graph: SubGraph,
    place: Mapping[int, int],
) -> tuple[SignatureDef, ...]:
    """The signatures that name all inputs and outputs that are left; also of called subgraphs."""
    kept = []
    for each in model.signature_defs:
        if each.subgraph_index != subgraph:
            if each.subgraph_index in place:
                kept.append(replace(each, subgraph_index=place[each.subgraph_index]))
            continue
        inputs, outputs = (
            tuple(
                replace(entry, tensor_index=where[entry.tensor_index])
                for entry in entries
                if where.get(entry.tensor_index) in present
            )
            for entries, present in ((each.inputs, graph.inputs), (each.outputs, graph.outputs))
        )
        if {*graph.inputs, *graph.outputs} <= {entry.tensor_index for entry in (*inputs, *outputs)}:
            kept.append(replace(each, inputs=inputs, outputs=outputs, subgraph_index=0))
    return tuple(kept)


def _with_metadata(
    made: Model, graph: SubGraph, inputs: Sequence[int], outputs: Sequence[int], subgraph: int
) -> Model:
    """`made` with the TFLite metadata of the inputs and outputs that it has."""
    others = tuple(entry for entry in made.metadata if entry.name != NAME)
    try:
        table = read_metadata(made)
    except MalformedModel:
        return replace(made, metadata=others)
    if table is None:
        return made
    cut = _cut(table, graph, inputs, outputs) if subgraph == 0 else None
    if cut is None:
        return replace(made, metadata=others)
    entry = next(entry for entry in made.metadata if entry.name == NAME)
    buffer = Buffer(data=np.frombuffer(write_metadata(cut), np.uint8))
    moved = replace(entry, buffer=len(made.buffers))
    return replace(made, metadata=(*others, moved), buffers=(*made.buffers, buffer))


def _cut(
    table: ModelMetadata, graph: SubGraph, inputs: Sequence[int], outputs: Sequence[int]
) -> ModelMetadata | None:
    """The metadata of the tensors that are left; None if they describe none of them."""
    if not table.subgraph_metadata:
        return table
    said = table.subgraph_metadata[0]
    left = _entries(inputs, graph.inputs, said.input_tensor_metadata)
    right = _entries(outputs, graph.outputs, said.output_tensor_metadata)
    if not (left or right):
        return None
    whole = tuple(inputs) == graph.inputs and tuple(outputs) == graph.outputs
    subgraph = SubGraphMetadata(
        name=said.name,
        description=said.description,
        input_tensor_metadata=left,
        output_tensor_metadata=right,
        associated_files=said.associated_files,
    )
    return table if whole else replace(table, subgraph_metadata=(subgraph,))


def _entries(
    indices: Sequence[int], before: Sequence[int], entries: Sequence[TensorMetadata]
) -> tuple[TensorMetadata, ...]:
    """What `entries` say of the tensors `indices`, if of any; they are about those `before`."""
    known = dict(zip(before, entries, strict=False))
    if not any(index in known for index in indices):
        return ()
    return tuple(known.get(index, TensorMetadata()) for index in indices)


def _compact(model: Model) -> Model:
    """`model` with only the buffers and operator codes that it uses; the first buffer is empty."""
    used = {tensor.buffer for graph in model.subgraphs for tensor in graph.tensors}
    used |= {entry.buffer for entry in model.metadata}
    order = [0, *sorted(used - {0})]
    buffers = {old: new for new, old in enumerate(order)}
    codes = {op.opcode_index for graph in model.subgraphs for op in graph.operators}
    code = {old: new for new, old in enumerate(sorted(codes))}
    return replace(
        model,
        subgraphs=tuple(_with_numbers(graph, buffers, code) for graph in model.subgraphs),
        buffers=tuple(model.buffers[index] if index else Buffer() for index in order),
        operator_codes=tuple(model.operator_codes[index] for index in code),
        metadata=tuple(replace(each, buffer=buffers[each.buffer]) for each in model.metadata),
        metadata_buffer=(),
    )


def _with_numbers(
    graph: SubGraph, buffers: Mapping[int, int], codes: Mapping[int, int]
) -> SubGraph:
    """`graph` with new numbers for its buffers and operator codes."""
    return replace(
        graph,
        tensors=tuple(replace(each, buffer=buffers[each.buffer]) for each in graph.tensors),
        operators=tuple(
            replace(each, opcode_index=codes[each.opcode_index]) for each in graph.operators
        ),
    )
