"""Lists of sizes in a graph as what the shapes of its inputs tell: numbers, and products of sizes.

A size is a number and the names of sizes that it is multiplied by, such as (4, ("batch",)). Sizes
are not below 0, and so a check of that is known to pass. What is not known is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from itertools import chain
from math import prod

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.known_values import Known, part_of_shape

Size = tuple[int, tuple[str, ...]]
Sizes = Sequence[Size | None]
_D = ir.DataType
_WHOLE = frozenset({_D.INT32, _D.INT64, _D.BOOL})
# Longer lists are no shapes.
_MOST = 64
_TRUE, _FALSE = (1, ()), (0, ())


class SizeLists:
    """What is known of the lists of integers in a graph, and of shapes.

    Args:
        known: of its values.
        unsure: names of sizes that may differ from one input to the other.
    """

    def __init__(self, graph: ir.Graph, known: Known, unsure: Set[str] = frozenset()) -> None:
        self._known, self._given = known, set(map(id, graph.inputs))
        self._unsure = unsure
        self._lists: dict[int, Sizes] = {}
        self._shapes: dict[int, Sizes] = {}
        for node in graph.nodes:
            self._follow(node)

    def of(self, value: ir.Value | None) -> Sizes | None:
        """The elements of a list or of a scalar; None where it is none of integers."""
        if value is None:
            return None
        constant = value.const_value
        if constant is None or id(value) in self._given:
            return self._lists.get(id(value))
        if constant.dtype not in _WHOLE or len(constant.shape) > 1 or constant.nbytes > 8 * _MOST:
            return None
        return [(int(each), ()) for each in constant.array.reshape(-1)]

    def shape(self, value: ir.Value | None) -> Sizes | None:
        """The shape of a value."""
        if value is not None and id(value) in self._shapes:
            return self._shapes[id(value)]
        shape = self._known.shape(value)
        if shape is None:
            return None
        return [None if each in self._unsure else _size(each) for each in shape]

    def _follow(self, node: ir.Node) -> None:
        if node.domain or node.bodies:
            return
        self._follow_shape(node)
        rule, made = _RULES.get(node.op_type), node.outputs[0]
        if node.op_type == "Shape":
            shape = self.shape(node.inputs[0])
            if shape is not None:
                self._lists[id(made)] = part_of_shape(shape, node)
        elif rule is not None and self._known.type(made) in _WHOLE:
            given = [self.of(value) for value in node.inputs]
            sizes = self._known.shape(made)
            if sizes is not None and len(sizes) < 2 and None not in given:
                found = rule(node, [each for each in given if each is not None])
                if found is not None and (not sizes or sizes[0] in (len(found), None)):
                    self._lists[id(made)] = found

    def _follow_shape(self, node: ir.Node) -> None:
        """Note a shape of which onnx does not know all."""
        made, source = node.outputs[0], node.inputs[0] if node.inputs else None
        known, before = self.shape(made), self.shape(source)
        if known is None or None not in known or before is None:
            return
        if node.op_type == "Reshape":
            target = self.of(node.inputs[1])
            found = None if target is None else _reshaped(target, before, node)
        elif len(before) == len(known) and _keeps_rows(node):
            found = [*before[:-1], known[-1]]
        else:
            found = None
        if found is not None and len(found) == len(known):
            self._shapes[id(made)] = [
                one if one is not None else other for one, other in zip(known, found, strict=True)
            ]


def product(sizes: Sizes) -> Size | None:
    """The number of elements of a shape."""
    known = [size for size in sizes if size is not None]
    if len(known) != len(sizes):
        return None
    names = sorted(chain.from_iterable(names for _, names in known))
    return prod(number for number, _ in known), tuple(names)


def _size(size: int | str | None) -> Size | None:
    if size is None:
        return None
    return (size, ()) if isinstance(size, int) else (1, (size,))


def _keeps_rows(node: ir.Node) -> bool:
    """Whether all axes but the last are those of the first input."""
    if node.op_type == "Gemm":
        return not node.attributes.get("transA", 0)
    weights = node.inputs[1].const_value if len(node.inputs) > 1 and node.inputs[1] else None
    if node.op_type in ("MatMul", "Add", "Mul", "Sub", "Div"):
        return weights is not None and len(weights.shape) <= (2 if node.op_type == "MatMul" else 1)
    return node.op_type in _ALIKE


_ALIKE = frozenset({"Relu", "Clip", "Softmax", "Sigmoid", "Tanh", "Gelu", "Erf", "Sqrt", "Neg"})


def _reshaped(target: Sizes, before: Sizes, node: ir.Node) -> Sizes:
    """The shape that a Reshape makes; None for sizes that are not known."""
    keeps = not node.attributes.get("allowzero", 0)
    found = [
        before[place] if keeps and size == _FALSE and place < len(before) else size
        for place, size in enumerate(target)
    ]
    if (-1, ()) in found:
        place = found.index((-1, ()))
        whole, rest = product(before), product([*found[:place], *found[place + 1 :]])
        found[place] = None if whole is None or rest is None else _quotient(whole, rest)
    return found


def _quotient(whole: Size, part: Size) -> Size | None:
    names = list(whole[1])
    for name in part[1]:
        if name not in names:
            return None
        names.remove(name)
    if not part[0] or whole[0] % part[0]:
        return None
    return whole[0] // part[0], tuple(names)


# What nodes make of lists ------------------------------------------------------------------------

Lists = Sequence[Sizes]


def _numbers(sizes: Sizes) -> list[int] | None:
    known = [size[0] for size in sizes if size is not None and not size[1]]
    return known if len(known) == len(sizes) else None


def _same(node: ir.Node, given: Lists) -> Sizes | None:
    return given[0]


def _slice(node: ir.Node, given: Lists) -> Sizes | None:
    bounds = [_numbers(each) for each in given[1:]]
    if len(bounds) < 2 or any(each is None or len(each) != 1 for each in bounds):
        return None
    first, end, *rest = (each[0] for each in bounds if each)
    return given[0][first:end] if rest[:1] in ([], [0]) and rest[1:] in ([], [1]) else None


def _gather(node: ir.Node, given: Lists) -> Sizes | None:
    places, (sizes, _) = _numbers(given[1]), given
    if places is None or node.attributes.get("axis", 0):
        return None
    inside = all(-len(sizes) <= place < len(sizes) for place in places)
    return [sizes[place] for place in places] if inside else None


def _joined(node: ir.Node, given: Lists) -> Sizes | None:
    return list(chain.from_iterable(given)) if node.attributes.get("axis") == 0 else None


def _whole_product(node: ir.Node, given: Lists) -> Sizes | None:
    made = product(given[0])
    return None if made is None else [made]


def _pairwise(function: Callable[..., Size | None]) -> Callable[[ir.Node, Lists], Sizes | None]:
    """Element by element; a list of one element is as long as the others."""

    def rule(node: ir.Node, given: Lists) -> Sizes | None:
        count = max(map(len, given))
        if any(len(each) not in (1, count) for each in given):
            return None
        rows = (each if len(each) == count else [each[0]] * count for each in given)
        return [function(*row) for row in zip(*rows, strict=True)]

    return rule


def _times(one: Size | None, other: Size | None) -> Size | None:
    return product([one, other])


def _plus(one: Size | None, other: Size | None) -> Size | None:
    if one == _FALSE or other == _FALSE:
        return other if one == _FALSE else one
    if one is None or other is None or one[1] != other[1]:
        return None
    return one[0] + other[0], one[1]


def _less(one: Size | None, other: Size | None) -> Size | None:
    if one is None or other is None:
        return None
    if not one[1] and not other[1]:
        return _TRUE if one[0] < other[0] else _FALSE
    if one[0] >= 0 and not other[1] and other[0] <= 0:
        return _FALSE
    return None


def _equal(one: Size | None, other: Size | None) -> Size | None:
    if one is None or other is None or one[1] != other[1]:
        return None
    return _TRUE if one == other else None if one[1] else _FALSE


def _or(one: Size | None, other: Size | None) -> Size | None:
    return _TRUE if _TRUE in (one, other) else _FALSE if one == other == _FALSE else None


def _not(one: Size | None) -> Size | None:
    return None if one is None else (1 - one[0], ())


def _where(test: Size | None, one: Size | None, other: Size | None) -> Size | None:
    if one == other or test is None:
        return one if one == other else None
    return one if test == _TRUE else other


_RULES: Mapping[str, Callable[[ir.Node, Lists], Sizes | None]] = {
    **dict.fromkeys(("Cast", "Squeeze", "Unsqueeze", "Reshape", "Identity"), _same),
    "Slice": _slice,
    "Gather": _gather,
    "Concat": _joined,
    "ReduceProd": _whole_product,
    "Mul": _pairwise(_times),
    "Add": _pairwise(_plus),
    "Less": _pairwise(_less),
    "Greater": _pairwise(lambda one, other: _less(other, one)),
    "Equal": _pairwise(_equal),
    "Or": _pairwise(_or),
    "Not": _pairwise(_not),
    "Where": _pairwise(_where),
}
IS_LIST = frozenset({*_RULES, "Shape"})
