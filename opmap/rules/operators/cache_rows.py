"""Where a decoder writes into its caches and reads its mask, of the position of a token alone.

A cache is written at a list of places that has one for each dimension: constants, and the position
of the token, which converters take through floats. Clipped to the cache, all of this is a constant
and one number.

A mask is looked up by an index of which converters count a negative one from the end, and check the
range, to give a row of NaN beyond it. TFLite refuses such an index before that. ONNX Runtime's
Gather does both.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.graph.rows import RESHAPES
from tflite_ort.opmap.idioms.movement import moved_domain
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.operators.matching import Found, Leaf, Producers, node
from tflite_ort.opmap.rules.operators.pattern import Emit, Pattern, Surroundings, View, shaped
from tflite_ort.schema import Op, TensorType, TensorView
from tflite_ort.schema.values.sizes import is_known

# Up to here float32 holds all whole numbers, so that larger ones are beyond a cache either way.
_EXACT = 1 << 24
# The types that TensorScatter is used for.
_ROWS = frozenset({TensorType.FLOAT32, TensorType.INT32})

_OPERAND, _UPDATE, _START = Leaf(), Leaf(), Leaf()
_WRITE = node(Op.DYNAMIC_UPDATE_SLICE)(_OPERAND, _UPDATE, _START)

_X, _TABLE, _FILL = Leaf(), Leaf(), Leaf(constant=True)
_ZERO, _COUNT = Leaf(constant=True), Leaf(constant=True)
_LOW, _HIGH, _AXIS = Leaf(constant=True), Leaf(constant=True), Leaf(constant=True)
_WRAPPED = node(Op.SELECT, Op.SELECT_V2)(node(Op.LESS)(_X, _ZERO), node(Op.ADD)(_X, _COUNT), _X)
_RANGE = node(Op.LOGICAL_AND)(
    node(Op.GREATER_EQUAL)(_WRAPPED, _LOW), node(Op.LESS_EQUAL)(_WRAPPED, _HIGH)
)
_GATHER = node(Op.GATHER_ND)(_TABLE, _WRAPPED)
# From an index to the rows.
_ON_THE_WAY = RESHAPES | {Op.SELECT, Op.SELECT_V2, Op.GATHER_ND, Op.TRANSPOSE}
_FILLED = node(Op.SELECT_V2)(node(Op.REDUCE_ALL)(_RANGE, _AXIS), _GATHER, _FILL)


# Places of a cache ------------------------------------------------------------------------------


@record
class _Position:
    """The position of a token, an int32.

    Args:
        source: it alone, or the positions of several tokens.
        number: of several, which one.
    """

    source: TensorView
    number: int | None = None

    @classmethod
    def of(cls, tensor: TensorView, producers: Producers, *, floats: bool) -> _Position | None:
        """None where `tensor`, of one element, is not known to be one; `floats`: a whole float."""
        tensor, number = before_reshapes(tensor, producers), None
        maker = producers.maker(tensor)
        if floats and maker is not None and maker.op is Op.SLICE:
            begin, tensor = maker["begin"].data, before_reshapes(maker["input"], producers)
            if begin is None or maker["input"].rank != 1:
                return None
            number, maker = int(begin.ravel()[0]), producers.maker(tensor)
        if floats:
            if maker is None or maker.op is not Op.CAST:
                return None
            tensor = before_reshapes(maker["input"], producers)
        known = is_known(*tensor.shape) and not tensor.is_variable and not tensor.is_constant
        single = known and prod(tensor.shape) == 1
        fits = single or number is not None
        return cls(tensor, number) if fits and known and tensor.type is TensorType.INT32 else None

    def read(self, g: Graph) -> ir.Value:
        """It as int32 [1]."""
        if self.number is None:
            return shaped(g, self.source, (1,))
        every = shaped(g, self.source, (prod(self.source.shape),))
        return g.op("Slice", every, g.ints([self.number]), g.ints([self.number + 1]))


@record
class _Place:
    """Where rows are written: at a constant along all axes but one.

    Args:
        position: where they begin along `axis`.
        start: where they begin along each axis, 0 along `axis`.
        room: how far `axis` lets them begin.
        count: the position is below this number, and at least minus this number; None where it may
            be any.
    """

    position: _Position
    axis: int
    start: Sequence[int]
    room: int
    count: int | None

    @classmethod
    def of(cls, op: View, producers: Producers) -> _Place | None:
        """None where the places are others."""
        operand, update = op["operand"], op["update"]
        shapes = (*operand.shape, *update.shape)
        if not is_known(*shapes) or 0 in shapes or operand.shape == update.shape:
            return None
        parts = _listed(op["start"], producers)
        if parts is None or len(parts) != operand.rank:
            return None
        moving = [axis for axis, part in enumerate(parts) if isinstance(part, _Position)]
        rooms = [size - taken for size, taken in zip(operand.shape, update.shape, strict=True)]
        if len(moving) != 1 or not 0 < rooms[moving[0]] < _EXACT:
            return None
        start = [
            0 if isinstance(part, _Position) else min(max(int(part), 0), room)
            for part, room in zip(parts, rooms, strict=True)
        ]
        (axis,) = moving
        position = parts[axis]
        assert isinstance(position, _Position)
        alone = position.number is None
        count = rows_of_table(position.source, producers) if alone else None
        return cls(position, axis, start, rooms[axis], count)

    def _is_of_rows(self, operand: TensorView, update: TensorView) -> bool:
        """Whether `axis` is the only one that is not written whole, of a batch of one."""
        others = [axis for axis in range(operand.rank) if axis != self.axis]
        whole = all(operand.shape[axis] == update.shape[axis] for axis in others)
        return whole and operand.shape[0] == 1 and self.axis > 0 and operand.type in _ROWS

    def emit(self, g: Graph, op: View) -> None:
        """TensorScatter of rows of one batch, or ScatterND of whole slices. Layers that write at
        equal places have equal nodes before that, of which ONNX Runtime keeps one."""
        operand, update = op["operand"], op["update"]
        position = self._clipped(g)
        if self._is_of_rows(operand, update):
            inputs = g.read(operand), g.read(update), position
            g.write(op.output, g.op("TensorScatter", *inputs, axis=self.axis))
            return
        pairs = enumerate(zip(operand.shape, update.shape, strict=True))
        parts = 1 + max(axis for axis, (size, taken) in pairs if size != taken)
        grid = np.moveaxis(np.indices(update.shape[:parts]), 0, -1) + np.array(self.start[:parts])
        along = np.arange(parts) == self.axis
        name = "x".join(map(str, (*update.shape[:parts], "from", *self.start[:parts])))
        places = g.op("Mul", position, g.ints(along))
        places = g.op("Add", g.constants.once(grid.astype(np.int64), f"places_{name}"), places)
        value = g.op("ScatterND", g.read(operand), places, g.read(update))
        g.write(op.output, value)

    def _clipped(self, g: Graph) -> ir.Value:
        """Where rows begin along `axis`, int64 [1]."""
        if self.count is None:
            bounds = (g.constant(bound, np.int32) for bound in (0, self.room))
            return g.cast(g.op("Clip", self.position.read(g), *bounds), ir.DataType.INT64)
        places = positions_within(self.count).clip(0, self.room)
        table = g.constants.once(places, f"places_{self.count}_{self.room}")
        return g.op("Gather", table, self.position.read(g))


def positions_within(count: int) -> npt.NDArray[np.int64]:
    """The positions from -`count` to `count` - 1, each where Gather looks it up: negative ones at
    the end."""
    return np.roll(np.arange(-count, count), count)


def _listed(start: TensorView, producers: Producers) -> Sequence[_Position | int] | None:
    """The numbers in a list of places: constants, and positions; None where they are others."""
    maker = producers.maker(start)
    floats = maker is not None and maker.op is Op.CAST
    if floats and maker is not None:
        if maker["input"].type is not TensorType.FLOAT32 or start.type is not TensorType.INT32:
            return None
        maker = producers.maker(maker["input"])
    if maker is None or maker.op not in (Op.CONCATENATION, Op.PACK) or maker.output.rank != 1:
        return None
    parts = list[_Position | int]()
    for tensor in maker.present_inputs():
        found = _numbers(tensor, producers, floats=floats)
        if found is None:
            return None
        parts += found
    return parts


def _numbers(
    tensor: TensorView, producers: Producers, *, floats: bool
) -> Sequence[_Position | int] | None:
    """What one part of a list says; `floats`: in whole floats."""
    if tensor.data is not None:
        data = tensor.data.ravel()
        whole = bool(np.isfinite(data).all() and (np.trunc(data) == data).all())
        return [int(number) for number in data] if whole else None
    if not is_known(*tensor.shape) or prod(tensor.shape) != 1:
        return None
    position = _Position.of(tensor, producers, floats=floats)
    return None if position is None else [position]


def before_reshapes(tensor: TensorView, producers: Producers) -> TensorView:
    """What was reshaped to `tensor`."""
    maker = producers.maker(tensor)
    while maker is not None and maker.op in RESHAPES:
        tensor = maker.present_inputs()[0]
        maker = producers.maker(tensor)
    return tensor


def _plan_write(found: Found, around: Surroundings) -> Emit | None:
    if not around.target.cpu_kernels or found[_OPERAND].is_quantized:
        return None
    place = _Place.of(found.operator(_WRITE), around.producers)
    return None if place is None else place.emit


# Rows of a mask ---------------------------------------------------------------------------------


def _plan_rows(found: Found, _: Surroundings | None) -> Emit | None:
    x, table = found[_X], found[_TABLE]
    tuples = found.operator(_GATHER)["indices"]
    if x.type is not TensorType.INT32 or not is_known(*tuples.shape, *table.shape):
        return None
    count = table.shape[0]
    numbers = (_ZERO, 0), (_COUNT, count), (_LOW, 0), (_HIGH, count - 1)
    are_bounds = all(_is_number(found[leaf], number) for leaf, number in numbers)
    return partial(_emit_rows, found) if are_bounds and _is_lookup(found, tuples) else None


def _is_number(tensor: TensorView, number: int) -> bool:
    return tensor.data is not None and tensor.data.size == 1 and tensor.data.ravel()[0] == number


def _is_lookup(found: Found, tuples: TensorView) -> bool:
    """Whether each number of `tuples` [..., 1] chooses a row of the table, whatever shape the rows
    get, and each row has a condition of its own."""
    root, table = found[_FILLED], found[_TABLE]
    if tuples.shape[-1:] != (1,) or 0 in (*tuples.shape, *table.shape):
        return False
    count, row = prod(tuples.shape), prod(table.shape[1:])
    condition = found.operator(_FILLED)["condition"].shape
    rank = len(root.shape)
    if not is_known(*root.shape, *condition) or len(condition) != rank:
        return False
    split = next((axis for axis in range(rank) if prod(root.shape[axis:]) == row), rank)
    rows = (*root.shape[:split], *(1,) * (rank - split))
    return prod(root.shape) == count * row and tuple(condition) == rows


def table_row(tensor: TensorView, producers: Producers) -> tuple[TensorView, TensorView] | None:
    """The constant table of which `tensor` has rows, and their numbers, which may count from the
    end; None where it has none."""
    source = before_reshapes(tensor, producers)
    maker = producers.maker(source)
    found = None if maker is None else producers.find(_FILLED, maker)
    if found is None or _plan_rows(found, None) is None or found[_TABLE].data is None:
        return None
    return found[_TABLE], found[_X]


def rows_of_table(index: TensorView, producers: Producers) -> int | None:
    """How many rows the table has of which `index` looks one up: TFLite refuses an index beyond
    them, counted from either end. None where it looks none up."""
    waiting, seen = [index], {index.index}
    while waiting:
        for op in producers.readers(waiting.pop()):
            found = producers.find(_FILLED, op) if op.op is Op.SELECT_V2 else None
            if found is None or _plan_rows(found, None) is None:
                pass
            elif before_reshapes(found[_X], producers).index == index.index:
                return int(found[_TABLE].shape[0])
            if op.op in _ON_THE_WAY and op.output.index not in seen:
                seen.add(op.output.index)
                waiting.append(op.output)
    return None


def _emit_rows(found: Found, g: Graph, op: View) -> None:
    """Gather, which counts a negative index from the end, and fails beyond the table."""
    table, tuples, output = found[_TABLE], found.operator(_GATHER)["indices"], op.output
    domain = moved_domain(table, output)
    index = shaped(g, found[_X], tuples.shape[:-1])
    rows = g.op("Gather", g.read(table, domain=domain), index)
    if tuple(output.shape) != (*tuples.shape[:-1], *table.shape[1:]):
        rows = g.reshape(rows, output.shape)
    g.write(output, rows, domain=domain)


CACHE_ROWS = (
    Pattern("places of a cache", _WRITE, _plan_write),
    Pattern("row of a mask", _FILLED, _plan_rows),
)
