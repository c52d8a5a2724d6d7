"""Integer LSTM cells (8x8_16) bit for bit: a Scan in floats that hold the integers exactly.

B batch, T time, I input, C cells, O outputs. Codes are carried with their zero points taken off.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.fixed_point import exact_product, rescaled
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.scan import Values, scan
from tflite_ort.schema import OperatorView, Quantization, Untranslatable
from tflite_ort.schema.fixed_point16 import logistic, tanh
from tflite_ort.schema.lstm_inputs import GATES

Array = npt.NDArray[Any]
View = OperatorView[Any]

_CODES = 65536
_REACH = 255  # of an 8-bit code less its zero point
_SHORT = (-32768, 32767)
_GATE_BITS = 3  # integer bits of a gate's sum
_HIDDEN = 4  # the intermediate with the scale of the cell's output
_TIE_BREAK = 1 + 2.0**-34


@dataclass(frozen=True, slots=True)
class _Product:
    """Codes times weights [columns, rows], plus bias [rows], brought to another scale."""

    weights: Array
    bias: Array
    multiplier: Array

    def of(self, g: Graph, value: ir.Value, bits: int = 16) -> ir.Value:
        sums = exact_product(g, value, self.weights, _REACH)
        if self.bias.any():
            sums = g.op("Add", sums, g.constant(self.bias.astype(np.float64)))
        reach = _REACH * np.abs(self.weights).sum(axis=0, dtype=np.int64)
        largest = float((reach + np.abs(self.bias)).max())
        return rescaled(g, sums, self.multiplier, largest, bits=bits + 1)


@dataclass(frozen=True, slots=True)
class IntegerCell:
    """One cell; its gates stand in the order input, forget, update, output.

    Args:
        coupled: the input gate is one less the forget gate.
        cell_bits: fraction bits of the cell state.
        cell_range, output_range: what the codes are cut to.
        hidden: multiplier of the output gate times the activated cell state, and zero point.
    """

    input: _Product
    recurrent: _Product
    coupled: bool
    cell_bits: int
    cell_range: tuple[int, int]
    hidden: tuple[np.float32, int]
    projection: _Product | None
    output_range: tuple[int, int]
    output_zero_point: int

    @property
    def size(self) -> int:
        return len(self.input.bias) // len(GATES)


def read_integer_cell(op: View) -> IntegerCell:
    """The cell of an operator whose inputs are named."""
    if len(op.intermediates) != _HIDDEN + 1:
        raise Untranslatable("integer cells with 8-bit sums")
    for name in ("cell_to_output_weights", "forget_layer_norm_coefficients"):
        if name in op.names and op.get(name) is not None:
            raise Untranslatable(f"integer cells with {name}")
    coupled = op.get("input_to_input_weights") is None
    gates = ("forget", *GATES[1:]) if coupled else GATES
    state, cell = _quantization(op, "output_state"), _quantization(op, "cell_state")
    hidden = op.intermediates[_HIDDEN].quantization
    if hidden is None:
        raise Untranslatable("a hidden state without scale")
    hidden_scale, zero_point = np.float32(hidden.scale[0]), hidden.scalar_zero_point
    input = _stacked(op, "input_to_{}_weights", gates, _quantization(op, "input"), bias=True)
    recurrent = _stacked(op, "recurrent_to_{}_weights", gates, state)
    clip = _limit(op.options.cell_clip, cell.scale[0])
    proj_clip = _limit(op.options.proj_clip, _output_scale(op))
    projection = _projection(op, hidden_scale, zero_point)
    zero = state.scalar_zero_point
    lowest, highest = _cut((-128, 127), proj_clip if projection else 0)
    return IntegerCell(
        input,
        recurrent,
        coupled,
        -round(float(np.log2(cell.scale[0]))),
        _cut(_SHORT, clip),
        (np.float32(2.0**-15 / float(hidden_scale) * 2.0**-15), zero_point),
        projection,
        (lowest - zero, highest - zero),
        zero,
    )


def _quantization(op: View, name: str) -> Quantization:
    quantization = op[name].quantization
    if quantization is None:
        raise Untranslatable(f"{name} has no scale")
    return quantization


def _codes(op: View, name: str) -> Array:
    data = op[name].data
    if data is None:
        raise Untranslatable(f"{name} is not a constant")
    return data


def _output_scale(op: View) -> np.float32:
    if op.output.quantization is None:
        raise Untranslatable("the output has no scale")
    return np.float32(op.output.quantization.scale[0])


def _limit(limit: float, scale: np.float32) -> int:
    """A limit of real values in units of `scale`; 0 is none."""
    return int(min(np.float32(limit) / np.float32(scale), np.float32(_SHORT[1])))


def _cut(codes: tuple[int, int], limit: int) -> tuple[int, int]:
    return (max(codes[0], -limit), min(codes[1], limit)) if limit > 0 else codes


def _stacked(
    op: View, pattern: str, gates: tuple[str, ...], codes: Quantization, bias: bool = False
) -> _Product:
    """All gates' weights side by side; a zero point that is left is that of nothing."""
    weights = [_codes(op, pattern.format(gate)) for gate in gates]
    units = np.float32(2.0**-12)
    multipliers = [
        _quantization(op, pattern.format(gate)).scale[0] * np.float32(codes.scale[0]) / units
        for gate in gates
    ]
    rows = weights[0].shape[0]
    biases = [
        _codes(op, f"{gate}_gate_bias") if bias else np.zeros(rows, np.int32) for gate in gates
    ]
    return _Product(np.concatenate(weights).T, np.concatenate(biases), np.repeat(multipliers, rows))


