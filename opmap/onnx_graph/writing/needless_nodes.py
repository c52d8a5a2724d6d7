"""A graph without nodes that change nothing, or that compute what is there already."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import chain
from typing import Any

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.known_values import Known
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_D = ir.DataType
# What they give does not follow from what they read.
_DRAWING = ("Random", "Multinomial", "Bernoulli")
# They keep the elements and their order.
MOVES = frozenset({"Reshape", "Squeeze", "Unsqueeze", "Flatten"})
_KEEPING = MOVES | {"Expand"}
# By type, those that hold all of its numbers.
_WIDER = {
    _D.BOOL: {_D.UINT8, _D.INT8, _D.INT16, _D.INT32, _D.INT64, _D.FLOAT, _D.DOUBLE},
    _D.UINT8: {_D.INT16, _D.UINT16, _D.INT32, _D.UINT32, _D.INT64, _D.FLOAT, _D.DOUBLE},
    _D.INT8: {_D.INT16, _D.INT32, _D.INT64, _D.FLOAT, _D.DOUBLE},
    _D.UINT16: {_D.INT32, _D.UINT32, _D.INT64, _D.FLOAT, _D.DOUBLE},
    _D.INT16: {_D.INT32, _D.INT64, _D.FLOAT, _D.DOUBLE},
    _D.INT32: {_D.INT64, _D.DOUBLE},
    _D.UINT32: {_D.INT64, _D.DOUBLE},
    _D.FLOAT16: {_D.FLOAT, _D.DOUBLE},
    _D.FLOAT: {_D.DOUBLE},
}
# Constants up to so many bytes are compared by their elements.
_SMALL = 64


def without_needless_nodes(graph: ir.Graph, known: Known, *, reduced: bool = True) -> None:
    """Let the readers of what a needless node makes read what it is made of.

    Args:
        reduced: reductions leave out the axes that a Reshape behind them would.
    """
    _drop_choices(graph)
    _Cleaning(graph, known, reduced=reduced).run(graph)
    graph.drop_unread()


def _drop_choices(graph: ir.Graph) -> None:
    """Leave out what an If gives that nothing reads, and the nodes in its branches that make it."""
    counts = graph.read_counts()
    counts.update(id(v) for node in graph.all_nodes() for body in node.bodies for v in body.outputs)
    for node in graph.all_nodes():
        read = [place for place, value in enumerate(node.outputs) if counts[id(value)]]
        if node.op_type == "If" and 0 < len(read) < len(node.outputs):
            node.outputs = tuple([node.outputs[place] for place in read])
            for body in node.bodies:
                body.outputs = [body.outputs[place] for place in read]
                body.nodes = ir.leading_to(body.outputs, body.nodes)


class _Cleaning:
    def __init__(self, graph: ir.Graph, known: Known, *, reduced: bool) -> None:
        self._graph, self._known, self._names = graph, known, Names(graph)
        self._reduced = reduced
        # By value that is left out, what stands for it.
        self._same: dict[int, ir.Value] = {}
        self._elements: dict[int, Hashable] = {}
        # Those of a state have first values, and others when the graph runs.
        self._given = set(map(id, graph.inputs))
        self._reads = graph.read_counts()
        # By a node that took the name of another one, its own.
        self._own_names: dict[int, str] = {}

    def run(self, graph: ir.Graph) -> None:
        """A graph, and then its bodies. What a body gives is left as it is, and a body computes
        itself what the graph around it computes too: not every reader of ONNX takes computed
        values from outside."""
        made, ends = dict[Hashable, Sequence[ir.Value]](), set(map(id, graph.outputs))
        for node in graph.nodes:
            node.inputs = tuple([self._same.get(id(value), value) for value in node.inputs])
            if not node.domain:
                self._shorten(node)
            for body in node.bodies:
                self.run(body)
            if not any(id(value) in ends for value in node.outputs):
                self._leave_out(node, made)
        graph.nodes = ir.leading_to(graph.outputs, graph.nodes)
        self._part_names(graph.nodes)

    def _part_names(self, nodes: Sequence[ir.Node]) -> None:
        """Give a node its own name again, where the other one stays or several took its name."""
        taken = {node.name for node in nodes if id(node) not in self._own_names}
        for node in nodes:
            if id(node) in self._own_names and node.name in taken:
                node.name = self._own_names[id(node)]
            taken.add(node.name)

    def _leave_out(self, node: ir.Node, made: dict[Hashable, Sequence[ir.Value]]) -> None:
        """Note what stands for the outputs of a node, if that is there.

        Args:
            made: what is there already, by how it is computed.
        """
        source = None if node.domain else self._unchanged(node)
        found: Sequence[ir.Value] = node.outputs if source is None else [source]
        if source is None and (key := self._key(node)) is not None:
            found = made.setdefault(key, node.outputs)
        for own, value in zip(node.outputs, found, strict=True):
            if own is not value:
                self._same[id(own)] = value

    def _shorten(self, node: ir.Node) -> None:
        """Let a node read what the node before it reads, where both do what one can do."""
        if node.op_type == "Reshape" and self._names_all_sizes(node):
            self._say_plainly(node)
        if node.op_type == "Concat":
            node.inputs = tuple(
                chain.from_iterable(self._parts(node, each) for each in node.inputs)
            )
            return
        before = None if not node.inputs or node.inputs[0] is None else node.inputs[0].producer()
        if before is None or before.domain or not before.inputs or before.inputs[0] is None:
            return
        kinds, source = (before.op_type, node.op_type), before.inputs[0]
        if kinds == ("Cast", "Cast") and self._holds(source, node.inputs[0]):
            node.inputs = (source,)
        elif kinds == ("Transpose", "Transpose"):
            first, second = (each.attributes.get("perm") for each in (before, node))
            if isinstance(first, Sequence) and isinstance(second, Sequence):
                order = [int(first[int(place)]) for place in second]
                node.inputs, node.attributes = (source,), {"perm": order}
        elif set(kinds) <= MOVES:
            self._move_once(node, before, source)
        elif self._reduced and node.op_type in MOVES and before.op_type.startswith("Reduce"):
            self._reduce_axes(node, before, source)

    def _parts(self, node: ir.Node, value: ir.Value | None) -> Sequence[ir.Value | None]:
        """What a Concat joins of an input that is made by another one, for it alone."""
        before = None if value is None else value.producer()
        if before is None or (before.op_type, before.domain) != ("Concat", ""):
            return [value]
        same = before.attributes.get("axis") == node.attributes.get("axis")
        return before.inputs if same and self._reads[id(value)] == 1 else [value]

    def _move_once(self, node: ir.Node, before: ir.Node, source: ir.Value) -> None:
        """One Reshape for two nodes that keep the elements in their order."""
        if self._names_all_sizes(node) and not _may_fail(before):
            node.inputs = (source, *node.inputs[1:])
            return
        shape = self._known.sizes(node.outputs[0])
        if shape is None or 0 in shape or self._known.sizes(before.outputs[0]) is None:
            return  # what a computed size does not fit fails
        target = np.array(shape, np.int64)
        name = self._names.free(f"{node.name or node.outputs[0].name}/shape")
        node.op_type, node.attributes = "Reshape", {}
        node.inputs = (source, self._graph.add_initializer(name, target))

    def _reduce_axes(self, node: ir.Node, before: ir.Node, source: ir.Value) -> None:
        """A reduction itself leaves out the axes of 1 that it keeps for a Reshape alone."""
        (made,) = before.outputs
        keeps = before.attributes.get("keepdims", 1) == 1 and self._reads[id(made)] == 1
        shape, axes = self._known.sizes(source), before.constant(1)
        if not keeps or shape is None or axes is None or not axes.size:
            return
        gone = {int(axis) % len(shape) for axis in axes.reshape(-1)}
        left = [size for axis, size in enumerate(shape) if axis not in gone]
        if left == self._known.sizes(node.outputs[0]):
            self._own_names[id(node)] = node.name
            node.op_type, node.name, node.inputs = before.op_type, before.name, before.inputs
            node.attributes = {**before.attributes, "keepdims": 0}

    def _say_plainly(self, node: ir.Node) -> None:
        """Say nothing of sizes of 0 where a target has none: not every reader knows it."""
        target = node.constant(1)
        if target is not None and np.all(target != 0):
            node.attributes.pop("allowzero", None)

    def _names_all_sizes(self, node: ir.Node) -> bool:
        """Whether a Reshape takes no size from what it reads."""
        target = node.inputs[1] if len(node.inputs) > 1 else None
        if node.op_type != "Reshape" or target is None or id(target) in self._given:
            return False
        if target.const_value is None:
            return False
        every = bool(np.all(target.const_value.array != 0))
        return every or bool(node.attributes.get("allowzero", 0))

    def _holds(self, source: ir.Value, value: ir.Value | None) -> bool:
        """Whether the type of `value` holds all numbers of that of `source`."""
        one, other = self._known.type(source), self._known.type(value)
        return one is not None and (one is other or other in _WIDER.get(one, ()))

    def _unchanged(self, node: ir.Node) -> ir.Value | None:
        """What a node gives as it is."""
        if not node.inputs or len(node.outputs) != 1 or node.inputs[0] is None:
            return None
        source, kind, attributes = node.inputs[0], node.op_type, node.attributes
        is_same = (
            kind == "Identity"
            or (kind == "Cast" and attributes["to"] == self._known.type(source))
            or (kind == "Transpose" and _in_order(attributes.get("perm")))
            or (kind == "Concat" and len(node.inputs) == 1)
            or kind == "Split"  # into one part
        )
        if kind in _KEEPING and not is_same:
            shape = self._known.sizes(source)
            is_same = shape is not None and shape == self._known.sizes(node.outputs[0])
            is_same = is_same or self._infers_same(node)
        return source if is_same else None

    def _infers_same(self, node: ir.Node) -> bool:
        """Whether a Reshape infers the one open size of a shape, and names the others."""
        target, shape = node.constant(1), self._known.shape(node.inputs[0])
        is_told = node.op_type == "Reshape" and id(node.inputs[1]) not in self._given
        if not is_told or target is None or shape is None:
            return False
        told = [size if isinstance(size, int) else -1 for size in shape]
        return target.tolist() == told and told.count(-1) == 1 and 0 not in told

    def _key(self, node: ir.Node) -> Hashable:
        """Equal for nodes that compute the same; None for nodes that may not."""
        if node.bodies or is_drawing(node) or not node.outputs:
            return None
        given = tuple([self._identity(value) for value in node.inputs])
        attributes = [(name, _hashable(value)) for name, value in sorted(node.attributes.items())]
        return node.op_type, node.domain, given, tuple(attributes), len(node.outputs)

    def _identity(self, value: ir.Value | None) -> Hashable:
        """Equal for small constants of equal elements."""
        constant = None if value is None or id(value) in self._given else value.const_value
        if constant is None or constant.nbytes > _SMALL or constant.dtype is _D.STRING:
            return id(value)
        if id(value) not in self._elements:
            self._elements[id(value)] = constant.dtype, constant.shape, constant.array.tobytes()
        return self._elements[id(value)]


def is_drawing(node: ir.Node) -> bool:
    """Whether a node draws random numbers."""
    return node.op_type.startswith(_DRAWING)


def _may_fail(node: ir.Node) -> bool:
    """Whether a computed shape may not fit what a Reshape reads."""
    shape = node.inputs[1] if len(node.inputs) > 1 else None
    return node.op_type == "Reshape" and (shape is None or shape.const_value is None)


def _in_order(order: Any) -> bool:
    return order is not None and list(order) == list(range(len(order)))


def _hashable(value: ir.Attribute) -> Hashable:
    if isinstance(value, ir.Tensor):
        return value.dtype, value.shape, value.array.tobytes()
    return value if isinstance(value, int | float | str | ir.Graph) else tuple(value)
