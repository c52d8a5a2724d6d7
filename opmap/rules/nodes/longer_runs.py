"""Constants that broadcast in short runs over what a node computes with them, in longer ones.

ONNX Runtime goes through both operands in runs in which neither begins anew, and a run takes 10 to
60 ns. A single number begins anew in each axis that it does not have: over 1 x 1152 x 1 x 1 numbers
there are 1,152 runs, and one run if it has three axes of one element. So single numbers get all
axes of the result, and other short constants are repeated along its last axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from tflite_ort.opmap.idioms.long_runs import repeated_shape
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

Sizes = tuple[int, ...]

_BROADCASTING = frozenset(
    {
        *("Add", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"),
        *("Mod", "Mul", "Pow", "Sub"),
    }
)
# Nodes whose result has the shape of their first input.
_ALIKE = frozenset(
    {
        *("Abs", "Cast", "Ceil", "Clip", "DequantizeLinear", "Exp", "Floor", "LeakyRelu", "Log"),
        *("Neg", "QuantizeLinear", "Reciprocal", "Relu", "Round", "Sigmoid", "Softmax", "Sqrt"),
        *("Tanh",),
    }
)
# ONNX Runtime makes these and a constant before them one node, if the constant is a scalar; and
# layers and a constant behind them, if it is as long as an axis.
_FUSED_BEHIND = frozenset({"Erf", "Pow", "Sigmoid", "Sqrt", "Tanh"})
_LAYERS = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "MatMulIntegerToFloat"})
# Fewer runs than this take less time than a node.
_LEAST_RUNS = 48
# Of constants that are repeated.
_MOST_ELEMENTS = 1 << 14
# So many runs take more time than to repeat a row that is computed.
_MANY_RUNS = 2048


def lengthen_runs(graph: ir.Graph, around: NodesAround) -> None:
    """Change `graph` as above."""
    if any(node.op_type in _BROADCASTING for node in graph.nodes):
        _Longer(graph, around).change()


class _Longer:
    """Changes the operands of a graph."""

    def __init__(self, graph: ir.Graph, around: NodesAround) -> None:
        self._graph, self._constants = graph, around.constants
        self._known = _known_sizes(graph, around)
        self._made: dict[tuple[int, Sizes], ir.Value] = {}
        self._nodes: list[ir.Node] = []

    @cached_property
    def _readers(self) -> Mapping[int, Sequence[ir.Node]]:
        return self._graph.readers()

    def change(self) -> None:
        """Change all of them."""
        for node in self._graph.nodes:
            sizes = self._known.get(id(node.outputs[0]))
            if node.op_type in _BROADCASTING and sizes is not None and len(node.inputs) == 2:
                self._change_one(node, sizes)
            self._nodes.append(node)
        self._graph.nodes = self._nodes

    def _change_one(self, node: ir.Node, sizes: Sizes) -> None:
        """Change the operand of `node` that has short runs, if it has one."""
        for place, value in enumerate(node.inputs):
            own = _sizes(_stored(value), self._known)
            if value is None or own is None:
                continue
            tensor = _stored(value).const_value
            constant = tensor is not None
            if constant and tensor.array.shape != tensor.shape:
                continue  # two to a byte
            longer = _longer(own, sizes) if constant else _longer_row(own, sizes)
            if longer is None or (constant and self._may_be_fused(node, place)):
                continue
            made = self._with_sizes(value, longer)
            node.inputs = (*node.inputs[:place], made, *node.inputs[place + 1 :])
            return

    def _may_be_fused(self, node: ir.Node, place: int) -> bool:
        """Whether ONNX Runtime may make `node`, its constant and its neighbours one node."""
        value, other = node.inputs[place], node.inputs[1 - place]
        tensor = None if value is None else value.const_value
        if tensor is None or tensor.dtype is not ir.DataType.FLOAT:
            return False
        if tensor.array.size == 1:
            readers = self._readers.get(id(node.outputs[0]), ())
            return any(each.op_type in _FUSED_BEHIND for each in readers)
        maker = None if other is None else other.producer()
        return maker is not None and maker.op_type in _LAYERS

    def _with_sizes(self, value: ir.Value, longer: Sizes) -> ir.Value:
        """`value` in these sizes."""
        if (id(value), longer) not in self._made:
            self._made[id(value), longer] = self._repeated(value, longer)
        return self._made[id(value), longer]

    def _repeated(self, value: ir.Value, longer: Sizes) -> ir.Value:
        stored, maker = _stored(value), value.producer()
        if stored.const_value is not None:
            array = np.broadcast_to(stored.const_value.array, longer)
            made = self._constants.shared(np.ascontiguousarray(array))
        else:
            sizes = self._constants.shared(np.array(longer, np.int64))
            made = self._added("Expand", [stored, sizes], value, longer, stored.dtype)
        if stored is value or maker is None:
            return made
        return self._added(maker.op_type, [made, *maker.inputs[1:]], value, longer, value.dtype)

    def _added(
        self,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        value: ir.Value,
        longer: Sizes,
        dtype: ir.DataType | None,
    ) -> ir.Value:
        """The result of a node that is added; it is called after what it repeats."""
        name = f"{value.name}/{op_type}_{'_'.join(map(str, longer))}"
        maker = value.producer()
        attributes = None if maker is None or maker.op_type != op_type else maker.attributes
        result = ir.Value(name, dtype=dtype)
        self._nodes.append(ir.Node(op_type, inputs, [result], attributes=attributes, name=name))
        return result


def _known_sizes(graph: ir.Graph, around: NodesAround) -> Mapping[int, Sizes]:
    """By the `id` of a value its shape: of tensors, and of what is computed between them."""
    known = dict[int, Sizes]()
    for key, (value, noted) in around.sizes.items():
        now = tuple(size for size in value.shape or () if isinstance(size, int))
        # A map has another number of channels if a rule has given it more.
        known[key] = now if len(now) == len(noted) else noted
    for node in reversed(graph.nodes):
        sizes = known.get(id(node.outputs[0]))
        if sizes is None:
            continue
        computed = [each for each in node.inputs if each is not None and each.const_value is None]
        if node.op_type in _ALIKE:
            computed = computed[:1]
        elif node.op_type not in _BROADCASTING or not _others_are_scalars(node, sizes):
            continue
        if len(computed) == 1:
            known.setdefault(id(computed[0]), sizes)
    for node in graph.nodes:
        given = [_sizes(value, known) for value in node.inputs]
        made = _made(node, given) if given and id(node.outputs[0]) not in known else None
        if made is not None:
            known.update((id(value), made) for value in node.outputs if id(value) not in known)
    return known


def _others_are_scalars(node: ir.Node, sizes: Sizes) -> bool:
    """Whether all operands of `node` but a computed one have one element, and no more axes."""
    constants = [each.const_value for each in node.inputs if each is not None]
    known = [each for each in constants if each is not None]
    return len(known) == len(constants) - 1 and all(
        prod(each.shape) == 1 and len(each.shape) <= len(sizes) for each in known
    )


def _made(node: ir.Node, given: Sequence[Sizes | None]) -> Sizes | None:
    """The shape of all results of a node for those of its inputs, where it is known."""
    kind, (first, *others) = node.op_type, given
    attributes: Mapping[str, Any] = node.attributes
    if not first or node.domain:
        return None
    if kind in _ALIKE:
        return first
    if kind.startswith("Reduce") and attributes.get("keepdims", 1):
        axes = node.constant(1)
        return None if axes is None else _with(first, {int(i) % len(first): 1 for i in axes})
    if kind == "Split" and attributes.get("num_outputs") == len(node.outputs):
        axis, parts = attributes.get("axis", 0) % len(first), len(node.outputs)
        return None if first[axis] % parts else _with(first, {axis: first[axis] // parts})
    if None in others:
        return None
    shapes = [first, *(each for each in others if each is not None)]
    if kind in _BROADCASTING:
        return _broadcast(*shapes)
    if any(len(each) != len(first) for each in shapes[:2]) or len(first) < 2:
        return None
    if kind == "Concat" and all(len(each) == len(first) for each in shapes):
        axis = attributes["axis"] % len(first)
        return _with(first, {axis: sum(each[axis] for each in shapes)})
    if kind == "Conv" and len(attributes.get("pads", ())) == 2 * len(first[2:]):
        return first[0], shapes[1][0], *_windows(first[2:], shapes[1][2:], attributes)
    if kind == "MatMul":
        lead = _broadcast(first[:-2], shapes[1][:-2])
        return None if lead is None else (*lead, first[-2], shapes[1][-1])
    return None


def _broadcast(*shapes: Sizes) -> Sizes | None:
    """The shape in which tensors broadcast; None where they do not."""
    rank = max(map(len, shapes))
    axes = zip(*((1,) * (rank - len(each)) + each for each in shapes), strict=True)
    found = [set(axis) - {1} for axis in axes]
    if any(len(axis) > 1 for axis in found):
        return None
    return tuple(axis.pop() if axis else 1 for axis in found)


def _windows(cells: Sizes, window: Sizes, attributes: Mapping[str, Any]) -> Iterator[int]:
    """How many windows a convolution has along each axis."""
    pads, ones = attributes["pads"], (1,) * len(cells)
    steps, dilations = (attributes.get(name, ones) for name in ("strides", "dilations"))
    for axis, size in enumerate(cells):
        reach = (window[axis] - 1) * dilations[axis] + 1
        yield (size + pads[axis] + pads[axis + len(cells)] - reach) // steps[axis] + 1


def _with(sizes: Sizes, other: Mapping[int, int]) -> Sizes:
    """`sizes` with those of some axes exchanged."""
    return tuple(other.get(axis, size) for axis, size in enumerate(sizes))


def _sizes(value: ir.Value | None, known: Mapping[int, Sizes]) -> Sizes | None:
    if value is None:
        return None
    return known.get(id(value)) if value.const_value is None else value.const_value.shape


def _stored(value: Any) -> Any:
    """The codes of which numbers of one scale, or of another type, are made; any other value
    itself."""
    maker = None if value is None else value.producer()
    source = None if maker is None else maker.inputs[0] if maker.inputs else None
    if maker is None or source is None:
        return value
    if maker.op_type == "DequantizeLinear":
        scale = maker.constant(1)
        return source if scale is not None and scale.size == 1 else value
    return source if maker.op_type == "Cast" and source.const_value is not None else value


def _longer(own: Sizes, sizes: Sizes) -> Sizes | None:
    """The shape that a constant is to have in a result of these sizes; None where its runs are
    long, or few, or where it would take much memory."""
    if 0 in sizes or len(own) > len(sizes) or _runs(own, sizes) < _LEAST_RUNS:
        return None
    whole = (1,) * (len(sizes) - len(own)) + own
    if not all(a in (1, b) for a, b in zip(whole, sizes, strict=True)):
        return None  # what the file says of a shape is wrong
    longer = whole if prod(own) == 1 else tuple(repeated_shape(whole, sizes))
    enough = 2 * _runs(longer, sizes) <= _runs(own, sizes)
    return longer if enough and prod(longer) <= _MOST_ELEMENTS else None


def _longer_row(own: Sizes, sizes: Sizes) -> Sizes | None:
    """The same of what is computed: of a row that many rows of the result have, since repeating it
    takes time too."""
    if 0 in sizes or not own or own[-1] == 1 or prod(own) != own[-1]:
        return None
    return _longer(own, sizes) if _runs(own, sizes) >= _MANY_RUNS else None


def _runs(shape: Sizes, sizes: Sizes) -> int:
    """In how many runs ONNX Runtime goes through the result, and an operand of a shape."""
    return prod(sizes) // _run(shape, sizes)


def _run(shape: Sizes, sizes: Sizes) -> int:
    """How many numbers of the result, from the last one on, ONNX Runtime makes in one run.

    Axes of one element do not count if both operands have them, but for the first one of the
    smaller operand. Any other one ends a run, for it begins anew in one operand or the other.
    """
    run, kind = 1, None
    for axis in range(1, len(sizes) + 1):
        size, is_inside = sizes[-axis], axis < len(shape) + (kind is not None)
        own = shape[-axis] if axis <= len(shape) else 1
        if size == own == 1:
            if is_inside:
                continue
            break
        if kind not in (None, own < size):
            break
        run, kind = run * size, own < size
    return run
