"""int8 codes as int8, for files that others than ONNX Runtime read.

Graphs carry int8 tensors as uint8, with zero points moved by 128 (`graph.Graph`), so a file has a
DequantizeLinear and a QuantizeLinear where int8 inputs begin. Here codes and zero points are moved
back, and the pairs, which then do nothing, are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeGuard

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.value_types import value_types
from tflite_ort.opmap.onnx_graph.writing.code_moves import (
    COMPARING,
    Parameters,
    alike,
    moved_inputs,
    moved_values,
    parameters_of,
)
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Names

_TOP_BIT = np.uint8(128)


def make_signed(graph: ir.Graph) -> None:
    """Carry uint8 codes as int8 wherever no node needs them to be uint8. uint8 inputs and outputs
    of the graph stay, and become int8 behind them."""
    types = value_types(graph)
    computed = [value for node in graph.nodes for value in node.outputs]
    members = (id(value) for value in (*graph.inputs, *computed))
    codes = _Sets({each for each in members if types.get(each) is ir.DataType.UINT8})
    _part_boundary(graph, codes)
    for node in graph.nodes:
        _join(node, codes)
    _keep_fixed(graph, codes)
    moved = codes.free()
    _Signed(graph, moved).rewrite()
    _leave_out_pairs(graph)


class _Sets:
    """Values that have one type, as sets that grow together; by `id`. Constants are in none: each
    reader has its own."""

    def __init__(self, members: set[int]) -> None:
        self._parent = {each: each for each in members}
        self._fixed = set[int]()

    def __contains__(self, value: ir.Value) -> bool:
        return id(value) in self._parent

    def add(self, value: ir.Value) -> None:
        self._parent[id(value)] = id(value)

    def join(self, values: Sequence[ir.Value]) -> None:
        """These have one type."""
        first, *others = (self._top(id(value)) for value in values)
        for other in others:
            self._parent[self._top(other)] = self._top(first)

    def fix(self, values: Iterable[ir.Value | None]) -> None:
        """These stay what they are."""
        self._fixed.update(id(value) for value in values if value is not None and value in self)

    def free(self) -> set[int]:
        """All members of sets of which none is fixed."""
        fixed = set(map(self._top, self._fixed))
        return {each for each in self._parent if self._top(each) not in fixed}

    def _top(self, member: int) -> int:
        while self._parent[member] != member:
            self._parent[member] = self._parent[self._parent[member]]
            member = self._parent[member]
        return member


def _is_constant(value: ir.Value | None) -> TypeGuard[ir.Value]:
    return value is not None and value.const_value is not None and value.producer() is None


def _join(node: ir.Node, codes: _Sets) -> None:
    """Join what `node` moves, and fix what it computes with."""
    if node.op_type == "QuantizeLinear" and _is_constant(node.inputs[2]):
        codes.fix(node.inputs[:1])
        return
    if node.op_type == "DequantizeLinear" and all(map(_is_constant, node.inputs[2:])):
        return
    moved = moved_inputs(node)
    operands = [value for value in (*moved_values(node), *node.outputs) if value in codes]
    if moved and operands:
        codes.join(operands)
        codes.fix(each for place, each in enumerate(node.inputs) if place not in moved)
    elif node.op_type not in COMPARING:
        codes.fix((*node.inputs, *node.outputs))


def _keep_fixed(graph: ir.Graph, codes: _Sets) -> None:
    """Fix the inputs and outputs of the graph, and what bodies read."""
    codes.fix((*graph.inputs, *graph.outputs))
    for node in graph.nodes:
        for body in node.bodies:
            codes.fix(value for value, _, _ in body.reads())
            codes.fix(body.outputs)


def _part_boundary(graph: ir.Graph, codes: _Sets) -> None:
    """Let nodes read other codes than the inputs of the graph, and make others than its outputs: a
    pair of DequantizeLinear and QuantizeLinear stands between."""
    parameters, names = parameters_of(graph), Names(graph)
    for value in [each for each in graph.inputs if each in codes]:
        found = parameters.get(id(value))
        readers = [each for each in graph.nodes if value in each.inputs]
        if found is None or all(node.op_type == "DequantizeLinear" for node in readers):
            continue
        inner = ir.Value(names.free(f"{value.name}/codes"), dtype=ir.DataType.UINT8)
        for node in readers:
            node.inputs = tuple(inner if each is value else each for each in node.inputs)
        graph.nodes[:0] = _pair(value, inner, found, names)
        codes.add(inner)
    for value in [each for each in graph.outputs if each in codes]:
        found, maker = parameters.get(id(value)), value.producer()
        if found is None or maker is None or maker.op_type == "QuantizeLinear":
            continue
        inner = ir.Value(names.free(f"{value.name}/codes"), dtype=ir.DataType.UINT8)
        maker.give(maker.outputs.index(value), inner)
        for reader in graph.nodes:
            reader.inputs = tuple(inner if each is value else each for each in reader.inputs)
        graph.nodes += _pair(inner, value, found, names)
        codes.add(inner)


def _pair(given: ir.Value, made: ir.Value, parameters: Parameters, names: Names) -> list[ir.Node]:
    real = ir.Value(names.free(f"{made.name}/pair"), dtype=ir.DataType.FLOAT)
    return [
        ir.Node("DequantizeLinear", [given, *parameters], [real], name=f"{real.name}/dequantized"),
        ir.Node("QuantizeLinear", [real, *parameters], [made], name=f"{real.name}/quantized"),
    ]


class _Signed:
    """The rewriting of a graph in which the codes `moved` become int8."""

    def __init__(self, graph: ir.Graph, moved: set[int]) -> None:
        self._graph, self._moved = graph, moved
        self._constants = dict[int, ir.Value]()
        self._names = Names(graph)

    def rewrite(self) -> None:
        """Give constants and zero points the codes that they have as int8."""
        for node in self._graph.nodes:
            if node.op_type == "DequantizeLinear":
                codes = node.inputs[0]
                unsigned = _is_constant(codes) and codes.dtype is ir.DataType.UINT8
                if unsigned or id(codes) in self._moved:
                    if unsigned:  # two that share constants stop ONNX Runtime's optimizer
                        self._constants.clear()
                    self._move_constants(node, (0, 2))
                    self._add_zero_point(node)
            elif id(node.outputs[0]) in self._moved:
                quantizes = node.op_type == "QuantizeLinear"
                self._move_constants(node, (2,) if quantizes else moved_inputs(node))
                for value in node.outputs:
                    value.dtype = ir.DataType.INT8
        self._graph.drop_unread()

    def _move_constants(self, node: ir.Node, places: Iterable[int]) -> None:
        inputs = list(node.inputs)
        for place in places:
            value = inputs[place] if place < len(inputs) else None
            if _is_constant(value) and value.dtype is ir.DataType.UINT8:
                inputs[place] = self._as_signed(value)
        node.inputs = tuple(inputs)

    def _add_zero_point(self, node: ir.Node) -> None:
        """Add the zero point that uint8 codes have if none is said: 0, which is -128 of int8."""
        if len(node.inputs) > 2:
            return
        codes, scale = node.inputs[:2]
        assert scale is not None
        assert scale.shape is not None
        sizes = [size for size in scale.shape if isinstance(size, int)]
        zero = self._graph.add_initializer(
            self._names.free(f"{scale.name}/zero_point"), np.full(sizes, -128, np.int8)
        )
        node.inputs = codes, scale, zero

    def _as_signed(self, value: ir.Value) -> ir.Value:
        if id(value) not in self._constants:
            assert value.const_value is not None
            array = (value.const_value.array ^ _TOP_BIT).view(np.int8)
            name = self._names.free(f"{value.name}/int8")
            self._constants[id(value)] = self._graph.add_initializer(name, array)
        return self._constants[id(value)]


def _leave_out_pairs(graph: ir.Graph) -> None:
    """Take out each DequantizeLinear and QuantizeLinear of one scale and zero point, which make
    codes of the same codes."""
    outputs = {id(value) for value in graph.outputs}
    same = dict[int, ir.Value]()
    for node in graph.nodes:
        node.inputs = tuple(v if v is None else same.get(id(v), v) for v in node.inputs)
        if node.op_type != "QuantizeLinear" or node.inputs[0] is None:
            continue
        (made,), before = node.outputs, node.inputs[0].producer()
        codes = before.inputs[0] if before is not None else None
        if before is None or codes is None or before.op_type != "DequantizeLinear":
            continue
        if not alike(before.inputs[1:], node.inputs[1:]):
            continue
        maker = codes.producer()
        if id(made) not in outputs:
            same[id(made)] = codes
        elif maker is not None and id(codes) not in outputs:
            maker.give(maker.outputs.index(codes), made)
            node.give(0, ir.Value(made.name))  # read by nothing
            same[id(codes)] = made
    for node in graph.all_nodes():
        node.inputs = tuple(v if v is None else same.get(id(v), v) for v in node.inputs)
    graph.nodes = ir.leading_to(graph.outputs, graph.nodes)
    graph.drop_unread()
