"""Sums of what two layers make, with fewer nodes.

Each layer adds a constant of its own to its rows. Before a sum of two layers one constant is
enough, that of both; and a Gemm without a constant adds the other layer itself.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.constants import Constants
from tflite_ort.opmap.onnx_graph.marks import SUM_OF_EQUALS
from tflite_ort.opmap.rules.rule import NodesAround

Vector = npt.NDArray[np.float32]


def join_sums(graph: ir.Graph, around: NodesAround) -> None:
    """Change `graph` as above."""
    sums = [node for node in graph.nodes if SUM_OF_EQUALS in node.outputs[0].marks]
    if sums:
        reads = graph.read_counts()
        joining = _Joining(graph, around.constants, reads)
        for node in sums:
            joining.join(node)
        graph.nodes = joining.nodes()


class _Joining:
    """Changes the sums of a graph.

    Args:
        reads: how often each value is read, by its id.
    """

    def __init__(self, graph: ir.Graph, constants: Constants, reads: Counter[int]) -> None:
        self._graph, self._constants, self._reads = graph, constants, reads
        self._own = {id(node) for node in graph.nodes}
        self._changed: dict[int, ir.Node | None] = {}

    def nodes(self) -> list[ir.Node]:
        """The nodes of the graph, in their order."""
        changed = [self._changed.get(id(node), node) for node in self._graph.nodes]
        return [node for node in changed if node is not None]

    def join(self, node: ir.Node) -> None:
        """Change a sum of two layers, if it can be done with fewer nodes."""
        if node.op_type != "Add" or id(node) in self._changed:
            return
        for first, second in (node.inputs, node.inputs[::-1]):
            layer, other = self._layer(first), self._layer(second)
            if layer is None or second is None:
                continue
            if layer.op_type == "Gemm" and len(layer.inputs) == 2:
                self._adds(layer, second, node)
                return
            own, its = _constant(layer), None if other is None else _constant(other)
            if other is None or other.op_type != "Add" or own is None or its is None:
                continue
            if own.shape != its.shape:
                continue
            both = self._constants.add(own + its, "sum")
            if layer.op_type == "Gemm":
                self._adds(layer, self._replaced(other, both), node)
                return
            if layer.op_type == "Add":
                rest = next(each for each in other.inputs if each is not None and _is_plain(each))
                operands = self._replaced(layer, both), rest
                self._changed[id(other)] = None
                self._changed[id(node)] = _like(node, operands, node.outputs[0])
                return

    def _layer(self, value: ir.Value | None) -> ir.Node | None:
        """What makes a value that nothing else reads, a Gemm or a sum that is as it was."""
        node = None if value is None else value.producer()
        if node is None or value is None or self._reads[id(value)] != 1:
            return None
        if id(node) not in self._own or id(node) in self._changed:
            return None
        plain = node.op_type == "Add" or (node.op_type == "Gemm" and _is_plain_gemm(node))
        return node if plain else None

    def _adds(self, gemm: ir.Node, other: ir.Value, node: ir.Node) -> None:
        """Let `gemm` add `other`, in the place of the sum `node`."""
        self._changed[id(gemm)] = None
        self._changed[id(node)] = _like(gemm, (*gemm.inputs[:2], other), node.outputs[0])

    def _replaced(self, layer: ir.Node, constant: ir.Value) -> ir.Value:
        """The result of a sum with another constant."""
        rest = [each for each in layer.inputs if each is not None and _is_plain(each)]
        result = layer.outputs[0]
        self._changed[id(layer)] = _like(layer, (*rest, constant), result)
        return result


def _like(node: ir.Node, inputs: tuple[ir.Value | None, ...], output: ir.Value) -> ir.Node:
    return ir.Node(
        node.op_type,
        inputs,
        [output],
        domain=node.domain,
        attributes=node.attributes,
        name=node.name,
    )


def _is_plain(value: ir.Value) -> bool:
    return value.const_value is None


def _is_plain_gemm(node: ir.Node) -> bool:
    return node.attributes.keys() <= {"transB"} and all(each is not None for each in node.inputs)


def _constant(node: ir.Node) -> Vector | None:
    """The row of floats that a Gemm or a sum of one computed value adds; None where there is no
    such row."""
    given = node.inputs[2:] if node.op_type == "Gemm" else node.inputs
    found = [each.const_value for each in given if each is not None and not _is_plain(each)]
    if len(found) != 1 or found[0] is None or len(found[0].shape) != 1:
        return None
    array = found[0].array
    return array if array.dtype == np.float32 else None
