"""A signature as the primary subgraph of a model, with the names that the signature gives."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from tflite_ort.base.files import write_bytes
from tflite_ort.base.suggestions import suggestion
from tflite_ort.schema import (
    Buffer,
    MalformedModel,
    Model,
    Operator,
    SignatureDef,
    SubGraph,
    Table,
    Tensor,
    TensorError,
    with_own_data,
    write_model,
)
from tflite_ort.schema.file.model_metadata import (
    NAME,
    SubGraphMetadata,
    read_metadata,
    write_metadata,
)
from tflite_ort.schema.file.operators import options_of
from tflite_ort.schema.file.tables import fields_of
from tflite_ort.schema.file.unions import OPTIONS

if TYPE_CHECKING:
    from collections.abc import Iterator


def signature_model(model: Model, key: str) -> Model:
    """`model` with the subgraph of a signature as its primary one.

    Its inputs and outputs have the names that the signature gives them. All other subgraphs stay,
    and call each other as before.

    Raises:
        TensorError: there is no such signature.
    """
    definition = signature_of(model, key)
    index = definition.subgraph_index
    place = {0: index, index: 0}
    graphs = [_renumbered(model, graph, place) for graph in model.subgraphs]
    graphs[0], graphs[index] = graphs[index], graphs[0]
    graphs[0] = _named(graphs[0], definition)
    signatures = tuple(
        replace(each, subgraph_index=place.get(each.subgraph_index, each.subgraph_index))
        for each in model.signature_defs
    )
    made = replace(model, subgraphs=tuple(graphs), signature_defs=signatures)
    return made if index == 0 else _with_metadata(made, index)


def signature_of(model: Model, key: str) -> SignatureDef:
    """The signature of this key.

    Raises:
        TensorError: there is none; the message says which there are.
    """
    found = {each.signature_key: each for each in model.signature_defs}
    if key not in found:
        raise TensorError(absent(key, list(found)))
    return found[key]


def absent(key: str, keys: list[str]) -> str:
    """What is said of a signature that a model does not have."""
    there = ", ".join(map(repr, keys)) or "none"
    return f"the model has no signature {key!r}; its signatures: {there}{suggestion(key, keys)}"


@contextmanager
def signature_file(model: Model, key: str, name: str) -> Iterator[Path]:
    """`signature_model` as a file of this name, in a folder that is removed afterwards."""
    with TemporaryDirectory(prefix="tflite-ort-") as folder:
        path = Path(folder) / name
        write_bytes(path, write_model(with_own_data(signature_model(model, key))))
        yield path


# Numbers of subgraphs ----------------------------------------------------------------------------


def subgraph_fields(options: Table | None) -> list[str]:
    """The fields of an operator's options that hold numbers of subgraphs."""
    return [] if options is None else _names_subgraphs(type(options))


def _names_subgraphs(table: type[Table]) -> list[str]:
    return [name for name in fields_of(table) if "subgraph" in name]


def calling(operator: Operator, place: Mapping[int, int]) -> Operator:
    """`operator` with the new numbers of the subgraphs that it calls."""

    def moved(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(moved, value))
        return value if value is None else place.get(value, value)

    options: Any = operator.options
    numbers = {name: moved(getattr(options, name)) for name in subgraph_fields(options)}
    return replace(operator, options=replace(options, **numbers)) if options else operator


def _renumbered(model: Model, graph: SubGraph, place: Mapping[int, int]) -> SubGraph:
    operators = []
    for each in graph.operators:
        code = model.operator_codes[each.opcode_index].builtin_code
        table = OPTIONS.get(code)
        if table is not None and _names_subgraphs(table):  # without options it calls subgraph 0
            each = replace(each, options=options_of(code, each.options))
        operators.append(calling(each, place))
    return replace(graph, operators=tuple(operators))


# Names -------------------------------------------------------------------------------------------


def _named(graph: SubGraph, definition: SignatureDef) -> SubGraph:
    """`graph` with the names of the signature; another tensor of such a name gets its number."""
    entries = (*definition.outputs, *definition.inputs)  # an input that is an output is an input
    names = {entry.tensor_index: entry.name for entry in entries}
    taken = set(names.values())

    def name_of(index: int, tensor: Tensor) -> str:
        if index in names:
            return names[index]
        return f"{tensor.name}#{index}" if tensor.name in taken else tensor.name

    tensors = (replace(each, name=name_of(i, each)) for i, each in enumerate(graph.tensors))
    return replace(graph, tensors=tuple(tensors))


def _with_metadata(model: Model, index: int) -> Model:
    """`model` with what its metadata say of subgraphs, in the new order."""
    others = tuple(entry for entry in model.metadata if entry.name != NAME)
    try:
        table = read_metadata(model)
    except MalformedModel:
        table = None
    if table is None:
        return replace(model, metadata=others)
    said = list(table.subgraph_metadata)
    said += [SubGraphMetadata()] * (index + 1 - len(said))
    said[0], said[index] = said[index], said[0]
    moved = replace(table, subgraph_metadata=tuple(said))
    buffer = Buffer(data=np.frombuffer(write_metadata(moved), np.uint8))
    entry = next(each for each in model.metadata if each.name == NAME)
    entry = replace(entry, buffer=len(model.buffers))
    return replace(model, metadata=(*others, entry), buffers=(*model.buffers, buffer))
