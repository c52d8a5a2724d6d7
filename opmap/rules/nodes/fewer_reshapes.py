"""Rows without a Reshape, where a product or a reduction can do its work.

A layer multiplies rows, and a Reshape gives them the shape that an attention takes. Where several
layers multiply the same rows, these are reshaped once, and each layer keeps that shape. Where the
rows were made of that shape, no Reshape is left. A reduction may leave out axes, and its input may
have other axes of size 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

Shape = tuple[int, ...]
_REDUCING = frozenset({"ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"})


def drop_reshapes(graph: ir.Graph, around: NodesAround) -> None:
    """Change `graph` as above."""
    if not any(node.op_type == "Reshape" for node in graph.nodes):
        return
    dropping = _Dropping(graph, around)
    reductions = [node for node in graph.nodes if node.op_type in _REDUCING]
    changed = [dropping.reduce(node) for node in reductions]
    if dropping.multiply() or any(changed):
        graph.nodes = ir.leading_to(graph.outputs, dropping.nodes())


class _Dropping:
    """Drops Reshapes of a graph."""

    def __init__(self, graph: ir.Graph, around: NodesAround) -> None:
        self._graph, self._around = graph, around
        self._own = {id(node) for node in graph.nodes}
        self._readers, self._reads = graph.readers(), graph.read_counts()
        self._results = set(map(id, graph.outputs))
        self._added: dict[int, ir.Node] = {}
        self._gone = set[int]()

    def nodes(self) -> list[ir.Node]:
        """The nodes that are left, each behind one that was added for it."""
        nodes = list[ir.Node]()
        for node in self._graph.nodes:
            added = self._added.get(id(node))
            nodes += [node] if added is None else [added, node]
        return [node for node in nodes if id(node) not in self._gone]

    def _replace(self, reshape: ir.Node, node: ir.Node) -> None:
        """Let `node` make what `reshape` made."""
        node.give(0, reshape.outputs[0])
        self._gone.add(id(reshape))

    # Products ------------------------------------------------------------------------------------

    def multiply(self) -> bool:
        """Let layers make what is reshaped behind them; whether any does."""
        groups: dict[tuple[int, Shape], list[tuple[ir.Node, ir.Node]]] = {}
        for node in self._graph.nodes:
            layer = self._layer(node)
            target = ir.reshaped_to(node)
            if layer is not None and target is not None:
                groups.setdefault((id(layer.inputs[0]), target[:-1]), []).append((layer, node))
        found = [self._join(lead, group) for (_, lead), group in groups.items()]
        return any(found)

    def _layer(self, reshape: ir.Node) -> ir.Node | None:
        """The layer without a constant whose rows nothing but `reshape` reads, which keeps them.
        A session gives its results as rows: before these a Reshape takes no time."""
        target, rows = ir.reshaped_to(reshape), reshape.inputs[0]
        if target is None or len(target) < 3 or rows is None or self._reads[id(rows)] != 1:
            return None
        if id(reshape.outputs[0]) in self._results:
            return None
        layer = rows.producer()
        if layer is None or id(layer) not in self._own or layer.op_type != "Gemm":
            return None
        if len(layer.inputs) != 2 or not layer.attributes.keys() <= {"transB"}:
            return None
        weights = layer.constant(1)
        if weights is None or weights.dtype != np.float32:
            return None
        return layer if target[-1] == _units_and_depth(layer, weights)[0] else None

    def _join(self, lead: Shape, group: Sequence[tuple[ir.Node, ir.Node]]) -> bool:
        """Let the layers of a group multiply their rows in the dimensions `lead`."""
        first = group[0][0]
        rows, weights = first.inputs[0], first.constant(1)
        assert rows is not None
        assert weights is not None
        shape = (*lead, _units_and_depth(first, weights)[1])
        value = self._reshaped_from(rows, shape)
        if value is None:
            if len(group) < 2:
                return False
            value = ir.Value(f"{rows.name}/{'x'.join(map(str, shape))}", dtype=rows.dtype)
            sizes = self._around.constants.add(np.array(shape, np.int64), "shape")
            # Of the layers the first in the order of nodes, which need not be that of Reshapes.
            layers = {id(layer) for layer, _ in group}
            first = next(node for node in self._graph.nodes if id(node) in layers)
            self._added[id(first)] = ir.Node("Reshape", [rows, sizes], [value], name=value.name)
        for layer, reshape in group:
            layer.op_type, layer.domain = "FusedMatMul", "com.microsoft"
            layer.inputs = (value, *layer.inputs[1:])
            self._replace(reshape, layer)
        return True

    def _reshaped_from(self, rows: ir.Value, shape: Shape) -> ir.Value | None:
        """The value of this shape that was reshaped to `rows`."""
        maker = rows.producer()
        if maker is None or ir.reshaped_to(maker) is None:
            return None
        return maker.inputs[0] if self._shape(maker.inputs[0]) == shape else None

    # Reductions ----------------------------------------------------------------------------------

    def reduce(self, node: ir.Node) -> bool:
        """Let a reduction that keeps its axes do without the Reshape before or behind it; whether
        it does."""
        value, axes = node.inputs[0], node.constant(1) if len(node.inputs) > 1 else None
        if value is None or axes is None or not axes.size or not node.attributes.get("keepdims", 1):
            return False
        behind = self._behind(node)
        if behind is None:
            return False
        wanted = ir.reshaped_to(behind)
        for source, shape, places in self._inputs(value, sorted(map(int, axes))):
            kept = tuple(1 if axis in places else size for axis, size in enumerate(shape))
            left = tuple(size for axis, size in enumerate(shape) if axis not in places)
            if wanted in (kept, left):
                listed = self._around.constants.add(np.array(places, np.int64), "axes")
                node.inputs = source, listed
                node.attributes["keepdims"] = int(wanted == kept)
                self._replace(behind, node)
                return True
        return False

    def _behind(self, node: ir.Node) -> ir.Node | None:
        """The Reshape that alone reads a result."""
        (result,) = node.outputs
        readers = self._readers.get(id(result), [])
        if len(readers) != 1 or self._reads[id(result)] != 1 or id(readers[0]) not in self._own:
            return None
        return readers[0] if ir.reshaped_to(readers[0]) is not None else None

    def _inputs(
        self, value: ir.Value, axes: Sequence[int]
    ) -> Sequence[tuple[ir.Value, Shape, Sequence[int]]]:
        """What may be reduced: a value, its shape, and the axes to reduce."""
        shape, found = self._shape(value), list[tuple[ir.Value, Shape, Sequence[int]]]()
        maker = value.producer()
        if maker is not None and (target := ir.reshaped_to(maker)) is not None:
            shape, source = target, maker.inputs[0]
            before = self._shape(source)
            places = None if before is None else _moved(axes, shape, before)
            if source is not None and before is not None and places:
                found.append((source, before, places))
        if shape is not None and all(0 <= axis < len(shape) for axis in axes):
            found.append((value, shape, axes))
        return found

    def _shape(self, value: ir.Value | None) -> Shape | None:
        """The shape of a value, if it is known and has elements."""
        if value is None:
            return None
        known: Any = self._around.sizes.get(id(value), (value, value.shape))[1]
        if known is None or not all(isinstance(size, int) and size > 0 for size in known):
            return None
        return tuple(known)


def _moved(axes: Sequence[int], shape: Shape, other: Shape) -> Sequence[int] | None:
    """Where `axes` of `shape` stand in `other`, which has more or fewer sizes of 1."""
    places, others = ([i for i, size in enumerate(s) if size != 1] for s in (shape, other))
    if [shape[i] for i in places] != [other[i] for i in others]:
        return None
    there: Mapping[int, int] = dict(zip(places, others, strict=True))
    return [there[axis] for axis in axes if axis in there]


def _units_and_depth(layer: ir.Node, weights: npt.NDArray[Any]) -> tuple[int, int]:
    """The last dimension of the rows that a layer makes, and of those that it takes."""
    first, second = weights.shape
    return (first, second) if layer.attributes.get("transB") else (second, first)
