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
from collections.abc import Sequence
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
        # The node around which others are made: they belong to its operator.
        self._around = ""

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
            self._around, scale = node.name, _scale_of(node)
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
        the outputs of the graph have signed ones as before."""
        wide = [node for node in self._nodes if _is_wide(node)]
        factors = self._factors(wide)
        pairs = {id(node) for node in wide if id(node) not in factors}
        others = [node for node in self._nodes if id(node) not in pairs]
        integers = [node for node in others if id(node) not in factors]
        counted = {id(value) for node in integers for value in node.inputs if value is not None}
        signed = {id(value) for node in others for value in node.inputs if value is not None}
        signed.update(map(id, self.graph.outputs))
        read = {
            id(node.inputs[0]): node for node in wide if id(node) in pairs and node.op_type == _DQ
        }
        unsigned = {
            key: ir.Value(f"{_present(node.inputs[0]).name}/unsigned") for key, node in read.items()
        }
        nodes, self._nodes = self._nodes, []
        self._around = "boundary/unsigned"
        for value in self.graph.inputs:
            if id(value) in read:
                _, scale, zero = map(_present, read[id(value)].inputs)
                self._carried(value, scale, zero, self._upper(zero), unsigned[id(value)])
        for node in nodes:
            made = node.outputs[0]
            self._around = f"{node.name}/unsigned"
            self._nodes.append(node)
            if id(node) not in pairs:
                for value in node.outputs:
                    if id(value) in read:
                        self._added(value, _MIDDLE, unsigned[id(value)], ir.DataType.UINT16)
                continue
            codes, scale, zero = map(_present, node.inputs)
            upper = self._upper(zero)
            if codes.const_value is not None:
                codes = self._constants.shared(_raised(_array(codes)))
            elif node.op_type == _DQ:
                codes = unsigned[id(codes)]
            elif id(made) in signed or id(made) in unsigned:
                carried = unsigned.get(id(made)) or ir.Value(f"{made.name}/unsigned")
                node.give(0, carried)
                if id(made) in counted:
                    self._added(carried, -_MIDDLE, made, ir.DataType.INT16)
                elif id(made) in signed:
                    if made in self.graph.outputs:
                        self._around = f"boundary/{node.name}"
                    self._carried(carried, scale, upper, zero, made)
            node.inputs = codes, scale, upper

    def _factors(self, wide: Sequence[ir.Node]) -> set[int]:
        """By `id`, the DequantizeLinear nodes of second factors of products, moved or not, which
        stay signed: some providers round unsigned ones to 8 bits."""
        found, others = set[int](), set[int]()
        for node in reversed(self._nodes):
            moves = node.op_type in _MOVES and not node.domain
            moved = _places(node) if moves and found.issuperset(map(id, node.outputs)) else ()
            for place, value in enumerate(node.inputs):
                key = id(value)
                if key not in others and (place in moved or _is_second(node, place)):
                    found.add(key)
                else:
                    others.add(key)
                    found.discard(key)
        known = (node for node in wide if _present(node.inputs[0]).const_value is None)
        return {id(node) for node in known if node.op_type == _DQ and id(node.outputs[0]) in found}

    def _upper(self, zero: ir.Value) -> ir.Value:
        """The zero point of unsigned codes for that of signed ones."""
        return self._constants.shared(_raised(_array(zero)))

    def _carried(
        self, codes: ir.Value, scale: ir.Value, zero: ir.Value, to: ir.Value, made: ir.Value
    ) -> None:
        """Codes of another type beside pairs, with another zero point."""
        self._add(_Q, [self._add(_DQ, [codes, scale, zero]), scale, to], made)

    def _added(self, codes: ir.Value, number: int, made: ir.Value, to: ir.DataType) -> None:
        """Codes of another type beside nodes of integers, with another zero point."""
        term = self._constants.shared(np.array(number, np.int32))
        self._cast(self._add("Add", [self._cast(codes, ir.DataType.INT32), term]), to, made)

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
        name = f"{self._around}/{op}_{len(self._nodes)}"
        made = ir.Value(f"{name}_out") if made is None else made
        self._nodes.append(ir.Node(op, inputs, [made], attributes=attributes, name=name))
        return made


def _is_second(node: ir.Node, place: int) -> bool:
    """Whether an input is the second factor of a product."""
    return node.op_type == "MatMul" and place == 1


def _is_wide(node: ir.Node) -> bool:
    """Whether a node reads or writes signed codes of 16 bits, with one scale."""
    scale = _scale_of(node)
    return scale is not None and _array(scale.zero).dtype == np.int16


def _present(value: ir.Value | None) -> ir.Value:
    assert value is not None
    return value


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
