"""Reshapes to constants, and lists of sizes that are taken from the inputs of a graph at once.

Converters compute shapes step by step: the sizes of a tensor, one of them, its product with another
one, and a list of that. What such a list holds is known by `SizeLists`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.size_lists import IS_LIST, Size, SizeLists, product
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_D = ir.DataType


def tell_shapes(graph: ir.Graph, known: Known, assumed: str = "") -> None:
    """Let no node compute a size that a constant, or a Shape of an input, tells.

    Args:
        assumed: the name of a size that inputs may have without being of one size.
    """
    if not any(node.op_type == "Shape" for node in graph.nodes):
        return
    several = sum(assumed in (value.shape or ()) for value in graph.inputs) > 1
    lists = SizeLists(graph, known, {assumed} if several else frozenset())
    for node in graph.nodes:
        if node.op_type == "Reshape" and not node.domain:
            _reshape_to_constant(graph, node, lists)
    graph.nodes = ir.leading_to(graph.outputs, graph.nodes)
    _Taken(graph, known, lists).run()
    graph.drop_unread()


def _reshape_to_constant(graph: ir.Graph, node: ir.Node, lists: SizeLists) -> None:
    """A constant target: sizes as they are, 0 for those of the input, and one -1."""
    target = node.inputs[1]
    if target is None or target.const_value is not None:
        return
    made, before = lists.of(target), lists.shape(node.inputs[0])
    if made is None or before is None or product(made) is None or product(made) != product(before):
        return
    numbers = list[int]()
    for place, size in enumerate(made):
        if size is None or size[0] < 1:
            return
        same = place < len(before) and size == before[place]
        numbers.append(size[0] if not size[1] else 0 if same else -1)
    if numbers.count(-1) > 1 or (-1 in numbers and 0 in numbers):
        return  # where a size is 0, none can be inferred
    name = Names(graph).free(f"{node.name or node.outputs[0].name}/shape")
    node.inputs = (node.inputs[0], graph.add_initializer(name, np.array(numbers, np.int64)))
    node.attributes = {}


class _Taken:
    """Lists of sizes as constants, and as Shapes of the inputs of a graph."""

    def __init__(self, graph: ir.Graph, known: Known, lists: SizeLists) -> None:
        self._graph, self._known, self._lists = graph, known, lists
        self._names, self._nodes = Names(graph), list[ir.Node]()
        self._made: dict[tuple[object, ...], ir.Value] = {}
        # By name of a size: the first input that has it, and its axis.
        self._places: dict[str, tuple[ir.Value, int]] = {}
        for value in graph.inputs:
            for axis, size in enumerate(value.shape or ()):
                if isinstance(size, str):
                    self._places.setdefault(size, (value, axis))

    def run(self) -> None:
        """Replace the lists that nodes read, if that takes fewer nodes."""
        graph, before = self._graph, self._graph.nodes
        replaced = list[tuple[ir.Node, tuple[ir.Value | None, ...]]]()
        for node in graph.all_nodes():
            if node.op_type in IS_LIST and node.op_type != "Reshape" and self._is_list(node):
                continue
            given = tuple(map(self._replaced, node.inputs))
            if any(one is not other for one, other in zip(given, node.inputs, strict=True)):
                replaced.append((node, node.inputs))
                node.inputs = given
        nodes = ir.leading_to(graph.outputs, [*self._nodes, *before])
        if len(nodes) < len(before):
            graph.nodes = nodes
            return
        for node, inputs in replaced:
            node.inputs = inputs

    def _is_list(self, node: ir.Node) -> bool:
        """Whether a node makes a list of sizes, which is replaced where it is read."""
        sizes = self._lists.of(node.outputs[0])
        return sizes is not None and all(map(self._is_told, sizes))

    def _replaced(self, value: ir.Value | None) -> ir.Value | None:
        """What stands for a list; else the value itself."""
        if value is None or value.const_value is not None or value.producer() is None:
            return value
        sizes, kind, shape = (
            self._lists.of(value),
            self._known.type(value),
            self._known.shape(value),
        )
        if (
            sizes is None
            or kind is None
            or shape is None
            or any(value is v for v in self._graph.outputs)
        ):
            return value
        if kind not in (_D.INT32, _D.INT64) or not sizes or not all(map(self._is_told, sizes)):
            return value
        return self._list([size for size in sizes if size is not None], kind, len(shape))

    def _is_told(self, size: Size | None) -> bool:
        return size is not None and all(name in self._places for name in size[1])

    def _list(self, sizes: Sequence[Size], kind: ir.DataType, rank: int) -> ir.Value:
        """A list, or a scalar, of a type."""
        if not any(names for _, names in sizes):
            return self._constant([number for number, _ in sizes], kind, rank)
        parts, place = list[ir.Value](), 0
        while place < len(sizes):
            part, count = self._part(sizes[place:])
            parts.append(part)
            place += count
        made = parts[0] if len(parts) == 1 else self._node("Concat", parts, axis=0)
        if rank == 0:
            made = self._node("Squeeze", [made])
        return made if kind is _D.INT64 else self._node("Cast", [made], to=int(kind))

    def _part(self, sizes: Sequence[Size]) -> tuple[ir.Value, int]:
        """The first of these sizes in one value, and how many they are."""
        numbers = list[int]()
        for number, names in sizes:
            if names:
                break
            numbers.append(number)
        if numbers:
            return self._constant(numbers, _D.INT64, 1), len(numbers)
        (factor, names), count = sizes[0], 1
        if factor != 1 or len(names) != 1:
            return self._product(factor, names), 1
        value, axis = self._places[names[0]]
        shape = self._lists.shape(value) or ()
        while count < len(sizes) and shape[axis : axis + count + 1] == [*sizes[: count + 1]]:
            count += 1
        return self._shape(value, axis, axis + count), count

    def _shape(self, value: ir.Value, first: int, end: int) -> ir.Value:
        if (first, end) == (0, len(value.shape or ())):
            return self._node("Shape", [value])
        return self._node("Shape", [value], start=first, end=end)

    def _product(self, factor: int, names: Sequence[str]) -> ir.Value:
        made, *rest = (self._list([(1, (name,))], _D.INT64, 1) for name in names)
        for each in rest:
            made = self._node("Mul", [made, each])
        return (
            made
            if factor == 1
            else self._node("Mul", [made, self._constant([factor], _D.INT64, 1)])
        )

    def _constant(self, numbers: Sequence[int], kind: ir.DataType, rank: int) -> ir.Value:
        key = "constant", *numbers, kind, rank
        if key not in self._made:
            array = np.array(numbers, kind.numpy())
            name = self._names.free("sizes")
            whole = array.reshape(()) if rank == 0 else array
            self._made[key] = self._graph.add_initializer(name, whole)
        return self._made[key]

    def _node(self, op_type: str, given: Sequence[ir.Value], **attributes: int) -> ir.Value:
        key = op_type, *map(id, given), *attributes.items()
        if key not in self._made:
            name = self._names.free(f"sizes/{op_type}")
            made = ir.Value(self._names.free(f"{name}_out"))
            self._nodes.append(ir.Node(op_type, given, [made], attributes=attributes, name=name))
            self._made[key] = made
        return self._made[key]
