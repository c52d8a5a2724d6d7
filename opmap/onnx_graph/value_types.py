"""The element types of the values of a graph, where few of them are declared."""

from __future__ import annotations

from collections.abc import Sequence

from tflite_ort.opmap.onnx_graph import ir

_D = ir.DataType
_COMPARISONS = ("Equal", "Greater", "GreaterOrEqual", "IsInf", "IsNaN", "Less", "LessOrEqual")
_LOGIC = ("And", "Not", "Or", "Xor")
_INDICES = ("ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Shape", "Size")
# By node: the types of its outputs, the last one of all further ones.
_MADE: dict[str, Sequence[ir.DataType | None]] = {
    **dict.fromkeys((*_COMPARISONS, *_LOGIC), (_D.BOOL,)),
    **dict.fromkeys(_INDICES, (_D.INT64,)),
    "DynamicQuantizeLinear": (_D.UINT8, _D.FLOAT, _D.UINT8),
    "MatMulInteger": (_D.INT32,),
}
# By node: the input whose type the first output has; the first one where none is named.
_SAME_AS = {"DequantizeLinear": 1, "QuantizeLinear": 2, "Where": 1}
# Their further outputs are indices.
_COUNTED = frozenset({"TopK", "Unique"})
# The input that the first output of a body becomes is this much before it.
_CONTROL = {"If": 0, "Loop": 1, "Scan": 0}


Types = dict[int, ir.DataType | None]


def value_types(graph: ir.Graph) -> Types:
    """The element type of every value of a graph and of its bodies, by `id`; None: not known."""
    types: Types = {}
    for value in (*graph.inputs, *graph.initializers.values()):
        _declare(types, value, None)
    _type_nodes(graph, types)
    return types


def _declare(types: Types, value: ir.Value, made: ir.DataType | None) -> None:
    constant = value.const_value
    declared = value.dtype if constant is None else constant.dtype
    types[id(value)] = made if declared is None else declared


def _type_nodes(graph: ir.Graph, types: Types) -> None:
    for node in graph.nodes:
        given = [None if value is None else _declared_type(types, value) for value in node.inputs]
        if node.op_type in _CONTROL and not node.domain:
            made = _of_bodies(node, given, types)
        else:
            made = _output_types(node, given)
        for position, value in enumerate(node.outputs):
            _declare(types, value, made[min(position, len(made) - 1)])


def _declared_type(types: Types, value: ir.Value) -> ir.DataType | None:
    if id(value) not in types:
        _declare(types, value, None)
    return types[id(value)]


def _of_bodies(
    node: ir.Node,
    given: Sequence[ir.DataType | None],
    types: Types,
) -> Sequence[ir.DataType | None]:
    made: list[ir.DataType | None] = [None]
    for body in node.bodies:
        for value, kind in zip(body.inputs, given, strict=False):
            _declare(types, value, kind)
        for value in body.initializers.values():
            _declare(types, value, None)
        _type_nodes(body, types)
        made = [
            _declared_type(types, value) for value in body.outputs[_CONTROL[node.op_type] :]
        ] or made
    return made


def constant_values(graph: ir.Graph) -> set[int]:
    """The `id` of every value that is a constant or computed of constants alone."""
    computed = {id(value) for value in graph.inputs}
    for node in graph.all_nodes():
        computed |= {id(value) for body in node.bodies for value in body.inputs}
    found: set[int] = set()
    for node in graph.all_nodes():
        for value in node.inputs:
            if value is not None and value.const_value is not None and id(value) not in computed:
                found.add(id(value))
        given = [value for value in node.inputs if value is not None]
        if given and not node.bodies and all(id(value) in found for value in given):
            found.update(map(id, node.outputs))
    return found


def _output_types(
    node: ir.Node, given: Sequence[ir.DataType | None]
) -> Sequence[ir.DataType | None]:
    """The types of the outputs of a node without bodies."""
    attributes, op_type = node.attributes, node.op_type
    named = attributes.get("to", attributes.get("dtype", attributes.get("output_dtype")))
    if isinstance(named, int):
        return (_D(named),)
    if op_type == "ConstantOfShape":
        filled = attributes.get("value")
        return (filled.dtype if isinstance(filled, ir.Tensor) else _D.FLOAT,)
    if op_type in _MADE and not node.domain:
        return _MADE[op_type]
    place = _SAME_AS.get(op_type, 0)
    absent = _D.UINT8 if op_type == "QuantizeLinear" else _D.FLOAT
    first = given[place] if place < len(given) else absent
    return (first, _D.INT64) if op_type in _COUNTED else (first,)
