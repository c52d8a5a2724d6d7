"""Short names in graphs of which names would be a large part.

An operator that becomes fifty nodes, such as a step of an LSTM, would name each of them and each
value between them. The names of tensors of the model stay, and so do those of nodes that make one,
and of all nodes of operators that become a few. Nodes that may refuse what they read keep theirs
too: ONNX Runtime names them in its error.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from string import ascii_letters, digits

from tflite_ort.opmap.onnx_graph import ir

# Names are a large part where they are more than this part of them and of the constants.
_LARGE = 0.1
# The nodes of operators of at most so many nodes keep their names.
_FEW = 8
# Nodes that fail where an index is out of bounds.
_REFUSING = re.compile(r"Gather|(Tensor)?Scatter")
_CONSTANTS = re.compile(r"const/(value|weights)(#\d+)?")
_DIGITS = ascii_letters + digits


def shorten_names(graph: ir.Graph) -> None:
    """Give short names to values between the nodes of an operator, and none to these nodes."""
    names = sum(map(len, _names(graph)))
    constants = sum(
        value.const_value.nbytes
        for value in graph.initializers.values()
        if value.const_value is not None
    )
    if names > _LARGE * (names + constants):
        _Shortening(graph).run()


def _names(graph: ir.Graph) -> Iterator[str]:
    """The names as often as the graph has them."""
    for node in graph.all_nodes():
        yield node.name
        yield from (value.name for value in (*node.inputs, *node.outputs) if value is not None)


class _Shortening:
    def __init__(self, graph: ir.Graph) -> None:
        self._graph = graph
        self._counts = Counter(_label(node) for node in graph.all_nodes())
        self._own = {id(value) for value in (*graph.inputs, *graph.outputs)}
        inner = {id(v): v for node in graph.all_nodes() for v in self._inside(node)}
        constants = [v for v in graph.initializers.values() if id(v) not in self._own]
        inner |= {id(v): v for v in constants if _CONSTANTS.fullmatch(v.name)}
        self._inner = inner
        values = {id(v): v for node in graph.all_nodes() for v in node.outputs}
        values |= {id(v): v for v in (*graph.inputs, *graph.initializers.values())}
        self._taken = {value.name for key, value in values.items() if key not in inner}
        self._number = 0

    def run(self) -> None:
        """Name the values that are used most first."""
        for node in self._graph.all_nodes():
            for body in node.bodies:
                body.name = "body"
            outputs = [value for value in node.outputs if id(value) not in self._inner]
            named = outputs or _REFUSING.match(node.op_type)
            if self._counts[_label(node)] > _FEW and not named:
                node.name = ""
        uses = self._graph.read_counts()
        for key in sorted(self._inner, key=lambda key: -uses[key]):
            self._inner[key].name = self._next()
        constants = self._graph.initializers.values()
        self._graph.initializers = {value.name: value for value in constants}

    def _inside(self, node: ir.Node) -> Iterator[ir.Value]:
        """The values of a node that are no tensors of the model."""
        for value in node.outputs:
            made = value.name.startswith((f"{node.name}_out", "c/")) if node.name else True
            if made and id(value) not in self._own:
                yield value
        for body in node.bodies:
            yield from body.inputs

    def _next(self) -> str:
        name = ""
        while not name or name in self._taken:
            name, rest = "", self._number
            while not name or rest:
                rest, digit = divmod(rest, len(_DIGITS))
                name += _DIGITS[digit]
            self._number += 1
        return name


def _label(node: ir.Node) -> str:
    """The operator that a node is made for."""
    return node.name.rpartition("/")[0]
