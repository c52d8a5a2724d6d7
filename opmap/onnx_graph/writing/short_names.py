"""Short names in graphs of which names would be a large part.

An operator that becomes fifty nodes, such as a step of an LSTM, would name each of them and each
value between them. Nodes that make a tensor of the model keep their names, and so do all nodes of
operators that become a few. Nodes that may refuse what they read keep theirs too: ONNX Runtime
names them in its error.

A converter calls a tensor after the paths of all layers that it fused, joined by ``;``. Each reader
of the tensor repeats that. A file has the end of the first path, see `tensor_labels`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from string import ascii_letters, digits

from tflite_ort.opmap.onnx_graph import ir

# Names are a large part where they are more than this part of them and of the constants: of tensors
# of the model, and of all.
_LONG, _LARGE = 0.02, 0.1
# A label has so many steps of a path at least, and at most.
_STEPS = (2, 6)
# The nodes of operators of at most so many nodes keep their names.
_FEW = 8
# Nodes that fail where an index is out of bounds.
_REFUSING = re.compile(r"Gather|(Tensor)?Scatter")
_CONSTANTS = re.compile(
    r"c/.*|const/((value|bias|(input_|recurrent_)?weights)(#\d+)?(_codes)?"
    r"|.*_(scales?|zero_point|codes|sizes|runs)(_\d+)?(#\d+)?)"
    r"|.*/[A-Z][A-Za-z]*(_\d+)?_out"  # a node made it that is folded
)
# What is added to the name of a tensor: the form in which it is there, and a number if it is there
# so again.
_FORM, _AGAIN = re.compile(r"(/(nchw|rows|real|file)){0,3}$"), re.compile(r"_\d+$")
# What follows the name of a tensor where an input or output has it.
_INDEX = re.compile(r"#\d+$")
_CONSTANT = "const/"
_REAL = "/real"
_DIGITS = ascii_letters + digits


def shorten_names(graph: ir.Graph, tensors: Iterable[str]) -> None:
    """Give labels to tensors, short names to values between the nodes of an operator, and none to
    these nodes.

    Args:
        tensors: the names that the model gives to its tensors.
    """
    names = sum(map(len, _names(graph)))
    constants = sum(
        value.const_value.nbytes
        for value in graph.initializers.values()
        if value.const_value is not None
    )
    if names > _LONG * (names + constants):
        _label_tensors(graph, tensor_labels(tensors))
    if names > _LARGE * (names + constants):
        _Shortening(graph).run()


def tensor_labels(names: Iterable[str]) -> dict[str, str]:
    """By the name of a tensor, what a file calls it: the shortest end of its first path that no
    other tensor has, of two steps or more. Where there is none, its place among the tensors tells
    it apart."""
    places = {name: place for place, name in enumerate(names)}
    ends = {name: list(_ends(name)) for name in places}
    taken = Counter(
        [*places, *(end for name, found in ends.items() for end in found if end != name)]
    )
    return {
        name: next(
            (end for end in found if end == name or taken[end] == 1), f"{found[0]}#{places[name]}"
        )
        for name, found in ends.items()
    }


def _ends(name: str) -> Iterator[str]:
    """The ends of the first of its paths, the shortest first; a number behind it stays."""
    path, _, rest = name.partition(";")
    steps = path.split("/")
    number = f";{rest}" if rest.isdecimal() else ""
    least, most = (min(count, len(steps)) for count in _STEPS)
    for count in range(least, most + 1):
        yield "/".join(steps[-count:]) + number


def _label_tensors(graph: ir.Graph, labels: Mapping[str, str]) -> None:
    """Call values that are tensors of the model by their labels."""
    ends = {id(value) for value in (*graph.inputs, *graph.outputs)}
    made = {id(v): v for node in graph.all_nodes() for v in node.outputs}
    made |= {id(value): value for value in graph.initializers.values()}
    taken = {value.name for value in (*made.values(), *graph.inputs)}
    taken |= {v.name for node in graph.all_nodes() for body in node.bodies for v in body.inputs}
    for key, value in made.items():
        label = _labelled(value.name, labels)
        if key not in ends and label not in taken:
            taken.add(label)
            value.name = label
    graph.initializers = {value.name: value for value in graph.initializers.values()}


def _labelled(name: str, labels: Mapping[str, str]) -> str:
    """The name of a value with the label of its tensor."""
    whole = name.removeprefix(_CONSTANT)
    plain = _FORM.sub("", whole)
    for tensor in (whole, plain, _FORM.sub("", _AGAIN.sub("", whole)), _INDEX.sub("", plain)):
        if tensor and tensor in labels:
            return name[: -len(whole)] + labels[tensor] + whole[len(tensor) :]
    return name


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
        self._known = {value.name for node in graph.all_nodes() for value in node.outputs}
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
            whole = value.name.removesuffix(_REAL)
            again = whole != value.name and whole in self._known
            if (made or again) and id(value) not in self._own:
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