def _projection(op: View, scale: np.float32, zero_point: int) -> _Product | None:
    """TFLite gives the hidden codes' zero point the other sign, here and in the bias."""
    if op.get("projection_weights") is None:
        return None
    weights = _codes(op, "projection_weights")
    bias = zero_point * weights.sum(axis=1, dtype=np.int32)
    if op.get("projection_bias") is not None:
        bias = bias + _codes(op, "projection_bias")
    own, state = _quantization(op, "projection_weights"), _quantization(op, "output_state")
    multiplier = own.scale[0] * scale / state.scale[0]
    return _Product(weights.T, bias, np.repeat(multiplier, len(weights)))


def run_integer_cell(
    g: Graph, cell: IntegerCell, x: ir.Value, h: ir.Value, c: ir.Value, *, single: bool
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """Outputs [T, B, O], last output and cell state: codes less their zero points, in float32.

    Args:
        x, h, c: the same, [T, B, I], [B, O] and [B, C].
    """
    sums = _clip(g, cell.input.of(g, x), _SHORT)
    states = (h, g.op("Cast", c, to=ir.DataType.DOUBLE))
    types = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.DOUBLE)
    (h, c), (y,) = scan(g, _Step(g, cell), states, (sums,), single=single, types=types)
    return y, h, g.op("Cast", c, to=ir.DataType.FLOAT)


class _Step:
    """One step: (h [B, O], c [B, C]) and what the input adds to the sums [B, 4 * C]."""

    def __init__(self, g: Graph, cell: IntegerCell) -> None:
        self.g, self.cell = g, cell
        size = cell.size
        table = np.repeat([2 if cell.coupled else 0, 0, 1, 0], size)
        self.places = g.constant((table * _CODES - _SHORT[0]).astype(np.float64))
        units = [2.0 ** (cell.cell_bits - 30), 2.0**-15, 1, 1]
        ties = [_TIE_BREAK, _TIE_BREAK, 1, 1]
        self.units = g.constant(np.repeat(np.multiply(units, ties), size))
        self.gates = g.constants.once(_gate_tables(), "lstm_gates")
        bits = 15 - cell.cell_bits
        self.tanh = g.constants.once(tanh(_every_code(), bits), f"tanh_of_{bits}_bits")

    def __call__(self, states: Values, slices: Values) -> tuple[Values, Values]:
        g, cell, (h, c) = self.g, self.cell, states
        sums = g.op("Add", *slices, cell.recurrent.of(g, h))
        places = g.op("Add", _clip(g, sums, _SHORT), self.places)
        gates = g.op("Mul", self._looked_up(self.gates, places), self.units)
        admit, forget, update, shown = g.op_multi("Split", gates, outputs=4, axis=1, num_outputs=4)
        kept = g.op("Round", g.op("Mul", forget, c))
        added = g.op("Round", g.op("Mul", admit, update))
        c = _clip(g, g.op("Add", kept, added), cell.cell_range)
        h = self._output(g.op("Mul", shown, self._looked_up(self.tanh, c)))
        return (h, c), (h,)

    def _looked_up(self, table: ir.Value, places: ir.Value) -> ir.Value:
        found = self.g.op("Gather", table, self.g.op("Cast", places, to=ir.DataType.INT32))
        return self.g.op("Cast", found, to=ir.DataType.DOUBLE)

    def _output(self, product: ir.Value) -> ir.Value:
        g, cell = self.g, self.cell
        multiplier, zero_point = cell.hidden
        value = rescaled(g, product, multiplier, 2.0**30)
        if cell.projection is None:
            value = self._moved(value, zero_point - cell.output_zero_point)
        else:
            codes = _clip(g, self._moved(value, -zero_point), (-128, 127))
            codes = g.op("Cast", codes, to=ir.DataType.FLOAT)
            value = cell.projection.of(g, codes, bits=8)
        return g.op("Cast", _clip(g, value, cell.output_range), to=ir.DataType.FLOAT)

    def _moved(self, value: ir.Value, by: int) -> ir.Value:
        return self.g.op("Add", value, self.g.constant(by, np.float64)) if by else value


def _clip(g: Graph, value: ir.Value, bounds: tuple[int, int]) -> ir.Value:
    return g.op("Clip", value, *(g.constant(bound, np.float64) for bound in bounds))


def _every_code() -> npt.NDArray[np.int16]:
    """All 16-bit codes; the negative ones last, where negative indices find them."""
    return np.arange(_CODES, dtype=np.uint16).view(np.int16)


@cache
def _gate_tables() -> npt.NDArray[np.int16]:
    """The logistic function, tanh and 1 less the logistic function over ascending codes."""
    codes = np.sort(_every_code())
    gate = logistic(codes, _GATE_BITS)
    return np.concatenate([gate, tanh(codes, _GATE_BITS), 32767 - gate]).astype(np.int16)
