"""Nodes of codes between a DequantizeLinear and a QuantizeLinear, as NPUs read a graph.

An NPU keeps one scale and one zero point for a tensor of codes: those of the first QuantizeLinear
or DequantizeLinear that it meets there. It does not see others, and computes with wrong numbers
without a word. It knows the scale of what a node makes only where such a pair stands around the
node: a Reshape of codes alone has none, and stays on the CPU, with all that hangs on it.

So each node that moves codes, or picks some of them, gets a pair with the scale of its tensor. The
codes stay the same. Where a tensor is read or written with another scale, that is computed by nodes
of floats, which the NPU leaves to the CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.rule import NodesAround

Array = npt.NDArray[Any]

# Nodes that take codes as they are, with the inputs that are codes of one scale; None: all.
_MOVES: dict[str, tuple[int, ...] | None] = dict.fromkeys(
    ("DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity"), (0,)
)
_MOVES |= dict.fromkeys(("MaxPool", "Reshape", "Resize", "Slice", "SpaceToDepth", "Split"), (0,))
_MOVES |= dict.fromkeys(("Squeeze", "Tile", "Transpose", "Unsqueeze"), (0,))
_MOVES |= {"Clip": (0, 1, 2), "Concat": None, "Max": None, "Min": None, "Pad": (0, 2)}
_MOVES |= {"Where": (1, 2)}
# Scales that are off by less than this part of a step of the highest code are the same: translators
# move halves so.
_PART = 0.01
_MIDDLE = 1 << 15
_Q, _DQ = "QuantizeLinear", "DequantizeLinear"


@record(eq=False)
class _Scale:
    """The scale and the zero point of a tensor, as nodes read them."""

    scale: ir.Value
    zero: ir.Value

    @property
    def key(self) -> tuple[bytes, bytes, str]:
        scale, zero = _array(self.scale), _array(self.zero)
        return scale.tobytes(), zero.tobytes(), str(zero.dtype)

    def is_near(self, other: _Scale) -> bool:
        """Whether no code stands for another number, but for a part of a step."""
        zeros = np.array_equal(_array(self.zero), _array(other.zero))
        ratio = float(_array(self.scale)) / float(_array(other.scale))
        return zeros and self.key[2] == other.key[2] and abs(ratio - 1) * self.ends[1] < _PART

    @property
    def ends(self) -> tuple[int, int]:
        """The lowest and the highest code."""
        found = np.iinfo(_array(self.zero).dtype)
        return int(found.min), int(found.max)


def pair_codes(graph: ir.Graph, around: NodesAround) -> None:
    """Put pairs around the nodes of `graph` that move codes, and give each tensor one scale."""
    _Paired(graph, around).write()


class _Paired:
    def __init__(self, graph: ir.Graph, around: NodesAround) -> None:
        self.graph, self._constants = graph, around.constants
        self._scales = self._declared()
        self._nodes: list[ir.Node] = []

    def _declared(self) -> dict[int, _Scale]:
        """By `id` of a value, its scale: the one that most nodes read or write it with, or what it
        is moved to and from."""
        groups = self._groups()
        votes: dict[int, Counter[tuple[bytes, bytes, str]]] = {}
        known: dict[tuple[bytes, bytes, str], _Scale] = {}
        for node in self.graph.nodes:
            scale = _scale_of(node)
            codes = node.outputs[0] if node.op_type == _Q else node.inputs[0]
            if scale is not None and codes is not None and codes.const_value is None:
                known.setdefault(scale.key, scale)
                votes.setdefault(groups.get(id(codes), id(codes)), Counter())[scale.key] += 1
        chosen = {group: known[found.most_common(1)[0][0]] for group, found in votes.items()}
        return {value: chosen[group] for value, group in groups.items() if group in chosen} | chosen

    def _groups(self) -> dict[int, int]:
        """By `id` of a value of codes that is moved, that of the first one of the same scale."""
        groups = dict[int, int]()
        for node in self.graph.nodes:
            if node.op_type not in _MOVES or node.domain:
                continue
            values = [*map(id, _codes(node)), *map(id, node.outputs)]
            joined = {groups.get(value, value) for value in values}
            first = min(joined, key=lambda group: group not in groups)
            groups.update(dict.fromkeys(values, first))
            if len(joined) > 1:
                groups |= {x: first for x, group in groups.items() if group in joined}
        return groups

    def write(self) -> None:
        """Give the graph its new nodes."""
        for node in self.graph.nodes:
            scale = _scale_of(node)
            if scale is not None:
                self._quantized(node, scale)
            elif node.op_type in _MOVES and not node.domain:
                self._moved(node)
            else:
                self._nodes.append(node)
        self._unsign()
        self.graph.nodes = self._nodes
        for value in self._constants_made:
            self.graph.initializers[value.name] = value

    @property
    def _constants_made(self) -> list[ir.Value]:
        values = (value for node in self._nodes for value in node.inputs if value is not None)
        return [x for x in values if x.const_value and x.name not in self.graph.initializers]

    def _unsign(self) -> None:
        """Carry 16-bit codes as unsigned ones: these devices have few operators of others, and take
        a node whose codes have two types for one that keeps their bits. Other nodes, the inputs and
        the outputs of the graph have signed ones as before, behind nodes of integers."""
        pairs = {id(node) for node in self._nodes if _is_wide(node)}
        others = [node for node in self._nodes if id(node) not in pairs]
        signed = {id(value) for node in others for value in node.inputs if value is not None}
        signed.update(map(id, self.graph.outputs))
        read = (node.inputs[0] for node in self._nodes if id(node) in pairs and node.op_type == _DQ)
        unsigned = {id(x): ir.Value(f"{x.name}/unsigned") for x in read if x is not None}
        nodes, self._nodes = self._nodes, []
        for value in self.graph.inputs:
            self._raise(value, unsigned)
        for node in nodes:
            made = node.outputs[0]
            self._nodes.append(node)
            if id(node) not in pairs:
                for value in node.outputs:
                    self._raise(value, unsigned)
                continue
            codes, scale, zero = node.inputs
            assert codes is not None and zero is not None
            zero = self._constants.shared(_raised(_array(zero)))
            if codes.const_value is not None:
                codes = self._constants.shared(_raised(_array(codes)))
            elif node.op_type == _DQ:
                codes = unsigned[id(codes)]
            elif id(made) in signed or id(made) in unsigned:
                carried = unsigned.get(id(made)) or ir.Value(f"{made.name}/unsigned")
                node.give(0, carried)
                if id(made) in signed:
                    self._nodes += self._added(carried, -_MIDDLE, made, ir.DataType.INT16)
            node.inputs = codes, scale, zero

    def _raise(self, codes: ir.Value, unsigned: Mapping[int, ir.Value]) -> None:
        """Make unsigned codes of those that some nodes read as such."""
        made = unsigned.get(id(codes))
        if made is not None:
            self._nodes += self._added(codes, _MIDDLE, made, ir.DataType.UINT16)

    def _added(
        self, codes: ir.Value, number: int, made: ir.Value, to: ir.DataType
    ) -> Sequence[ir.Node]:
        """Nodes that make codes of another type, with another zero point."""
        wide, total = (ir.Value(f"{codes.name}/{what}") for what in ("wide", "total"))
        term = self._constants.shared(np.array(number, np.int32))
        first = ir.Node("Cast", [codes], [wide], attributes={"to": int(ir.DataType.INT32)})
        second = ir.Node("Add", [wide, term], [total])
        third = ir.Node("Cast", [total], [made], attributes={"to": int(to)})
        for node in (first, second, third):
            node.name = f"{node.outputs[0].name}/{node.op_type}"
        return first, second, third

    def _moved(self, node: ir.Node) -> None:
        scales = [self._scales.get(id(value)) for value in (*_codes(node), *node.outputs)]
        own = scales[-1]
        keys = {None if scale is None else scale.key for scale in scales}
        if own is None or len(keys) != 1:
            self._nodes.append(node)
            return
        if node.op_type == "Clip":
            self._cut(node, own)
            return
        places = _places(node)
        node.inputs = tuple(
            value if value is None or place not in places else self._real(value, own, node)
            for place, value in enumerate(node.inputs)
        )
        self._nodes.append(node)
        for number, codes in enumerate(node.outputs):
            real = ir.Value(f"{codes.name}/moved")
            node.give(number, real)
            self._add(_Q, [real, own.scale, own.zero], codes)

    def _cut(self, node: ir.Node, own: _Scale) -> None:
        """A Clip as a Max and a Min: behind a convolution the HTP leaves out a Clip of 16-bit
        codes, and one of 8-bit codes whose upper end is the highest code."""
        codes, low, high = (*node.inputs, None)[:3]
        ends = [
            (name, limit)
            for name, limit, end in zip(("Max", "Min"), (low, high), own.ends, strict=True)
            if limit is not None and (not _is_single(limit) or _array(limit) != end)
        ]
        if codes is None or not ends:
            self._nodes.append(node)
            return
        for number, (name, limit) in enumerate(ends):
            terms = [self._add(_DQ, [each, own.scale, own.zero]) for each in (codes, limit)]
            made = None if number < len(ends) - 1 else node.outputs[0]
            codes = self._add(_Q, [self._add(name, terms), own.scale, own.zero], made)

    def _real(self, codes: ir.Value, own: _Scale, node: ir.Node) -> ir.Value:
        """The numbers that codes stand for."""
        real = ir.Value(f"{codes.name}/before/{node.name}")
        return self._add(_DQ, [codes, own.scale, own.zero], real)

    def _quantized(self, node: ir.Node, scale: _Scale) -> None:
        """A node that reads or writes codes; one that does so with another scale than theirs
        becomes nodes of floats."""
        codes = node.outputs[0] if node.op_type == _Q else node.inputs[0]
        own = None if codes is None or codes.const_value else self._scales[id(codes)]
        if own is not None and own.is_near(scale):
            node.inputs = (node.inputs[0], own.scale, own.zero)
        if codes is None or own is None or own.is_near(scale):
            self._nodes.append(node)
            return
        zero = self._constants.add(_array(scale.zero).astype(np.float32), "zero")
        if node.op_type == _DQ:
            steps = self._add("Sub", [self._cast(codes, ir.DataType.FLOAT), zero])
            self._add("Mul", [steps, scale.scale], node.outputs[0])
            return
        steps = self._add("Round", [self._add("Div", [node.inputs[0], scale.scale])])
        moved = self._add("Add", [steps, zero])
        ends = (self._constants.add(np.array(end, np.float32), "end") for end in scale.ends)
        held = self._add("Clip", [moved, *ends])
        self._cast(held, ir.DataType.from_numpy(_array(scale.zero).dtype), codes)

    def _cast(self, value: ir.Value, to: ir.DataType, made: ir.Value | None = None) -> ir.Value:
        return self._add("Cast", [value], made, to=int(to))

    def _add(
        self, op: str, inputs: list[Any], made: ir.Value | None = None, **attributes: int
    ) -> ir.Value:
        name = f"{inputs[0].name}/{op}_{len(self._nodes)}"
        made = ir.Value(name) if made is None else made
        self._nodes.append(ir.Node(op, inputs, [made], attributes=attributes, name=name))
        return made


def _is_wide(node: ir.Node) -> bool:
    """Whether a node reads or writes signed codes of 16 bits, with one scale."""
    scale = _scale_of(node)
    return scale is not None and _array(scale.zero).dtype == np.int16


def _raised(codes: Array) -> Array:
    """16-bit codes as unsigned ones."""
    return (codes.astype(np.int32) + _MIDDLE).astype(np.uint16)


def _places(node: ir.Node) -> tuple[int, ...]:
    """The numbers of the inputs of a move that are codes."""
    found = _MOVES[node.op_type]
    return tuple(range(len(node.inputs))) if found is None else found


def _codes(node: ir.Node) -> list[ir.Value]:
    """The inputs of a move that are codes, without single constants."""
    given = [node.inputs[place] for place in _places(node) if place < len(node.inputs)]
    return [value for value in given if value is not None and not _is_single(value)]


def _is_single(value: ir.Value) -> bool:
    return value.const_value is not None and value.const_value.array.size == 1


def _scale_of(node: ir.Node) -> _Scale | None:
    """What a QuantizeLinear or DequantizeLinear of a whole tensor says; None of other nodes."""
    if node.op_type not in (_Q, _DQ) or node.domain or len(node.inputs) < 3:
        return None
    _, scale, zero = node.inputs
    if scale is None or zero is None or scale.const_value is None or zero.const_value is None:
        return None
    return _Scale(scale, zero) if _array(scale).ndim == 0 else None


def _array(value: ir.Value) -> Array:
    assert value.const_value is not None
    return value.const_value.array
