"""A file in words: its operators, its types; and the file with its sparse constants made dense."""

from __future__ import annotations

from itertools import groupby

from tests.fuzz.tree import with_data
from tflite_ort.schema import BridgeError, Model, SubGraph, Tensor, read_model, write_model
from tflite_ort.schema.file.element_types import NUMPY_DTYPE, PACKED_BITS
from tflite_ort.schema.values.sparsity import densify


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
    names = [_name(model, op.opcode_index) for op in graph.operators]
    more = f" +{len(names) - 4}" if len(names) > 4 else ""
    return " ".join(names[:4]) + more


def _name(model: Model, index: int) -> str:
    if index >= len(model.operator_codes):
        return "?"
    code = model.operator_codes[index]
    return code.custom_code or code.builtin_code.name


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
    return [(_name(model, op.opcode_index), op.outputs) for op in graph.operators]


def dense(content: bytes) -> bytes | None:
    """The file without compressed constants; None if there are none that can be made dense."""
    read = _graph(content)
    if read is None:
        return None
    model, _ = read
    found = False
    for number, graph in enumerate(model.subgraphs):
        for index, tensor in enumerate(graph.tensors):
            data = _dense_data(model, tensor)
            if data is not None:
                model = with_data(model, number, index, data, sparsity=None)
                found = True
    return write_model(model) if found else None


def _dense_data(model: Model, tensor: Tensor) -> bytes | None:
    if tensor.sparsity is None or tensor.type in PACKED_BITS:
        return None
    stored = model.buffers[tensor.buffer].data
    dtype = NUMPY_DTYPE[tensor.type]
    if stored is None or dtype.kind == "O" or stored.size % dtype.itemsize:
        return None
    try:
        values = densify(stored.view(dtype), tensor.shape, tensor.sparsity)
    except BridgeError:
        return None
    return values.tobytes()
