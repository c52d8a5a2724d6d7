"""A file in words: its operators, its types; what its operators make."""

from __future__ import annotations

from itertools import groupby

from tests.fuzz import repairs
from tests.fuzz.repairs import name_of
from tflite_ort.schema import BridgeError, Model, SubGraph, Tensor, read_model, write_model


def _graph(content: bytes) -> tuple[Model, SubGraph] | None:
    """The model and its main graph, where the file can be read."""
    try:
        model = read_model(content)
    except BridgeError:
        return None
    return (model, model.subgraphs[0]) if model.subgraphs else None


def operators(content: bytes) -> str:
    """The operators of a file, the first four of the main graph's."""
    read = _graph(content)
    if read is None:
        return "unreadable"
    model, graph = read
    names = [name_of(model, op) for op in graph.operators]
    more = f" +{len(names) - 4}" if len(names) > 4 else ""
    return " ".join(names[:4]) + more


def types(content: bytes) -> str:
    """The types of what the first operators read and write; q: with a scale, s: sparse."""
    read = _graph(content)
    if read is None:
        return ""
    _, graph = read
    shown = []
    for op in graph.operators[:3]:
        sides = []
        for side in (op.inputs, op.outputs):
            inside = [i for i in side if i is not None and 0 <= i < len(graph.tensors)]
            names = [_type(graph.tensors[i]) for i in inside]
            runs = [(name, len(list(run))) for name, run in groupby(names)]
            sides.append(",".join(f"{name}*{n}" if n > 1 else name for name, n in runs))
        shown.append("->".join(sides))
    return " ".join(shown)


def _type(tensor: Tensor) -> str:
    scaled = tensor.quantization is not None and tensor.quantization.scale is not None
    return tensor.type.name + "q" * scaled + "s" * (tensor.sparsity is not None)


def makers(content: bytes) -> list[tuple[str, tuple[int, ...]]]:
    """The operators of the main graph, with what each makes."""
    read = _graph(content)
    if read is None:
        return []
    model, graph = read
    return [(name_of(model, op), op.outputs) for op in graph.operators]


def plain(content: bytes) -> bytes | None:
    """The file without compressed constants and without constants that are inputs of called
    subgraphs; None if there are none that can be taken out."""
    try:
        model = read_model(content)
    except BridgeError:
        return None
    made = repairs.free_inputs(repairs.dense(model))
    return None if made is model else write_model(made)


def steps(content: bytes) -> int:
    """The most steps that a recurrent layer of the main graph is given, as far as it is declared:
    the larger of batch and time, as either may come first."""
    read = _graph(content)
    if read is None:
        return 0
    model, graph = read
    given = [
        graph.tensors[op.inputs[0]].shape
        for op in graph.operators
        if "SEQUENCE" in name_of(model, op) and op.inputs and op.inputs[0] is not None
    ]
    return max((max(shape[:2], default=0) for shape in given), default=0)
