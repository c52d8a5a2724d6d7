"""The element types and shapes of the values of a graph, as onnx infers them."""

from __future__ import annotations

import onnx

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.serialization import Place, serialized
from tflite_ort.opmap.onnx_graph.writing.known_values import Known, Typed

# Larger constants are no sizes: onnx gets none of their data.
_SIZES = 1 << 12
_ELSEWHERE = Place("weights", 0)
# What onnx calls a size that it does not know.
_UNKNOWN = "unk__"


def inferred(model: ir.Model) -> Known:
    """What is known of the values of a graph, but not of those of bodies."""
    graph = model.graph
    large = {
        name: _ELSEWHERE
        for name, value in graph.initializers.items()
        if value.const_value is not None and value.const_value.nbytes > _SIZES
    }
    content = serialized(model, external=large)
    # It takes long where tables are computed, and tells nothing but sizes.
    computed = any(node.op_type == "Shape" for node in graph.nodes)
    made = onnx.shape_inference.infer_shapes(content, data_prop=computed)
    types = {each.name: each.type.tensor_type for each in made.graph.value_info}
    values = (value for node in graph.nodes for value in node.outputs)
    given = {id(v): Typed(v.dtype, v.shape) for v in graph.inputs if v.dtype is not None}
    return Known(
        given
        | {
            id(value): _typed(types[value.name])
            for value in values
            if value.name in types and types[value.name].elem_type
        }
    )


def say_shapes(graph: ir.Graph, known: Known) -> None:
    """Let a file say the element type and shape of each value, for tools that infer none."""
    ends = set(map(id, graph.outputs))
    for node in graph.nodes:
        for value in node.outputs:
            if id(value) not in ends:
                value.dtype, value.shape = known.type(value), known.shape(value)


def _typed(type_: onnx.TypeProto.Tensor) -> Typed:
    shape = tuple(map(_size, type_.shape.dim)) if type_.HasField("shape") else None
    return Typed(ir.DataType(type_.elem_type), shape)


def _size(dimension: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dimension.HasField("dim_value"):
        return int(dimension.dim_value)
    name = str(dimension.dim_param)
    return name if name and not name.startswith(_UNKNOWN) else None
