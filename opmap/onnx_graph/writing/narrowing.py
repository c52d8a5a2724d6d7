"""Large constants in the narrowest type that holds them exactly, for files.

A constant of floats that are 16-bit floats, 8-bit codes, or 8-bit codes times a scale for each
channel is written as those. A Cast, and a Mul by the scales, make the floats. ONNX Runtime computes
nodes of constants once, when it loads a graph: what runs is the graph with the floats. (It does not
fold a DequantizeLinear: that would run at each invoke, or become a product of 8 bits.)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.onnx_graph.writing.exponentials import Powers, Steps, powers_of, steps_of
from tflite_ort.opmap.onnx_graph.writing.gate_tables import Gates, gates_of
from tflite_ort.opmap.onnx_graph.writing.interpolated import Lines, lines_of
from tflite_ort.opmap.onnx_graph.writing.ramps import Ramps, ramps_of
from tflite_ort.opmap.onnx_graph.writing.repeated_numbers import Runs, Waves, runs_of, waves_of
from tflite_ort.opmap.onnx_graph.writing.table_nodes import Constants, TableNodes

Array = npt.NDArray[Any]

# Smaller constants are left alone, but for runs: the nodes need room too.
_BYTES, _BYTES_OF_RUNS = 512, 160
# A node for a single constant saves so many bytes.
_SAVED = 384
# Shorter rows take as much room with their scale as before.
_ROW = 4
# So many elements tell whether it is worthwhile to look at all.
_SAMPLE = 64
# What saves less than this part of the room in all is not worth a node.
_WORTH_A_NODE = 0.02
# Larger ones are worth nodes of their own: joined, they are in memory twice when a file is loaded.
_LONGEST = 1 << 20
# About so many bytes are joined.
_MOST_JOINED = 1 << 24
# The nodes that make a table of a function.
_TABLE_NODES = 12
_NARROWER: dict[ir.DataType, Sequence[npt.DTypeLike]] = {
    ir.DataType.FLOAT: (np.int8, np.uint8, np.float16, np.int16),
    ir.DataType.DOUBLE: (np.int8, np.uint8, np.int16, np.float32),
    ir.DataType.INT64: (np.int8, np.uint8, np.int16, np.int32),
    ir.DataType.INT32: (np.int8, np.uint8, np.int16),
}
# The largest code of a channel; most have one of the first.
_CODES = (127, 128, 7, 8, *range(126, 8, -1), *range(6, 0, -1))
# Smaller ones are not worth it; larger ones are hardly ever equal.
_WORTH_JOINING = range(32, 1 << 20)
# By node, the first input from which on it may read what others read too.
_JOINED = {"Cast": 0, "Concat": 0, "Squeeze": 0, "Scan": 0, "LSTM": 5, "GRU": 5, "RNN": 5}
_NEVER = 1 << 31


class Narrow(NamedTuple):
    """A constant as it is written: `codes`, times `scales` where there are some."""

    codes: Array
    scales: Array | None = None

    @property
    def nbytes(self) -> int:
        """The room that it takes."""
        return self.codes.nbytes

    @property
    def nodes(self) -> int:
        """How many nodes make it."""
        return 1 + (self.scales is not None)

    def make(self, nodes: TableNodes, name: str, output: ir.Value) -> None:
        """Add the nodes that make the constant."""
        codes, to = nodes.constant(f"{name}_codes", self.codes), output.dtype
        if self.scales is None:
            nodes.add("Cast", codes, output=output, to=to)
            return
        scales = nodes.constant(f"{name}_scales", self.scales)
        nodes.add("Mul", nodes.add("Cast", codes, to=to), scales, output=output)


# By value, the graph where it is to be made.
Homes = dict[int, ir.Graph]
# Forms in which constants are written; each has `make`.
Sized = Narrow | Runs | Waves
Written = Sized | Lines | Gates | Ramps | Powers | Steps


class Unit(NamedTuple):
    """Constants that the same nodes make.

    Args:
        members: how each is written. Several are one constant along their first axis, which a Split
            parts when it is wide: so a Cast, and a Mul, serve all of them.
    """

    members: Sequence[tuple[ir.Value, Written]]

    @property
    def saved(self) -> int:
        """By how many bytes it is smaller."""
        return sum(_saved(value.const_value, form) for value, form in self.members)

    @property
    def nodes(self) -> int:
        """About how many nodes it takes."""
        _, form = self.members[0]
        nodes = form.nodes if isinstance(form, Sized) else _TABLE_NODES
        return nodes + (len(self.members) > 1)

    @property
    def is_worthwhile(self) -> bool:
        """Whether it saves more than its nodes take."""
        _, form = self.members[0]
        is_alone = isinstance(form, Narrow) and len(self.members) == 1
        return not is_alone or self.saved >= _SAVED * self.nodes


def narrow_constants(model: ir.Model, room: int = 0) -> None:
    """Write large constants of `model` narrow, with the nodes that make them what they were.

    What one body of a Scan alone reads is made in it, and what several read once outside. (Not
    every reader of ONNX takes computed values from outside there: the presets for others keep their
    constants, see `Preset.plain`.)

    Args:
        room: so many bytes all constants may take. No more than that needs are written narrow,
            those first of which a node saves most.
    """
    graph = model.graph
    homes, constant = _homes(graph), Constants(graph)
    added: dict[int, tuple[ir.Graph, list[ir.Node], TableNodes]] = {}

    def nodes_in(home: ir.Graph) -> TableNodes:
        if id(home) not in added:
            nodes: list[ir.Node] = []
            added[id(home)] = home, nodes, TableNodes(nodes, constant)
        return added[id(home)][2]

    for unit in _chosen(graph, homes, room):
        for value, _ in unit.members:
            del graph.initializers[value.name]
            value.const_value = None
        if len(unit.members) > 1:
            _make_stacked(unit.members, nodes_in(graph))
            continue
        ((value, form),) = unit.members
        form.make(nodes_in(homes.get(id(value), graph)), value.name, value)
    for home, nodes, _ in added.values():
        home.nodes[:0] = nodes


def _chosen(graph: ir.Graph, homes: Homes, room: int) -> list[Unit]:
    """The constants that are written narrow, in the order of the graph, and how."""
    constants = [(v, v.const_value) for v in graph.initializers.values() if v.const_value]
    excess = sum(tensor.nbytes for _, tensor in constants) - room
    if excess <= 0:
        return []
    kept = _read_by_quantization(graph) | set(map(id, graph.inputs))
    forms = [(value, _narrow(tensor)) for value, tensor in constants if id(value) not in kept]
    units = _units([(value, form) for value, form in forms if form is not None], graph, homes)
    units = [unit for unit in units if unit.is_worthwhile]
    chosen, left = set[int](), sum(unit.saved for unit in units)
    for number in sorted(range(len(units)), key=lambda at: -units[at].saved / units[at].nodes):
        if excess <= 0 or left < room * _WORTH_A_NODE:
            break
        chosen.add(number)
        excess -= units[number].saved
        left -= units[number].saved
    return [unit for number, unit in enumerate(units) if number in chosen]


def _saved(tensor: ir.Tensor | None, form: Written) -> int:
    before = 0 if tensor is None else tensor.nbytes
    return before - form.nbytes if isinstance(form, Sized) else before


def _units(found: Sequence[tuple[ir.Value, Written]], graph: ir.Graph, homes: Homes) -> list[Unit]:
    """Constants that differ in their first size alone are one, where that takes fewer nodes."""
    parted: dict[Hashable, list[tuple[ir.Value, Written]]] = {}
    sizes = Counter[Hashable]()
    for value, form in found:
        rows = _rows_of(form) if homes.get(id(value), graph) is graph else None
        key: Hashable = id(value)
        if rows is not None and isinstance(form, Narrow):
            key = value.dtype, rows, sizes[rows] // _MOST_JOINED
            sizes[rows] += form.codes.nbytes
        parted.setdefault(key, []).append((value, form))
    units = []
    for members in parted.values():
        apart = [Unit([each]) for each in members]
        units += [Unit(members)] if Unit(members).nodes < sum(u.nodes for u in apart) else apart
    return units


def _rows_of(form: Written) -> Hashable:
    """Equal for constants that can be one along their first axis; None for those that cannot."""
    if not isinstance(form, Narrow) or not form.codes.ndim or form.codes.nbytes > _LONGEST:
        return None
    scales = form.scales
    if scales is not None and (scales.ndim != form.codes.ndim or scales.size != len(scales)):
        return None
    if scales is not None and len(scales) != len(form.codes):
        return None
    return form.codes.dtype, form.codes.shape[1:], scales is None


def _make_stacked(members: Sequence[tuple[ir.Value, Written]], nodes: TableNodes) -> None:
    """Add the nodes that make several constants of one."""
    forms = [form for _, form in members if isinstance(form, Narrow)]
    values = [value for value, _ in members]
    codes = np.concatenate([form.codes for form in forms])
    scales = [form.scales for form in forms if form.scales is not None]
    whole = ir.Value(nodes.constant.names.free(f"{values[0].name}/stacked"), dtype=values[0].dtype)
    Narrow(codes, np.concatenate(scales) if scales else None).make(nodes, whole.name, whole)
    nodes.split(whole, values, [len(form.codes) for form in forms])


def _homes(graph: ir.Graph) -> Homes:
    """Where values are to be made: in the body of a Scan that alone reads them, or in the graph."""
    homes: Homes = {}

    def visit(nodes: Sequence[ir.Node], home: ir.Graph) -> None:
        for node in nodes:
            for value in node.inputs:
                if value is not None and homes.setdefault(id(value), home) is not home:
                    homes[id(value)] = graph
            for body in node.bodies:
                visit(body.nodes, body if node.op_type == "Scan" else home)

    visit(graph.nodes, graph)
    return homes | {id(value): graph for value in graph.outputs}


def _read_by_quantization(graph: ir.Graph) -> set[int]:
    """The constants that are codes, scales or biases of codes, with which ONNX Runtime fuses."""
    types = ("QuantizeLinear", "DequantizeLinear")
    return {id(value) for value, node, _ in graph.reads() if node.op_type in types}


def _narrow(tensor: ir.Tensor) -> Written | None:
    """The smallest form of a constant that is worth its nodes."""
    runs = runs_of(tensor.array) if tensor.nbytes >= _BYTES_OF_RUNS else None
    if tensor.nbytes < _BYTES or runs is not None:
        return runs
    for table in (lines_of, gates_of, ramps_of, powers_of, steps_of, waves_of):
        made = table(tensor.array)
        if made is not None:
            return made
    return narrowed(tensor.array) if tensor.dtype in _NARROWER else None


def narrowed(array: Array) -> Narrow | None:
    """The narrowest form that gives exactly `array` again; None if that is its own."""
    dtype = ir.DataType.from_numpy(array.dtype)
    for narrower in _NARROWER[dtype]:
        if _same(array.reshape(-1)[:_SAMPLE], narrower) and _same(array, narrower):
            return Narrow(array.astype(narrower))
    return _codes_of_channels(array) if dtype is ir.DataType.FLOAT else None


def _same(array: Array, narrower: npt.DTypeLike) -> bool:
    """Whether `array` is the same after a way through a narrower type, bit for bit."""
    with np.errstate(all="ignore"):  # of numbers that do not fit
        back = array.astype(narrower).astype(array.dtype)
    return array.tobytes() == back.tobytes()


def _codes_of_channels(array: Array) -> Narrow | None:
    """8-bit codes and a scale for each index of an axis, or one for all."""
    for axis in dict.fromkeys((0, array.ndim - 1, None)):
        rows = array.reshape(1, -1) if axis is None else _rows(array, axis)
        if rows.shape[1] < _ROW or not _is_likely(rows):
            continue
        scales = _scales(rows)
        if scales is None:
            continue
        shape = [1] * array.ndim
        if axis is not None:
            shape[axis] = -1
        scales = scales.reshape(shape)
        codes = np.rint(array / scales).astype(np.int8)
        if _equal(codes.astype(np.float32) * scales, array):
            return Narrow(codes, scales)
    return None


def _rows(array: Array, axis: int) -> Array:
    return np.moveaxis(array, axis, 0).reshape(array.shape[axis], -1)


def _is_likely(rows: Array) -> bool:
    """Whether the first numbers of a channel with numbers are codes of some scale."""
    first = rows[int(np.argmax(np.any(rows[:_SAMPLE] != 0, axis=1)))]
    peak = np.abs(first).max(initial=np.float32(0))
    if not np.isfinite(peak):
        return False
    tried = _near(np.full(len(_CODES), peak), np.array(_CODES, np.float32))
    return bool(peak == 0 or _fits(first[None, :_SAMPLE], tried.reshape(-1, 1)).any())


def _scales(rows: Array) -> Array | None:
    """The scale of every row of which its numbers are multiples from -128 to 127."""
    peaks = np.abs(rows).max(axis=1, initial=np.float32(0))
    scales, waiting = np.ones(len(rows), np.float32), np.flatnonzero(peaks)
    first = rows[:, :_SAMPLE]  # tells most that are not
    for code in _CODES:
        for step in range(3):
            if not waiting.size:
                return scales
            tried = _near(peaks[waiting], np.float32(code))[step]
            fits = _fits(first[waiting], tried[:, None])
            fits[fits] = _fits(rows[waiting[fits]], tried[fits, None])
            scales[waiting[fits]] = tried[fits]
            waiting = waiting[~fits]
    return None if waiting.size else scales


def _near(peaks: Array, codes: Any) -> npt.NDArray[np.float32]:
    """The three scales near the one of which each peak is `codes` times."""
    with np.errstate(all="ignore"):
        scale = (peaks / codes).astype(np.float32)
        below, above = (np.nextafter(scale, np.float32(end)) for end in (0, np.inf))
    return np.stack([scale, below, above])


def _fits(rows: Array, scales: Array) -> npt.NDArray[np.bool_]:
    """Which rows are whole numbers of 8 bits times their scale."""
    with np.errstate(all="ignore"):
        codes = np.rint(rows / scales)
        exact = codes.astype(np.float32) * scales == rows
    fits: npt.NDArray[np.bool_] = np.all(exact & (codes >= -128) & (codes <= 127), axis=1)
    return fits


def _equal(one: Array, other: Array) -> bool:
    return bool(one.tobytes() == np.ascontiguousarray(other).tobytes())


def join_equal_constants(graph: ir.Graph) -> None:
    """Let nodes read one of the initializers of a graph that have equal elements.

    Only of those that a Cast alone reads, as `narrow_constants` writes it, and of first states.
    ONNX Runtime's optimiser names constants that it makes after those that it makes them of, and
    fails where two layers share one.
    """
    elsewhere = {
        id(v) for v, node, place in graph.reads() if place < _JOINED.get(node.op_type, _NEVER)
    }
    elsewhere |= {id(value) for value in (*graph.inputs, *graph.outputs)}  # a state's first value
    first: dict[tuple[ir.DataType, tuple[int, ...], bytes], ir.Value] = {}
    joined: dict[int, ir.Value] = {}
    for value in graph.initializers.values():
        tensor = value.const_value
        if tensor is None or tensor.nbytes not in _WORTH_JOINING or id(value) in elsewhere:
            continue
        key = tensor.dtype, tensor.shape, bytes(tensor.data())
        found = first.setdefault(key, value)
        if found is not value:
            joined[id(value)] = found
    if joined:
        for node in graph.all_nodes():
            node.inputs = tuple(joined.get(id(value), value) for value in node.inputs)
        graph.initializers = {
            name: value for name, value in graph.initializers.items() if id(value) not in joined
        }
