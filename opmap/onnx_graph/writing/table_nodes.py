"""Nodes that make constants of less than these. ONNX Runtime computes them once, at load."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir

Array = npt.NDArray[Any]

# What names begin with: there may be many.
_MADE = "c/"


class Names:
    """Names in a graph that nothing has."""

    def __init__(self, graph: ir.Graph) -> None:
        self._taken = {*graph.initializers, *(value.name for value in graph.inputs)}
        for node in graph.all_nodes():
            self._taken.update(value.name for value in node.outputs)
            for body in node.bodies:
                self._taken.update(value.name for value in body.inputs)
        self._counts = Counter[str]()

    def free(self, name: str) -> str:
        """`name`, or one that begins so."""
        made = name
        while made in self._taken:
            self._counts[name] += 1
            made = f"{name}_{self._counts[name]}"
        self._taken.add(made)
        return made


class Constants:
    """Initializers of a graph, each by what it is for.

    Args:
        graph: of the file.
    """

    def __init__(self, graph: ir.Graph) -> None:
        self.names = Names(graph)
        self._graph, self._known = graph, dict[str, ir.Value]()

    def __call__(self, name: str, array: Array) -> ir.Value:
        """The initializer of a name, which is made once."""
        if name not in self._known:
            self._known[name] = self._graph.add_initializer(self.names.free(name), array)
        return self._known[name]


class TableNodes:
    """The nodes, in one graph, that make its constants; equal nodes are added once.

    Args:
        nodes: to which nodes are added.
        constant: of the file.

    Attributes:
        exps: exponentials that are there, by their integer bits, see `gate_tables`.
    """

    def __init__(self, nodes: list[ir.Node], constant: Constants) -> None:
        self._nodes, self.constant = nodes, constant
        self.exps: dict[int, ir.Value] = {}
        self._known: dict[Any, ir.Value] = {}

    def add(
        self, op_type: str, *inputs: ir.Value, output: ir.Value | None = None, **attributes: Any
    ) -> ir.Value:
        """The output of a node; `output`, if it is to be that."""
        key = (op_type, *map(id, inputs), *attributes.items())
        if output is None and key in self._known:
            return self._known[key]
        made = output or ir.Value(self.constant.names.free(f"{_MADE}{len(self._known)}"))
        self._nodes.append(ir.Node(op_type, inputs, [made], attributes=attributes))
        self._known[key] = made
        return made

    def split(self, whole: ir.Value, outputs: Sequence[ir.Value], sizes: Sequence[int]) -> None:
        """Let `outputs` be the parts of so many rows."""
        name = self.constant.names.free(f"{whole.name}_sizes")
        counts = self.constant(name, np.array(sizes, np.int64))
        self._nodes.append(ir.Node("Split", [whole, counts], outputs))

    def number(self, value: int) -> ir.Value:
        """An int32 scalar."""
        return self.constant(f"{_MADE}i{value}", np.array(value, np.int32))

    def long(self, value: int) -> ir.Value:
        """An int64 scalar."""
        return self.constant(f"{_MADE}l{value}", np.array(value, np.int64))

    def list(self, value: int) -> ir.Value:
        """An int64 list of one number."""
        return self.constant(f"{_MADE}s{value}", np.array([value], np.int64))

    def range(self, first: int, end: int, step: int, dtype: npt.DTypeLike = np.int32) -> ir.Value:
        """The numbers from `first` on, before `end`."""
        scalar: Callable[[int], ir.Value] = self.number if dtype is np.int32 else self.long
        return self.add("Range", *map(scalar, (first, end, step)))

    def slice(self, whole: ir.Value, first: int, end: int, step: int = 1) -> ir.Value:
        """Every `step`-th element of a list."""
        return self.add("Slice", whole, *map(self.list, (first, end, 0, step)))
