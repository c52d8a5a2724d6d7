"""Queries, keys and values of one token that one product makes, turned by one RotaryEmbedding.

A layer of a decoder multiplies a token by weights for groups of heads: some of queries, one of
keys and one of values for each group. These are parted, and the heads of queries and of keys are
turned by the same angles, in a node for each. If the units of the product stand in another order,
the first head of each group first, one node turns all of them, and each part then has the
heads of the groups side by side. Heads of values are turned by no angle: a cosine of
1 and a sine of 0 leave each finite number as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.onnx_graph import ir

Array = npt.NDArray[Any]
Readers = Mapping[int, Sequence[ir.Node]]
_MICROSOFT = "com.microsoft"
# Of the inputs of RotaryEmbedding.
_ROWS, _ANGLES = 1, (2, 3)


def join_turned_heads(graph: ir.Graph) -> None:
    """Change `graph` as above."""
    turning = sum(node.op_type == "RotaryEmbedding" for node in graph.nodes)
    if turning < 2 or any(node.bodies for node in graph.nodes):
        return
    readers, outputs = graph.readers(), set(map(id, graph.outputs))
    reshapes = [node for node in graph.nodes if node.op_type == "Reshape"]
    made = _Made(graph)
    for layer in [_Layer.of(node, readers, outputs) for node in reshapes]:
        if layer is not None:
            layer.join(made)
    nodes = [node for node in graph.nodes if id(node) not in made.gone]
    graph.nodes = ir.leading_to(graph.outputs, nodes)
    graph.drop_unread()


class _Made:
    """What layers share that are changed.

    Attributes:
        gone: the nodes that are left out, by id.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self.graph = graph
        self.gone: set[int] = set()
        self._shared: dict[Any, ir.Value] = {}
        self._rows: dict[Any, ir.Value] = {}

    def constant(self, key: Any, name: str, array: Array) -> ir.Value:
        """An initializer; layers that ask with the same key share it."""
        if key not in self._shared:
            unique = f"heads/{name}_{len(self._shared)}"
            self._shared[key] = self.graph.add_initializer(unique, array)
        return self._shared[key]

    def sizes(self, sizes: Sequence[int]) -> ir.Value:
        """A list of sizes."""
        return self.constant(tuple(sizes), "sizes", np.array(sizes, np.int64))

    def rows(self, table: Array, turn: _Turn, label: str) -> tuple[ir.Value, list[ir.Node]]:
        """The rows of `table` at the position of a token, and the nodes that look them up: none
        where another layer has done so."""
        key = id(turn.position), table.shape, table.tobytes()
        if key in self._rows:
            return self._rows[key], []
        number = ir.Value(f"{label}/position")
        found = self._rows[key] = ir.Value(f"{label}/rows")
        inputs = turn.position, self.sizes([])
        reshape = ir.Node("Reshape", inputs, [number], name=f"{label}/position")
        inputs = self.constant(key, "rows", table), number
        lookup = ir.Node("Gather", inputs, [found], attributes={"axis": 0}, name=f"{label}/rows")
        return found, [reshape, lookup]


@record
class _Turn:
    """What turns heads.

    Args:
        before: the Reshape before it, if there is one.
        position: of the token, an input of the graph.
        table: for each position, the row of the angles.
    """

    node: ir.Node
    before: ir.Node | None
    position: ir.Value
    table: Array

    @classmethod
    def of(cls, value: ir.Value, readers: Readers) -> _Turn | None:
        """What turns `value`; None where it is not turned, or not by one row for all heads."""
        node, before = _reader(value, readers), None
        if node is not None and node.op_type == "Reshape":
            before, node = node, _reader(node.outputs[0], readers)
        if node is None or node.op_type != "RotaryEmbedding" or node.attributes:
            return None
        rows = node.inputs[_ROWS]
        lookup = None if rows is None else rows.producer()
        if lookup is None or lookup.op_type != "Gather" or lookup.attributes.get("axis", 0):
            return None
        table, index = lookup.constant(0), lookup.inputs[1]
        if table is None or table.ndim != 3 or index is None:
            return None
        position = ir.before_reshapes(index)
        if position.producer() is not None:
            return None
        same = bool((table == table[:, :1, :1]).all())
        return cls(node, before, position, table[:, 0, 0]) if same else None

    def is_like(self, other: _Turn) -> bool:
        """Whether heads are turned by the same angles."""
        same = all(self.node.inputs[place] is other.node.inputs[place] for place in _ANGLES)
        return same and self.position is other.position and np.array_equal(self.table, other.table)


