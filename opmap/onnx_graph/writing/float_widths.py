"""Graphs whose floats have other widths: 16 bits for 32, but for inputs and outputs; 32 bits for
64, for runtimes that have no 64-bit floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.value_types import constant_values, value_types
from tflite_ort.opmap.onnx_graph.writing.integer_arithmetic import (
    LARGEST,
    PRODUCTS,
    beyond_half,
    integer_arithmetic,
)
from tflite_ort.schema import ExportError

_D = ir.DataType
_TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype")
# What ONNX draws where no dtype is named.
_DRAWN = frozenset({"RandomNormal", "RandomUniform"})


class _Wide:
    """The inputs and outputs of a node that have to be 32-bit floats."""

    def __init__(self, inputs: Sequence[int], outputs: Sequence[int] = ()) -> None:
        self.inputs, self.outputs = inputs, outputs


# By node. Scales of quantized values are below what 16 bits hold; the others take no 16-bit floats.
_WIDE: Mapping[str, _Wide] = {
    "DequantizeLinear": _Wide((1,), (0,)),
    "QuantizeLinear": _Wide((0, 1)),
    "DynamicQuantizeLinear": _Wide((0,), (1,)),
    "Resize": _Wide((2,)),
    "NonMaxSuppression": _Wide((0, 1, 3, 4)),
    "Range": _Wide((0, 1, 2), (0,)),
}


_TRANSPOSED, _SCATTERED = _Wide((0,), (0,)), _Wide((0, 2), (0,))
_SCATTERS = frozenset({"ScatterElements", "ScatterND"})
_NONE = _Wide(())
# Their constants are multiplied, or added to products.
_WEIGHTED = PRODUCTS | {"GRU", "LSTM", "RNN"}


def halve(graph: ir.Graph) -> None:
    """Make the floats of `graph` 16-bit ones, but for its inputs and outputs and for whole numbers.

    Constants beyond the largest 16-bit float become that one.

    Raises:
        ExportError: these are weights.
    """
    _Halving(graph).run()


class _Halving:
    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        types = value_types(graph)
        self._floats = {key for key, found in types.items() if found is _D.FLOAT}
        self._widened = _widened(graph, self._floats)
        self._whole = integer_arithmetic(graph, types)
        self._names = {value.name for node in graph.all_nodes() for value in node.outputs}
        self._names |= {value.name for value in graph.inputs} | set(graph.initializers)
        # By value and graph: the same in the other type; of constants and inputs, in any graph.
        self._halves: dict[tuple[int, int], ir.Value] = {}
        self._wholes: dict[tuple[int, int], ir.Value] = {}
        # Values that are 16-bit floats.
        self._half: set[int] = set()

    def run(self) -> None:
        """All of it."""
        for node in self._graph.all_nodes():
            self._check_weights(node)
        graph, given = self._graph, set(map(id, (*self._graph.inputs, *self._graph.outputs)))
        for each in (graph, *(body for node in graph.all_nodes() for body in node.bodies)):
            for name, value in list(each.initializers.items()):
                if id(value) in self._floats and id(value) not in given:
                    self._split(each, name, value)
        first = [self._cast_input(value) for value in graph.inputs if id(value) in self._floats]
        self._convert(graph)
        used = graph.read_ids() | given
        used |= {id(v) for n in graph.all_nodes() for body in n.bodies for v in body.outputs}
        graph.nodes[:0] = [node for node in first if id(node.outputs[0]) in used]
        kept = {n: v for n, v in graph.initializers.items() if id(v) in used}
        graph.initializers.clear()
        graph.initializers.update(kept)

    def _split(self, home: ir.Graph, name: str, value: ir.Value) -> None:
        """Make a constant 16-bit floats, beside one of 32 bits."""
        whole = ir.Value(self._free(f"{name}/float32"), const_value=value.const_value)
        home.initializers[whole.name] = whole
        value.const_value = _halved(value.const_value)
        self._half.add(id(value))
        self._wholes[id(value), 0] = whole

    def _cast_input(self, value: ir.Value) -> ir.Node:
        half = ir.Value(self._free(f"{value.name}/half"))
        self._halves[id(value), 0] = half
        return _cast(value, half, _D.FLOAT16)

    def _check_weights(self, node: ir.Node) -> None:
        """Refuse weights that would become other ones."""
        for value in node.inputs if node.op_type in _WEIGHTED else ():
            largest = None if value is None else beyond_half(value.const_value)
            if largest is not None and id(node) not in self._whole:
                raise ExportError(f"{node.name}: weights up to {largest:g} are no 16-bit floats")

    def _convert(self, graph: ir.Graph) -> None:
        nodes: list[ir.Node] = []
        for node in graph.nodes:
            self._read(node, graph, nodes)
            nodes.append(node)
            if id(node) not in self._whole:
                _halve_attributes(node)
            for body in node.bodies:
                self._convert_body(body, half=id(node) not in self._whole)
            nodes += self._made(node)
        graph.nodes[:] = nodes

    def _read(self, node: ir.Node, graph: ir.Graph, nodes: list[ir.Node]) -> None:
        """Give a node its inputs in the types that it takes."""
        wide = self._of(node)
        for position, value in enumerate(node.inputs):
            if value is not None and id(value) in self._floats:
                half = wide is not None and position not in wide.inputs
                _put(node, position, self._as(value, graph, nodes, half=half))

    def _of(self, node: ir.Node) -> _Wide | None:
        """The inputs and outputs of a node that are 32-bit floats; None: all."""
        if id(node) in self._whole:
            return None
        return self._widened.get(id(node)) or (not node.domain and _WIDE.get(node.op_type)) or _NONE

    def _as(
        self, value: ir.Value, graph: ir.Graph, nodes: list[ir.Node], *, half: bool
    ) -> ir.Value:
        """`value` in one of both types; a Cast goes to the end of `nodes` where it has the other
        one."""
        if half == (id(value) in self._half):
            return value
        known, (suffix, to) = (
            (self._halves, ("half", _D.FLOAT16)) if half else (self._wholes, ("float32", _D.FLOAT))
        )
        for place in (0, id(graph)):
            if (id(value), place) in known:
                return known[id(value), place]
        made = ir.Value(self._free(f"{value.name}/{suffix}"))
        known[id(value), id(graph)] = made
        nodes.append(_cast(value, made, to))
        return made

    def _convert_body(self, body: ir.Graph, *, half: bool) -> None:
        """A body whose floats come and go in one type."""
        for value in body.inputs:
            if half and id(value) in self._floats:
                self._make_half(value)
        self._convert(body)
        for position, value in enumerate(body.outputs):
            if id(value) in self._floats:
                given = self._as(value, body, body.nodes, half=half)
                if given is not value:
                    given.dtype, given.shape = _D.FLOAT16 if half else _D.FLOAT, value.shape
                body.outputs[position] = given

    def _make_half(self, value: ir.Value) -> None:
        self._half.add(id(value))
        if value.dtype is _D.FLOAT:
            value.dtype = _D.FLOAT16

    def _made(self, node: ir.Node) -> list[ir.Node]:
        """The outputs of a converted node in the types that it gives, and Casts of those that the
        graph gives."""
        wide, casts = self._of(node), []
        for position, value in enumerate(node.outputs):
            if id(value) not in self._floats or wide is None or position in wide.outputs:
                continue
            if not any(value is each for each in self._graph.outputs):
                self._make_half(value)
                continue
            half = ir.Value(self._free(f"{value.name}/half"))
            node.give(position, half)
            self._halves[id(value), 0] = half
            casts.append(_cast(half, value, _D.FLOAT))
        return casts

    def _free(self, name: str) -> str:
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _widened(graph: ir.Graph, floats: set[int]) -> dict[int, _Wide]:
    """Nodes that take no 16-bit floats where they stand, by identity.

    A Transpose that puts the first dimension among the last two: multiplied by constant 16-bit
    floats it becomes a FusedMatMul that ends the process (ONNX Runtime up to 1.32 at least). And
    what adds or multiplies scattered elements: ONNX Runtime has no such kernel of 16-bit floats.
    """
    found, fixed = {}, constant_values(graph)
    for value, node, position in graph.reads():
        if node.op_type in _SCATTERS and position == 0 and "reduction" in node.attributes:
            if id(value) in floats:
                found[id(node)] = _SCATTERED
        elif node.op_type == "MatMul":
            weights, made = node.inputs[1 - position], _reshaped(value).producer()
            fused = made is not None and made.op_type == "Transpose" and _moves_batch(made)
            if fused and id(weights) in fixed and id(weights) in floats:
                found[id(made)] = _TRANSPOSED
    return found


def _reshaped(value: ir.Value) -> ir.Value:
    """What Reshapes made `value` of."""
    made = value.producer()
    while made is not None and made.op_type in ("Identity", "Reshape"):
        if made.inputs[0] is None:
            break
        value = made.inputs[0]
        made = value.producer()
    return value


def _moves_batch(transpose: ir.Node) -> bool:
    """Whether the first dimension becomes one of the last two, and the others keep their order."""
    rest = np.asarray(transpose.attributes["perm"]).tolist()
    place = rest.index(0)
    del rest[place]
    return len(rest) > 1 and place >= len(rest) - 1 and rest == sorted(rest)


def _put(node: ir.Node, position: int, value: ir.Value) -> None:
    node.inputs = (*node.inputs[:position], value, *node.inputs[position + 1 :])


def _cast(given: ir.Value, made: ir.Value, to: ir.DataType) -> ir.Node:
    return ir.Node("Cast", [given], [made], attributes={"to": to}, name=f"{made.name}/Cast")


def _halve_attributes(node: ir.Node) -> None:
    if node.op_type in _DRAWN:
        node.attributes.setdefault("dtype", _D.FLOAT)
    for name, value in node.attributes.items():
        if name in _TYPE_ATTRIBUTES and value == _D.FLOAT:
            node.attributes[name] = _D.FLOAT16
        elif isinstance(value, ir.Tensor):
            halved = _halved(value)
            assert halved is not None
            node.attributes[name] = halved


def _halved(constant: ir.Tensor | None) -> ir.Tensor | None:
    if constant is None or constant.dtype is not _D.FLOAT:
        return constant
    whole = np.asarray(constant.array, np.float32)
    inside = np.where(np.isfinite(whole), whole.clip(-LARGEST, LARGEST), whole)
    return ir.Tensor(inside.astype(np.float16))


# 64-bit floats -----------------------------------------------------------------------------------


def without_doubles(graph: ir.Graph) -> list[str]:
    """Compute in 32 bits what a graph computes in 64; its inputs and outputs stay.

    Returns:
        What computed in 64 bits: the beginnings of the names of nodes, which are operators.
    """
    types, ends = value_types(graph), {id(v) for v in (*graph.inputs, *graph.outputs)}
    if any(types.get(each) is _D.DOUBLE for each in ends):
        return []
    found = dict[str, None]()
    for node in graph.all_nodes():
        if any(types.get(id(value)) is _D.DOUBLE for value in node.outputs):
            found[node.name.partition("/")[0]] = None
        for value in (*node.inputs, *node.outputs):
            if value is not None and types.get(id(value)) is _D.DOUBLE:
                _narrow(value)
        for name in _TYPE_ATTRIBUTES:
            if node.attributes.get(name) == _D.DOUBLE:
                node.attributes[name] = int(_D.FLOAT)
        filled = node.attributes.get("value")
        if isinstance(filled, ir.Tensor) and filled.dtype is _D.DOUBLE:
            node.attributes["value"] = ir.Tensor(filled.array.astype(np.float32))
    return list(found)


def _narrow(value: ir.Value) -> None:
    """Make a value 32-bit; numbers beyond 32 bits become the largest ones."""
    value.dtype = _D.FLOAT
    constant = value.const_value
    if constant is not None and constant.dtype is _D.DOUBLE:
        most = np.finfo(np.float32).max
        value.const_value = ir.Tensor(np.clip(constant.array, -most, most).astype(np.float32))
