"""A graph in which 32-bit floats are 16-bit floats, but for its own inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tflite_ort.opmap.graph import ir

_D = ir.DataType
_LARGEST = float(np.finfo(np.float16).max)
_TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype")
# What ONNX draws where no dtype is named.
_DRAWN = frozenset({"RandomNormal", "RandomUniform"})


class _Wide:
    """Of a node that takes or gives 32-bit floats alone: which inputs and outputs these are."""

    def __init__(self, inputs: Sequence[int], outputs: Sequence[int] = ()) -> None:
        self.inputs, self.outputs = inputs, outputs


# By node. Scales of quantised values are below what 16 bits hold; the others take no 16-bit floats.
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
# What these make is of the type of their first input.
_KEEP_TYPE = frozenset({"Expand", "Identity", "Mul", "Reshape", "Transpose"})


def halve(graph: ir.Graph) -> None:
    """Make the floats of `graph` 16-bit ones, by a Cast after each input and before each output.

    Constants beyond the largest 16-bit float become that one.
    """
    _Halving(graph).run()


class _Halving:
    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._wide_constants: dict[int, ir.Value] = {}
        self._widened = _widened(graph)
        self._names = {value.name for node in graph.all_nodes() for value in node.outputs}
        self._names |= {value.name for value in graph.inputs} | set(graph.initializers)

    def run(self) -> None:
        """All of it."""
        self._split_constants()
        nodes = self._boundary_casts()
        self._convert(self._graph)
        self._graph.nodes[:0] = nodes

    def _split_constants(self) -> None:
        """Give nodes that need 32-bit constants initializers of their own."""
        for value, node, position in list(self._graph.reads()):
            wide = self._widened.get(id(node), _WIDE.get(node.op_type))
            constant = value.const_value
            if wide is None or position not in wide.inputs or constant is None:
                continue
            if constant.dtype is _D.FLOAT and value not in self._graph.inputs:
                own = self._wide_constants.get(id(value))
                if own is None:
                    own = ir.Value(self._free(f"{value.name}/float32"), const_value=constant)
                    self._wide_constants[id(value)] = own
                    self._graph.initializers[own.name] = own
                _put(node, position, own)
        used = {id(value) for value, _, _ in self._graph.reads()}
        used |= set(map(id, self._graph.inputs)) | set(map(id, self._graph.outputs))
        kept = {n: v for n, v in self._graph.initializers.items() if id(v) in used}
        self._graph.initializers.clear()
        self._graph.initializers.update(kept)

    def _boundary_casts(self) -> list[ir.Node]:
        """Nodes that make 16-bit floats of inputs; outputs get theirs at the end of the graph."""
        first = []
        for value in self._graph.inputs:
            if value.dtype is _D.FLOAT:
                half = ir.Value(self._free(f"{value.name}/half"))
                for read, node, position in list(self._graph.reads()):
                    if read is value:
                        _put(node, position, half)
                first.append(_cast(value, half, _D.FLOAT16))
        for value in self._graph.outputs:
            producer = value.producer()
            if value.dtype is not _D.FLOAT or producer is None:
                continue
            half = ir.Value(self._free(f"{value.name}/half"))
            place = next(i for i, each in enumerate(producer.outputs) if each is value)
            outputs = (*producer.outputs[:place], half, *producer.outputs[place + 1 :])
            producer.outputs = outputs
            half._producer = producer
            for read, node, position in list(self._graph.reads()):
                if read is value:
                    _put(node, position, half)
            self._graph.nodes.append(_cast(half, value, _D.FLOAT))
        return first

    def _convert(self, graph: ir.Graph) -> None:
        """The constants, declared types and nodes of a graph, and of the bodies in it."""
        wide = set(map(id, self._wide_constants.values()))
        for value in graph.initializers.values():
            if id(value) not in wide and value not in self._graph.inputs:
                value.const_value = _halved(value.const_value)
        nodes: list[ir.Node] = []
        for node in graph.nodes:
            for attribute in node.attributes.values():
                if isinstance(attribute, ir.Graph):
                    self._declare(attribute)
                    self._convert(attribute)
            nodes += self._converted(node)
        graph.nodes[:] = nodes

    def _declare(self, body: ir.Graph) -> None:
        for value in (*body.inputs, *body.outputs):
            if value.dtype is _D.FLOAT:
                value.dtype = _D.FLOAT16

    def _converted(self, node: ir.Node) -> list[ir.Node]:
        """`node` for 16-bit floats, between the Casts that it needs."""
        wide = self._widened.get(id(node), _WIDE.get(node.op_type))
        boundary = node.op_type == "Cast" and any(o in self._graph.outputs for o in node.outputs)
        if not boundary:
            _halve_attributes(node)
        for value in node.outputs:
            if value.dtype is _D.FLOAT and value not in self._graph.outputs:
                value.dtype = _D.FLOAT16
        if wide is None or node.domain or not self._of_floats(node, wide):
            return [node]
        before, after = [], []
        for position in wide.inputs:
            given = node.inputs[position] if position < len(node.inputs) else None
            if given is not None and given.const_value is None:
                whole = ir.Value(self._free(f"{given.name}/float32"))
                before.append(_cast(given, whole, _D.FLOAT))
                _put(node, position, whole)
        for position in wide.outputs:
            made = node.outputs[position]
            whole = ir.Value(self._free(f"{made.name}/float32"))
            node.outputs = (*node.outputs[:position], whole, *node.outputs[position + 1 :])
            whole._producer = node
            after.append(_cast(whole, made, _D.FLOAT16))
        return [*before, node, *after]

    def _of_floats(self, node: ir.Node, wide: _Wide) -> bool:
        """Whether a node has floats at these places: a Range may count integers."""
        given = (node.inputs[i] for i in wide.inputs if i < len(node.inputs))
        types = {v.const_value.dtype for v in given if v is not None and v.const_value is not None}
        return node.op_type != "Range" or not types or _D.FLOAT in types

    def _free(self, name: str) -> str:
        while name in self._names:
            name += "_"
        self._names.add(name)
        return name


def _widened(graph: ir.Graph) -> dict[int, _Wide]:
    """Nodes that take no 16-bit floats where they stand, by identity.

    A Transpose that puts the first dimension among the last two: multiplied by constant 16-bit
    floats it becomes a FusedMatMul that ends the process (ONNX Runtime up to 1.32 at least). And
    what adds or multiplies scattered elements: ONNX Runtime has no such kernel of 16-bit floats.
    """
    found = {}
    for value, node, position in graph.reads():
        if node.op_type in _SCATTERS and position == 0 and "reduction" in node.attributes:
            if _is_float(value):
                found[id(node)] = _SCATTERED
        elif node.op_type == "MatMul":
            weights, made = node.inputs[1 - position], _reshaped(value).producer()
            fused = made is not None and made.op_type == "Transpose" and _moves_batch(made)
            if fused and _is_constant(weights) and _is_float(weights):
                found[id(made)] = _TRANSPOSED
    return found


def _reshaped(value: ir.Value) -> ir.Value:
    """What Reshapes made `value` of."""
    made = value.producer()
    if made is None or made.op_type not in ("Identity", "Reshape") or made.inputs[0] is None:
        return value
    return _reshaped(made.inputs[0])


def _is_constant(value: ir.Value | None) -> bool:
    if value is None or value.const_value is not None:
        return value is not None
    made = value.producer()
    return made is not None and bool(made.inputs) and all(map(_is_constant, made.inputs))


def _is_float(value: ir.Value | None) -> bool:
    """Whether `value` is known to be 32-bit floats."""
    if value is None:
        return False
    made = value.producer()
    if value.dtype is not None or value.const_value is not None or made is None:
        constant = value.const_value
        return (value.dtype if constant is None else constant.dtype) is _D.FLOAT
    if made.op_type == "Cast":
        return made.attributes["to"] == _D.FLOAT
    return made.op_type in _KEEP_TYPE and _is_float(made.inputs[0])


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
    inside = np.where(np.isfinite(whole), whole.clip(-_LARGEST, _LARGEST), whole)
    return ir.Tensor(inside.astype(np.float16))
