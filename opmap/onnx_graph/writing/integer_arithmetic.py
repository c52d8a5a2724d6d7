"""Nodes that compute whole numbers in floats, such as codes, counts and places in a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.value_types import Types, constant_values

_D = ir.DataType
_INTEGERS = frozenset(
    {_D.INT8, _D.UINT8, _D.INT16, _D.UINT16, _D.INT32, _D.UINT32, _D.INT64, _D.UINT64}
)
_FLOATS = frozenset({_D.FLOAT, _D.DOUBLE, _D.FLOAT16, _D.BFLOAT16})
_LOOKUPS = frozenset({"Gather", "GatherElements", "GatherND"})
PRODUCTS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul"})
# What moves numbers, and arithmetic that whole numbers come from or go into.
_MOVES = ("Concat", "Expand", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze", "Tile",
          "Transpose", "Unsqueeze")  # fmt: skip
_ARITHMETIC = ("Abs", "Add", "Ceil", "Clip", "CumSum", "Div", "Floor", "Max", "Min", "Mod", "Mul",
               "Neg", "ReduceMax", "ReduceMin", "ReduceSum", "Round", "Sign", "Sub",
               "Where")  # fmt: skip
# What makes choices or indices of floats.
_COMPARISONS = frozenset({"ArgMax", "ArgMin", "Equal", "Greater", "GreaterOrEqual", "IsInf",
                          "IsNaN", "Less", "LessOrEqual", "TopK", "Unique"})  # fmt: skip
_NEAR = frozenset({*_MOVES, *_ARITHMETIC})
# The largest 16-bit float.
LARGEST = float(np.finfo(np.float16).max)


def integer_arithmetic(graph: ir.Graph, types: Types) -> set[int]:
    """The `id` of every node whose floats are whole numbers, or become some.

    These are the nodes between integers and integers; the arithmetic next to a Cast from or to
    integers, or next to a comparison; what makes constants for these; and all arithmetic of
    constants, which runs once.

    Args:
        types: of the values of the graph.
    """
    return _Search(graph, types).run()


class _Search:
    def __init__(self, graph: ir.Graph, types: Types) -> None:
        self._types, self._inputs = types, set(map(id, graph.inputs))
        self._floats = {key for key, found in types.items() if found in _FLOATS}
        self._nodes = graph.all_nodes()
        self._computed = {id(v) for node in self._nodes for v in node.outputs} | self._inputs
        self._before: dict[int, list[ir.Node]] = {id(node): [] for node in self._nodes}
        self._after: dict[int, list[ir.Node]] = {id(node): [] for node in self._nodes}
        self._fixed = constant_values(graph)
        self._results = set(map(id, graph.outputs))
        self._link_all()
        self._constants = self._of_constants()

    def _link_all(self) -> None:
        """Nodes that floats lead to, and that they come from; a node with bodies is one place,
        which what goes in and comes out of them passes."""
        owner = {id(v): node for node in self._nodes for body in node.bodies for v in body.inputs}
        self._computed |= set(owner)
        for node in self._nodes:
            for value in node.inputs:
                self._link(value, node, owner)
            for body in node.bodies:
                for value in body.outputs:
                    self._link(value, node, owner)

    def _link(self, value: ir.Value | None, node: ir.Node, owner: Mapping[int, ir.Node]) -> None:
        if value is None or id(value) not in self._floats:
            return
        made = value.producer() or owner.get(id(value))
        if made is not None and id(made) in self._after:
            self._after[id(made)].append(node)
            self._before[id(node)].append(made)

    def run(self) -> set[int]:
        """All of it."""
        made = [node for node in self._nodes if self._is_source(node)]
        ends = [node for node in self._nodes if self._is_sink(node)]
        ahead, back = _closure(made, self._after), _closure(ends, self._before)
        casts = [node for node in made if node.op_type not in _LOOKUPS]
        found = {key for key in ahead if key in back}
        found |= set(_closure(casts, self._after, self._goes_on))
        found |= set(_closure(ends, self._before, _is_near))
        compared = [node for node in self._nodes if self._compares(node)]
        found |= set(_closure(compared, self._before, _is_near_in_range))
        found |= {id(node) for node in self._nodes if self._stays_whole(node)}
        wide = [node for node in self._nodes if id(node) in found]
        return found | set(_closure(wide, self._before, self._is_constant))

    def _of_constants(self) -> set[int]:
        """Nodes that make floats of no other floats than constants."""
        found: set[int] = set()
        for node in self._nodes:
            floats = [v for v in node.inputs if v is not None and id(v) in self._floats]
            made = all(self._is_fixed(value, found) for value in floats)
            if made and not node.bodies and not self._reads_integers(node):
                found.add(id(node))
        return found

    def _is_fixed(self, value: ir.Value, found: set[int]) -> bool:
        made = value.producer()
        return id(value) not in self._computed or (made is not None and id(made) in found)

    def _reads_integers(self, node: ir.Node) -> bool:
        """Whether it makes floats of integers that are no constants."""
        place = 1 if node.op_type in _LOOKUPS else 0
        if node.op_type not in (*_LOOKUPS, "Cast", "DequantizeLinear"):
            return False
        given = node.inputs[place]
        whole = given is not None and self._types.get(id(given)) in _INTEGERS
        return whole and id(given) not in self._fixed

    def _is_source(self, node: ir.Node) -> bool:
        if not self._reads_integers(node) or id(node.outputs[0]) not in self._floats:
            return False
        data = node.inputs[0]
        table = data is not None and self._is_fixed(data, self._constants)
        return node.op_type not in _LOOKUPS or table

    def _is_sink(self, node: ir.Node) -> bool:
        given = node.inputs[0] if node.inputs else None
        if given is None or id(given) not in self._floats:
            return False
        to = node.attributes.get("to")
        return node.op_type == "QuantizeLinear" or (node.op_type == "Cast" and to in _INTEGERS)

    def _compares(self, node: ir.Node) -> bool:
        """Whether it needs floats as they are: to compare them, or in 64 bits."""
        if not any(id(value) in self._floats for value in node.inputs):
            return False
        return node.op_type in _COMPARISONS or node.attributes.get("to") == _D.DOUBLE

    def _goes_on(self, node: ir.Node) -> bool:
        """Whether a node that reads whole numbers gives such: numbers that 16 bits do not hold,
        such as what stands for minus infinity in a mask, are for real numbers."""
        if node.op_type in PRODUCTS:
            return any(map(self._is_integer_weight, node.inputs[:2]))
        return _is_near_in_range(node)

    def _is_integer_weight(self, value: ir.Value | None) -> bool:
        """Whether this is a constant of whole numbers."""
        made = None if value is None else value.producer()
        while made is not None and made.op_type in _MOVES and made.inputs:
            moved = made.inputs[0]
            made = None if moved is None else moved.producer()
        if made is None or made.op_type != "Cast" or id(made.inputs[0]) not in self._fixed:
            return False
        return self._types.get(id(made.inputs[0])) in _INTEGERS

    def _stays_whole(self, node: ir.Node) -> bool:
        """Whether it computes a constant, which is rounded after that, or a constant result."""
        if id(node) not in self._constants or not node.outputs:
            return False
        moved = node.op_type in (*_MOVES, "Cast")
        fixed = id(node.outputs[0]) in self._fixed
        return (fixed and not moved) or any(id(value) in self._results for value in node.outputs)

    def _is_constant(self, node: ir.Node) -> bool:
        return id(node) in self._constants


def _closure(
    first: Iterable[ir.Node],
    edges: Mapping[int, list[ir.Node]],
    through: Callable[[ir.Node], bool] = bool,
) -> dict[int, ir.Node]:
    """`first` and what `edges` lead to from there, by identity."""
    found = {id(node): node for node in first}
    waiting = list(found.values())
    while waiting:
        for node in edges[id(waiting.pop())]:
            if id(node) not in found and through(node):
                found[id(node)] = node
                waiting.append(node)
    return found


def _is_near(node: ir.Node) -> bool:
    return node.op_type in _NEAR and not node.domain


def _is_near_in_range(node: ir.Node) -> bool:
    return _is_near(node) and not any(_is_beyond(value) for value in node.inputs)


def _is_beyond(value: ir.Value | None) -> bool:
    return value is not None and beyond_half(value.const_value) is not None


def beyond_half(constant: ir.Tensor | None) -> float | None:
    """The largest of some 32-bit floats, if 16-bit floats do not reach it."""
    if constant is None or constant.dtype is not _D.FLOAT:
        return None
    numbers = np.abs(constant.array)
    largest = float(np.max(numbers, initial=0, where=np.isfinite(numbers)))
    return largest if largest > LARGEST else None