@record
class _Layer:
    """A product, what parts it, and what turns the parts.

    Args:
        reshape: what gives it the shape in which it is parted.
        shape: this one: groups and what each has are the last two sizes.
        cuts: the nodes that part it.
        parts: what they make.
        heads: of each group, how many each part has.
        turns: of each part; None for one that is not turned.
    """

    product: ir.Node
    reshape: ir.Node
    shape: Sequence[int]
    cuts: Sequence[ir.Node]
    parts: Sequence[ir.Value]
    size: int
    heads: Sequence[int]
    turns: Sequence[_Turn | None]

    @classmethod
    def of(cls, reshape: ir.Node, readers: Readers, outputs: AbstractSet[int]) -> _Layer | None:
        """None where what a Reshape makes is no such product."""
        source, shape = reshape.inputs[0], reshape.constant(1)
        product = None if source is None else source.producer()
        if product is None or not _has_units(product) or shape is None or shape.size < 2:
            return None
        cuts = readers.get(id(reshape.outputs[0]), ())
        parts = _parts(cuts, shape)
        if parts is None or len(readers[id(product.outputs[0])]) > 1:
            return None
        turns = [_Turn.of(value, readers) for value in parts]
        turned = [turn for turn in turns if turn is not None]
        if len(turned) < 2 or not all(turned[0].is_like(turn) for turn in turned[1:]):
            return None
        made = (product.outputs[0], reshape.outputs[0], *parts)
        angles = [turned[0].node.constant(place) for place in _ANGLES]
        if angles[0] is None or angles[1] is None or not outputs.isdisjoint(map(id, made)):
            return None
        size = 2 * angles[0].shape[1]
        heads = [width // size for width in parts.values()]
        layer = cls(product, reshape, shape.tolist(), cuts, list(parts), size, heads, turns)
        return layer if layer._stands_by_heads() else None

    @property
    def groups(self) -> int:
        """Of heads."""
        return self.shape[-2]

    @property
    def units(self) -> int:
        """Of the product."""
        units = self.product.attributes["N"]
        assert isinstance(units, int)
        return units

    def _stands_by_heads(self) -> bool:
        """Whether there is one token, and each part is of one head, or of several that are turned
        as [groups, heads, size]."""
        whole = self.shape[-1] == sum(self.heads) * self.size and 0 not in self.heads
        if not whole or prod(self.shape) != self.units or prod(self.shape[:-2]) != 1:
            return False
        pairs = zip(self.heads, self.turns, strict=True)
        return all(
            self._shape_of(heads, turn) == [self.groups, heads, self.size] or heads == 1
            for heads, turn in pairs
        )

    def _shape_of(self, heads: int, turn: _Turn | None) -> Sequence[int]:
        """The shape in which a part is turned, or read."""
        given = None if turn is None or turn.before is None else turn.before.constant(1)
        return [*self.shape[:-1], heads * self.size] if given is None else given.tolist()

    def join(self, made: _Made) -> None:
        """Change the nodes."""
        label, place = self.reshape.name, made.graph.nodes.index(self.reshape) + 1
        turn = next(turn for turn in self.turns if turn is not None)
        self._put_in_order(made)
        sizes = made.sizes([sum(self.heads), self.groups, self.size])
        self.reshape.inputs = self.reshape.inputs[0], sizes
        angles, count = list[ir.Value](), 0
        for number, still in zip(_ANGLES, (1, 0), strict=True):
            array = turn.node.constant(number)
            assert array is not None
            count, key = len(array), (id(turn.node.inputs[number]), number)
            array = np.concatenate([array, np.full_like(array[:1], still)])
            angles.append(made.constant(key, "angles", array))
        rows, lookup = made.rows(self._table(turn, count), turn, label)
        turned = ir.Value(f"{label}/turned")
        inputs = self.reshape.outputs[0], rows, *angles
        rotation = ir.Node(
            "RotaryEmbedding", inputs, [turned], domain=_MICROSOFT, name=f"{label}/turned"
        )
        parts = [ir.Value(f"{label}/part_{number}") for number in range(len(self.heads))]
        inputs = turned, made.sizes(self.heads)
        split = ir.Node("Split", inputs, parts, attributes={"axis": 0}, name=f"{label}/heads")
        after = [self._as_before(number, part, made) for number, part in enumerate(parts)]
        made.graph.nodes[place:place] = [*lookup, rotation, split, *after]
        made.gone.update(map(id, self.cuts))

    def _table(self, turn: _Turn, still: int) -> Array:
        """For each position the rows [heads, groups] of the angles; `still` is the one of none."""
        table = np.full((len(turn.table), sum(self.heads), self.groups), still, np.int64)
        first = 0
        for heads, each in zip(self.heads, self.turns, strict=True):
            if each is not None:
                table[:, first : first + heads] = each.table[:, np.newaxis, np.newaxis]
            first += heads
        return table

    def _put_in_order(self, made: _Made) -> None:
        """Let the product make the heads of all groups side by side."""
        shape = self.groups, sum(self.heads), self.size
        order = np.arange(self.units).reshape(shape).swapaxes(0, 1).ravel()
        inputs = list(self.product.inputs)
        for place, array in enumerate(self.product.constants(), 1):
            if array is not None:
                by_unit = np.ascontiguousarray(array.reshape(self.units, -1)[order])
                name = f"heads/{self.product.name}_{place}"
                inputs[place] = made.graph.add_initializer(name, by_unit.reshape(array.shape))
        self.product.inputs = tuple(inputs)

    def _as_before(self, number: int, part: ir.Value, made: _Made) -> ir.Node:
        """What makes a part as it stood, turned."""
        turn, heads = self.turns[number], self.heads[number]
        old = self.parts[number] if turn is None else turn.node.outputs[0]
        if turn is not None:
            made.gone |= {id(turn.node), id(turn.before)}
        part.shape = heads, self.groups, self.size
        if heads > 1:
            perm = {"perm": [1, 0, 2]}
            return ir.Node("Transpose", [part], [old], attributes=perm, name=part.name)
        sizes = made.sizes(self._shape_of(heads, turn))
        return ir.Node("Reshape", [part, sizes], [old], name=part.name)


def _parts(cuts: Sequence[ir.Node], shape: Array) -> dict[ir.Value, int] | None:
    """What Slices make of a value of this shape, and how long that is on the last axis; None where
    they do not make all of it, one after the other."""
    found, end = dict[ir.Value, int](), 0
    for node in cuts:
        bounds = node.constants()
        if node.op_type != "Slice" or len(bounds) != 4:
            return None
        numbers = [None if each is None or each.size != 1 else int(each.item()) for each in bounds]
        start, stop, axis, step = numbers
        if start != end or stop is None or axis not in (-1, shape.size - 1) or step != 1:
            return None
        found[node.outputs[0]], end = stop - end, stop
    return found if end == shape[-1] else None


def _has_units(node: ir.Node) -> bool:
    """Whether it is a product of which each unit has constants of its own, beside the rows."""
    if node.op_type != "MatMulNBits" or len(node.inputs) > 3:
        return False
    return all(array is not None for array in node.constants())


def _reader(value: ir.Value, readers: Readers) -> ir.Node | None:
    """The node that alone reads a value; None where there are others."""
    found = readers.get(id(value), ())
    return found[0] if len(found) == 1 else None
