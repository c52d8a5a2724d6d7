"""Integer LSTM cells (8x8_16) bit for bit: a Scan in floats that hold the integers exactly.

B batch, T time, I input, C cells, O outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.cells.lstm_integer_weights import BYTE, PRODUCT, SHORT, IntegerWeights
from tflite_ort.opmap.cells.normalization_integer import normalized
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.fixed_point import (
    TIE_BREAK,
    clip,
    first_factor,
    may_tie,
    multiplies_in_double,
    rescaled,
    rounded_twice,
    rounded_upwards,
    shifted_right,
)
from tflite_ort.opmap.idioms.scan import Values, scan
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema.arithmetic.fixed_point import quantize_multiplier
from tflite_ort.schema.arithmetic.fixed_point16 import logistic, tanh
from tflite_ort.schema.values.kept_tables import kept_table

_FLOAT, _DOUBLE = ir.DataType.FLOAT, ir.DataType.DOUBLE
_CODES = 65536
_BEYOND = 2**16  # sums beyond 16 bits on either side for which a table has elements
_GATE_BITS = 3  # integer bits of a gate's sum
_INPUT, _FORGET, _UPDATE, _OUTPUT = range(4)


def run_integer_cell(
    g: Graph,
    cell: IntegerWeights,
    x: ir.Value,
    h: ir.Value,
    c: ir.Value,
    *,
    single: bool,
    doubles: bool = False,
    wide: bool = False,
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Outputs [T, B, O] and last output, codes less their zero points in float32, and cell state.

    The outputs are not clipped to 8 bits.

    Args:
        x, h: input [T, B, I] and output [B, O], in the same representation.
        c: cell state [B, C], as int16.
        single: T is 1.
        doubles: the output meets its weights in float64, which has to be exact.
        wide: tables are in float64, and have in them what their elements are multiplied by. They
            are larger, and a step has fewer nodes.
    """
    sums = clip(g, cell.input.of(g, x), SHORT)
    step = IntegerStep(g, cell, doubles=doubles, wide=wide)
    if step.places is not None:
        first = step.places.first[step.table_of]
        sums = g.op("Add", sums, g.constants.add(first + 0.5, "places"))
    states = (g.cast(h, _DOUBLE) if step.doubles else h, g.cast(c, _DOUBLE))
    types = (_DOUBLE if step.doubles else _FLOAT, _DOUBLE, _DOUBLE)
    (h, c), (y,) = scan(g, step, states, (sums,), single=single, types=types)
    if step.doubles and cell.projection is not None:  # whose range may be narrower than 8 bits
        y = _within(g, y, cell.output_range)
    return g.cast(y, _FLOAT), g.cast(h, _FLOAT), g.cast(c, ir.DataType.INT16)


class _Places(NamedTuple):
    """Where the gates of the sums are in a table that has an element for every sum that occurs.

    Sums beyond 16 bits have the element of the nearest one within, so that nothing is clipped.

    Attributes:
        beyond: how many sums on either side of 16 bits.
        first: the place of a sum of 0, for each table.
    """

    beyond: int
    first: npt.NDArray[np.float64]

    @classmethod
    def of(cls, cell: IntegerWeights) -> Self | None:
        """None where the table would be too large, or something stands between sums and gates."""
        zero = cell.output_zero_point
        beyond = cell.recurrent.reach(int(np.maximum(BYTE[1] - zero, zero - BYTE[0]).max()))
        if cell.peephole or cell.norm or beyond > _BEYOND:
            return None
        tables = _OUTPUT + len(set(np.ravel(cell.hidden[0]).tolist()))
        first = np.arange(tables) * (_CODES + 2 * beyond) + beyond - SHORT[0]
        return cls(beyond, first.astype(np.float64))


