"""Nodes of constants alone, computed before a graph is written."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.known_values import Known, part_of_shape
from tflite_ort.opmap.onnx_graph.writing.needless_nodes import is_drawing
from tflite_ort.providers.graph_session import graph_session
from tflite_ort.schema import DelegateError

# Results up to so many bytes are held; larger ones, if the constants of which they are made are so
# large.
_FEW = 4096
# They say what is quantized.
_KEPT = frozenset({"QuantizeLinear", "DequantizeLinear"})


def fold_constants(model: ir.Model, known: Known) -> None:
    """Hold what nodes make of constants alone, and the sizes of values whose shape is known."""
    graph = model.graph
    _fold_sizes(graph, known)
    nodes = _of_constants(graph, known)
    made = {id(value): value for node in nodes for value in node.outputs}
    folded = set(map(id, nodes))
    rest = [node for node in graph.nodes if id(node) not in folded]
    read = ir.nested(rest)
    wanted = {id(v): v for node in read for v in node.inputs if v and id(v) in made}
    if not wanted:
        return
    given = {id(v): v for node in nodes for v in node.inputs if v and id(v) not in made}
    alone = ir.Graph([], wanted.values(), nodes, initializers=given.values(), name="constants")
    part = ir.Model(alone, opset_imports=model.opset_imports, ir_version=model.ir_version)
    try:
        arrays = graph_session(part, num_threads=1, optimized=False).call([])
    except DelegateError:  # what fails, such as an index out of bounds, fails in the file too
        return
    ir.release(nodes)
    graph.nodes = rest
    for value, array in zip(wanted.values(), arrays, strict=True):
        hold(graph, value, array)
    graph.drop_unread()


def hold(graph: ir.Graph, value: ir.Value, array: npt.NDArray[Any]) -> None:
    """Let a value that no node computes any more be a constant."""
    tensor = ir.Tensor(np.asarray(array, order="C"))
    value.const_value, value.dtype, value.shape = tensor, tensor.dtype, tensor.shape
    graph.initializers[value.name] = value


def _fold_sizes(graph: ir.Graph, known: Known) -> None:
    """Hold what Shape gives, where these sizes are known."""
    ends, found = set(map(id, graph.outputs)), list[ir.Node]()
    for node in graph.nodes:
        if node.op_type != "Shape" or node.domain or id(node.outputs[0]) in ends:
            continue
        shape = known.shape(node.inputs[0])
        told = [None] if shape is None else part_of_shape(shape, node)
        if all(isinstance(size, int) for size in told):
            found.append(node)
            hold(graph, node.outputs[0], np.array(told, np.int64))
    ir.release(found)
    gone = set(map(id, found))
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]


def _of_constants(graph: ir.Graph, known: Known) -> list[ir.Node]:
    """The nodes whose results are held."""
    reads, ends = graph.read_counts(), {id(value) for value in (*graph.inputs, *graph.outputs)}
    constants = {id(v) for v in graph.initializers.values() if v.const_value is not None} - ends
    found = list[ir.Node]()
    for node in graph.nodes:
        given = [value for value in node.inputs if value is not None]
        if node.domain or node.bodies or node.op_type in _KEPT or is_drawing(node):
            continue
        if any(id(value) not in constants for value in given):
            continue
        if any(id(value) in ends for value in node.outputs):
            continue
        large = sum(known.nbytes(value) or 0 for value in given if reads[id(value)] == 1)
        made = [known.nbytes(value) for value in node.outputs]
        if all(size is not None and size <= max(_FEW, large) for size in made):
            found.append(node)
            constants.update(map(id, node.outputs))
    return found
