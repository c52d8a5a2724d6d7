"""Files of signed weights, which fail where their products would not be exact.

On x86 processors without VNNI, ONNX Runtime adds pairs of uint8 by int8 products in 16 bits, which
saturate. A file for a processor with VNNI has a product of the largest codes in it, which ONNX
Runtime computes once, when it loads the file. Where that is not exact, an index of a Gather is out
of bounds. So ONNX Runtime warns of this node at load, and fails with its name at the first run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# Rows, products in a sum, and columns: so many take the kernels of layers.
_SHAPES = (4, 64), (64, 32)
_CODES = np.full(1, 255, np.uint8), np.full(1, 127, np.int8)
_SUM = 64 * 255 * 127
# ONNX Runtime names the node that fails.
_NAME = "this_processor_saturates_products_so_export_with_weights_uint8"
# Constants of these are sizes.
_OF_SIZES = frozenset({"Resize"})


def require_exact_products(graph: ir.Graph) -> None:
    """Have a graph with int8 weights fail where products with these are not exact."""
    constants = graph.initializers.values()
    place = _smallest_float(graph)
    if place is None or not any(x.dtype is ir.DataType.INT8 and x.shape for x in constants):
        return
    added = _Added(graph)
    shapes = [added.constant("shape", np.array(shape, np.int64)) for shape in _SHAPES]
    factors = [
        added.node("ConstantOfShape", shape, value=ir.Tensor(code))
        for shape, code in zip(shapes, _CODES, strict=True)
    ]
    least = added.node("ReduceMin", added.node("MatMulInteger", *factors), keepdims=0)
    index = added.node("Sub", added.constant("sum", np.array(_SUM, np.int32)), least)
    node, position, elements = place
    if elements.ndim:
        rows = added.constant("rows", np.arange(len(elements), dtype=np.int32))
        index = added.node("Add", index, rows)
    whole = added.constant("elements", elements.reshape(elements.shape or 1))
    inputs = list(node.inputs)
    inputs[position] = added.node("Gather", whole, index)
    node.inputs = tuple(inputs)
    graph.nodes[:0] = added.nodes
    graph.drop_unread()


class _Added:
    """Nodes and constants that a graph is given."""

    def __init__(self, graph: ir.Graph) -> None:
        self._graph, self._names = graph, Names(graph)
        self.nodes = list[ir.Node]()

    def node(self, op_type: str, *inputs: ir.Value, **attributes: ir.Attribute) -> ir.Value:
        """What a new node makes."""
        made = ir.Value(self._names.free(f"{_NAME}/{len(self.nodes)}"))
        name = self._names.free(f"{_NAME}/{op_type}{len(self.nodes)}")
        self.nodes.append(ir.Node(op_type, inputs, [made], attributes=attributes, name=name))
        return made

    def constant(self, name: str, array: npt.NDArray[Any]) -> ir.Value:
        """A new constant."""
        return self._graph.add_initializer(self._names.free(f"{_NAME}/{name}"), array)


def _smallest_float(graph: ir.Graph) -> tuple[ir.Node, int, npt.NDArray[Any]] | None:
    """Where a node reads the smallest constant of floats, and its elements."""
    found = [
        (value.const_value.nbytes, number, position)
        for number, node in enumerate(graph.nodes)
        for position, value in enumerate(node.inputs)
        if node.op_type not in _OF_SIZES and value is not None and value.const_value is not None
        if value.dtype is ir.DataType.FLOAT and value.const_value.nbytes
    ]
    if not found:
        return None
    _, number, position = min(found)
    value = graph.nodes[number].inputs[position]
    assert value is not None
    assert value.const_value is not None
    return graph.nodes[number], position, value.const_value.array