class IntegerStep:
    """One step: from states (h [B, O], c [B, C]) and the sums of the input [B, 4 * C].

    Attributes:
        doubles: h is in float64, not float32.
        wide: as for `run_integer_cell`.
        places: where the gates of the sums are, if these come from one Gemm.
        scaled: the output gate is multiplied by what the rounding of the output takes.
        ties: the output may be a half.
    """

    def __init__(self, g: Graph, cell: IntegerWeights, *, doubles: bool, wide: bool) -> None:
        self.g, self.cell, self.doubles, self.wide = g, cell, doubles, wide
        multipliers = np.array(sorted(set(np.ravel(cell.hidden[0]).tolist())))
        kinds = np.searchsorted(multipliers, np.ravel(cell.hidden[0]))
        # An output gate has a table for each multiplier.
        size, outputs = cell.size, np.broadcast_to(kinds, cell.size)
        self.table_of = np.concatenate([np.arange(_OUTPUT).repeat(size), _OUTPUT + outputs])
        ones = np.ones(len(multipliers))
        self.units = np.array(
            [2.0 ** (cell.cell_bits - 30) * TIE_BREAK, 2.0**-15 * TIE_BREAK, 1, *ones]
        )
        self.places = _Places.of(cell) if self.doubles else None
        self.scaled = wide and multiplies_in_double(multipliers, PRODUCT, bits=9)
        factor, self.right = first_factor(multipliers)
        self.ties = may_tie(*quantize_multiplier(multipliers), PRODUCT, bits=9)
        if self.scaled:
            self.units[_OUTPUT:] *= factor if self.ties else factor * 2.0**-self.right
        self.tables = np.array([2 if cell.coupled else 0, 0, 1, *(0 * ones)], np.int64)
        self.gates = g.constants.once(gate_tables(), "lstm_gates")
        bits = 15 - cell.cell_bits
        tanh_table = tanh(_every_code(), bits)
        if wide:
            tanh_table = tanh_table.astype(np.float64)
        self.tanh = g.constants.once(tanh_table, f"tanh_of_{bits}_bits")
        if wide:
            beyond = 0 if self.places is None else self.places.beyond
            widened = _widened(gate_tables().reshape(3, _CODES)[self.tables], self.units, beyond)
            shown = "_".join(f"{unit:.17g}" for unit in self.units[_OUTPUT:])
            self.tables = np.arange(len(widened))
            name = f"lstm_gates_{bits}_{cell.coupled}_{shown}_{beyond}"
            self.gates = g.constants.once(widened.reshape(-1), name)

    @property
    def is_simple(self) -> bool:
        """Whether a step has the fewest nodes, which run two cells at once too."""
        return self.places is not None and self.scaled and not self.ties and len({*self.right}) == 1

    def __call__(self, states: Values, slices: Values) -> tuple[Values, Values]:
        g, cell, (h, c) = self.g, self.cell, states
        if self.places is not None:
            # Positive numbers are cut to the integer below them, and a half has been added.
            sums = g.op("Add", *slices, cell.recurrent.between_integers(g, h))
            sums = g.op("Gather", self.gates, g.cast(sums, ir.DataType.INT32))
        else:
            seen = cell.recurrent.of_doubles(g, h) if self.doubles else cell.recurrent.of(g, h)
            sums = clip(g, g.op("Add", *slices, seen), SHORT)
            if cell.peephole is None:
                sums = self._opened(self._normalized(sums, range(4)), range(4))
        gates = list(g.op_multi("Split", sums, outputs=4, axis=1, num_outputs=4))
        if cell.peephole is not None:
            gates[:_OUTPUT] = [self._gate(gate, gates[gate], c) for gate in range(_OUTPUT)]
        kept = g.op("Round", g.op("Mul", gates[_FORGET], c))
        added = g.op("Round", g.op("Mul", gates[_INPUT], gates[_UPDATE]))
        c = clip(g, g.op("Add", kept, added), cell.cell_range)
        shown = gates[_OUTPUT]
        if cell.peephole is not None:
            shown = self._gate(_OUTPUT, shown, c)
        squashed = g.op("Gather", self.tanh, g.cast(c, ir.DataType.INT32))
        if not self.wide:
            squashed = g.cast(squashed, _DOUBLE)
        whole = self._output(g.op("Mul", shown, squashed))
        output = _within(g, whole, cell.output_range)
        # A result is not the state itself, which would be copied: all are clipped after the Scan.
        return ((output, c), (whole,)) if self.doubles else ((g.cast(output, _FLOAT), c), (output,))

    def _opened(self, sums: ir.Value, gates: Sequence[int]) -> ir.Value:
        """The gates for these sums, in units of the cell state."""
        g, size = self.g, self.cell.size
        first = np.repeat(self.tables[gates] * _CODES - SHORT[0], size).astype(np.float64)
        places = g.cast(g.op("Add", sums, g.constant(first)), ir.DataType.INT32)
        found = g.op("Gather", self.gates, places)
        if self.wide:
            return found
        found = g.cast(found, ir.DataType.DOUBLE)
        return g.op("Mul", found, g.constant(np.repeat(self.units[gates], size)))

    def _normalized(self, sums: ir.Value, gates: Sequence[int]) -> ir.Value:
        """The sums [B, gates * C], normalised gate by gate."""
        norm = self.cell.norm
        if norm is None:
            return sums
        rows = self.g.reshape(sums, (-1, len(gates), self.cell.size))
        rows = clip(self.g, normalized(self.g, rows, norm.of_gates(gates)), SHORT)
        return self.g.reshape(rows, (-1, len(gates) * self.cell.size))

    def _gate(self, gate: int, sums: ir.Value, c: ir.Value) -> ir.Value:
        """One gate of a cell with peepholes."""
        g, peephole = self.g, self.cell.peephole
        if peephole is not None and gate != _UPDATE:
            weights = g.constant(peephole.weights[gate].astype(np.float64))
            seen = g.op("Mul", c, weights)
            seen = rescaled(g, seen, peephole.multiplier[gate], PRODUCT, bits=17)
            sums = clip(g, g.op("Add", sums, seen), SHORT)
        return self._opened(self._normalized(sums, [gate]), [gate])

    def _output(self, product: ir.Value) -> ir.Value:
        """The output for the output gate times the activated state; it is not clipped yet."""
        g, cell = self.g, self.cell
        multiplier, zero_point = cell.hidden
        if self.scaled and not self.ties:
            value = rounded_twice(g, product, int(self.right[0]))
        elif self.scaled:
            value = shifted_right(g, rounded_upwards(g, product), self.right)
        else:
            value = rescaled(g, product, multiplier, PRODUCT, bits=9)
        if cell.projection is None:
            value = self._moved(value, zero_point - cell.output_zero_point)
        else:
            codes = clip(g, self._moved(value, -zero_point), (-128, 127))
            codes = g.cast(codes, ir.DataType.FLOAT)
            value = cell.projection.of(g, codes, bits=8)
        return value

    def _moved(self, value: ir.Value, by: npt.NDArray[Any]) -> ir.Value:
        return self.g.op("Add", value, _numbers(self.g, by)) if by.any() else value


