"""Files of signed weights, which load only where their products are exact.

On x86 processors without VNNI, ONNX Runtime adds pairs of uint8 by int8 products in 16 bits, which
saturate. A file for a processor with VNNI has a product of the largest codes in it, which ONNX
Runtime computes once, when it loads the file. Where that is not exact, an index of a Gather is out
of bounds, and the file does not load.
"""

from __future__ import annotations

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

# Rows, products in a sum, and columns: so many take the kernels of layers.
_SHAPE = (4, 64), (64, 32)
_CODES = np.full(1, 255, np.uint8), np.full(1, 127, np.int8)
_SUM = 64 * 255 * 127
# ONNX Runtime names the node that fails.
_NAME = "this_processor_saturates_products_so_export_with_weights_uint8"
# Constants of these are sizes.
_OF_SIZES = frozenset({"Resize", "Upsample"})


def require_exact_products(graph: ir.Graph) -> None:
    """Have a graph with int8 weights fail where products with these are not exact."""
    constants = graph.initializers.values()
    floats = [
        (value.const_value.nbytes, number, place)
        for number, node in enumerate(graph.nodes)
        for place, value in enumerate(node.inputs)
        if value is not None and value.const_value is not None
        if value.dtype is ir.DataType.FLOAT and node.op_type not in _OF_SIZES
    ]
    if not floats or not any(each.dtype is ir.DataType.INT8 and each.shape for each in constants):
        return
    _, number, place = min(floats)
    node, names, nodes = graph.nodes[number], Names(graph), list[ir.Node]()

    def op(op_type: str, *inputs: ir.Value, **attributes: ir.Attribute) -> ir.Value:
        name = names.free(f"{_NAME}/{op_type}")
        made = ir.Value(names.free(name))
        nodes.append(ir.Node(op_type, inputs, [made], attributes=attributes, name=name))
        return made

    def constant(name: str, array: np.typing.ArrayLike) -> ir.Value:
        return graph.add_initializer(names.free(f"{_NAME}/{name}"), np.asarray(array))

    factors = [
        op("ConstantOfShape", constant(f"shape{side}", np.int64(_SHAPE[side])), value=ir.Tensor(code))
        for side, code in enumerate(_CODES)
    ]
    least = op("ReduceMin", op("MatMulInteger", *factors), keepdims=0)
    lost = op("Sub", constant("sum", np.int32(_SUM)), least)
    value = node.inputs[place]
    assert value is not None
    assert value.const_value is not None
    elements = value.const_value.array
    rows = constant("elements", elements.reshape(elements.shape or 1))
    index = lost if not elements.ndim else op("Add", lost, constant("rows", np.arange(len(elements), dtype=np.int32)))
    inputs = list(node.inputs)
    inputs[place] = op("Gather", rows, index)
    node.inputs = tuple(inputs)
    graph.nodes[:0] = nodes
    graph.drop_unread()