def _numbers(g: Graph, array: npt.NDArray[Any]) -> ir.Value:
    """A number for all cells, or one for each, in float64."""
    return g.constant(array.astype(np.float64).reshape(() if array.size == 1 else array.shape))


def _within(
    g: Graph, value: ir.Value, bounds: tuple[npt.NDArray[Any], npt.NDArray[Any]]
) -> ir.Value:
    """Clip doubles to `bounds`, which may be others for each cell."""
    low, high = (_numbers(g, bound) for bound in bounds)
    if max(bound.size for bound in bounds) == 1:
        return g.op("Clip", value, low, high)
    return g.op("Min", g.op("Max", value, low), high)


def _widened(
    tables: npt.NDArray[np.int16], units: npt.NDArray[np.float64], beyond: int
) -> npt.NDArray[np.float64]:
    """The rows of `tables` times their units, with so many more of the first and last elements."""
    made = np.empty((len(tables), tables.shape[1] + 2 * beyond))
    within = slice(beyond, beyond + tables.shape[1])
    np.multiply(tables, units[:, np.newaxis], out=made[:, within])
    made[:, :beyond] = made[:, within][:, :1]
    made[:, within.stop :] = made[:, within][:, -1:]
    return made


def looked_up(g: Graph, table: ir.Value, places: ir.Value) -> ir.Value:
    """The elements of a table of integers at `places`, in float64."""
    found = g.op("Gather", table, g.cast(places, ir.DataType.INT32))
    return g.cast(found, ir.DataType.DOUBLE)


def _every_code() -> npt.NDArray[np.int16]:
    """All 16-bit codes, the negative ones last, so that negative indices find them."""
    return np.arange(_CODES, dtype=np.uint16).view(np.int16)


@kept_table
def gate_tables() -> npt.NDArray[np.int16]:
    """The logistic function, tanh and 1 less the logistic function over ascending codes."""
    codes = np.sort(_every_code())
    gate = logistic(codes, _GATE_BITS)
    return np.concatenate([gate, tanh(codes, _GATE_BITS), 32767 - gate]).astype(np.int16)
