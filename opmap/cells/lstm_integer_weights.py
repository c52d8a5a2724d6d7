"""The weights of integer LSTM cells (8x8_16), for a graph that computes them bit for bit.

B batch, I input, C cells, O outputs. All codes are less their zero points.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record, replace
from tflite_ort.opmap.cells.normalization_integer import Norm
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.idioms.fixed_point import (
    exact_product,
    first_factor,
    is_exact_in_double,
    reach,
    refuse_wraps,
    rescaled,
    shifted_right,
)
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.schema import OperatorView, Untranslatable
from tflite_ort.schema.arithmetic.lstm_scales import CellScales, cell_scales, quantization
from tflite_ort.schema.values.lstm import GATES, PEEPHOLE_GATES, LstmKind

Array = npt.NDArray[Any]
View = OperatorView[Any]

SHORT, BYTE = (-32768, 32767), (-128, 127)
PRODUCT = 2**30  # the largest magnitude of a product of two 16-bit codes
_REACH = 255  # of an 8-bit code less its zero point
# Up to so many weights a product in float64 takes less time than the nodes that it saves.
_FEW = 2**15


@record
class Product:
    """Codes times weights [columns, rows] plus bias [rows], rescaled by a multiplier [rows]."""

    weights: Array
    bias: Array
    multiplier: Array

    def of(self, g: Graph, value: ir.Value, bits: int = 16) -> ir.Value:
        """Rows of codes [..., columns] in float32 to rescaled sums [..., rows] in float64.

        Args:
            bits: the results are clipped to so many bits later.
        """
        sums = exact_product(g, value, self.weights, _REACH)
        if self.bias.any():
            sums = g.op("Add", sums, g.constant(self.bias.astype(np.float64)))
        return rescaled(g, sums, self.multiplier, self._largest, bits=bits + 1)

    def refuse_wraps(self) -> None:
        """Refuses sums that wrap around at 32 bits in TFLite."""
        refuse_wraps(self.multiplier, self._sums(_REACH))

    @property
    def fits_doubles(self) -> bool:
        """Whether `of_doubles` is exact."""
        return is_exact_in_double(self.multiplier, self._largest)

    @property
    def is_small(self) -> bool:
        """Whether `of_doubles` takes less time on most machines."""
        return self.weights.size <= _FEW

    def of_doubles(self, g: Graph, value: ir.Value) -> ir.Value:
        """As `of`, of rows [B, columns] in float64: the first rounding's half and the multipliers
        are in the weights. All sums are multiples of 2**-31 below 2**22, which doubles hold."""
        high, right = self._high_half(g, value)
        return shifted_right(g, high, right)

    def between_integers(self, g: Graph, value: ir.Value) -> ir.Value:
        """As `of_doubles`, without the last rounding: the next integer is the result, and no half
        is left. The factor moves halves away from zero, by 2**-25 at least and by less than the
        distance of other numbers from a half: a large integer can be added."""
        high, right = self._high_half(g, value)
        return g.op("Mul", high, g.constant(2.0**-right * (1 + 2.0**-24)))

    def reach(self, largest: int) -> int:
        """A bound of the results for codes up to `largest`."""
        return int(np.ceil(self._sums(largest) * np.abs(self.multiplier)).max()) + 1

    def _high_half(self, g: Graph, value: ir.Value) -> tuple[ir.Value, Array]:
        """The sums after the first rounding, and the shift to the right that is left."""
        factor, right = first_factor(self.multiplier)
        weights = g.constants.add(self.weights.astype(np.float64) * factor, "weights")
        half = g.constants.add(self.bias * factor + 0.5, "bias")
        return g.op("Floor", g.op("Gemm", value, weights, half)), right

    @property
    def _largest(self) -> float:
        """The largest magnitude of a sum."""
        return float(self._sums(_REACH).max())

    def _sums(self, largest: int) -> npt.NDArray[np.int64]:
        """The largest magnitude of each sum, [rows], for codes up to `largest`."""
        return largest * reach(self.weights) + np.abs(self.bias, dtype=np.int64)


@record
class Peephole:
    """The weights [4, C] of the cell state in the gates, 0 for the update, and multipliers [4]."""

    weights: Array
    multiplier: Array


@record
class IntegerWeights:
    """One cell, with the gates in the order input, forget, update, output.

    Args:
        coupled: the input gate is one less the forget gate.
        cell_bits: fraction bits of the cell state.
        cell_range, output_range: the bounds to which the codes are clipped.
        hidden: multiplier and zero point of the output gate times the activated cell state.

    `output_range`, `hidden` and `output_zero_point` are arrays, [1] or [C].
    """

    input: Product
    recurrent: Product
    peephole: Peephole | None
    norm: Norm | None
    coupled: bool
    cell_bits: int
    cell_range: tuple[int, int]
    hidden: tuple[Array, Array]
    projection: Product | None
    output_range: tuple[Array, Array]
    output_zero_point: Array

    @property
    def size(self) -> int:
        """The number of cells, C."""
        return len(self.input.bias) // len(GATES)


def read_integer_weights(op: View) -> IntegerWeights:
    """The weights of the cell of `op`, an LSTM.

    Raises:
        Untranslatable: they are not constant, or lead to numbers that wrap around in TFLite.
    """
    if LstmKind.of(op) is not LstmKind.INTEGER:
        raise Untranslatable("integer cells with 8-bit sums")
    coupled = op.get("input_to_input_weights") is None
    # The weights of the forget gate stand in for those of a coupled input gate.
    gates = ("forget", *GATES[1:]) if coupled else GATES
    scales = cell_scales(op, gates)
    norm = None if scales.norm is None else _norm(op, gates, scales.norm)
    input = _stacked(op, "input_to_{}_weights", gates, scales.input)
    zero = quantization(op["output_state"]).scalar_zero_point
    lowest, highest = cut(BYTE, scales.output_limit)
    cell = IntegerWeights(
        input if norm else _with_biases(op, input, gates),
        _stacked(op, "recurrent_to_{}_weights", gates, scales.recurrent),
        None if scales.peephole is None else _peephole(op, gates, scales.peephole),
        norm,
        coupled,
        scales.cell_bits,
        cut(SHORT, scales.cell_limit),
        (np.array([scales.hidden]), np.array([scales.hidden_zero_point])),
        _projection(op, scales),
        (np.array([lowest - zero]), np.array([highest - zero])),
        np.array([zero]),
    )
    _refuse_wraps(cell)
    return cell


def _refuse_wraps(cell: IntegerWeights) -> None:
    for product in (cell.input, cell.recurrent, cell.projection):
        if product is not None:
            product.refuse_wraps()
    refuse_wraps(cell.hidden[0], PRODUCT)
    if cell.peephole is not None:
        refuse_wraps(cell.peephole.multiplier, PRODUCT)


def _codes(op: View, name: str) -> Array:
    data = op[name].data
    if data is None:
        raise Untranslatable(f"{name} is not a constant")
    return data


def cut(codes: tuple[int, int], limit: int) -> tuple[int, int]:
    """The bounds `codes`, or +-`limit`; a limit of 0 is none."""
    return (-limit, limit) if limit else codes


def _stacked(op: View, pattern: str, gates: Sequence[str], multipliers: Array) -> Product:
    """All gates' weights side by side."""
    weights = [_codes(op, pattern.format(gate)) for gate in gates]
    rows = len(weights[0])
    zeros = np.zeros(rows * len(gates), np.int32)
    return Product(np.concatenate(weights).T, zeros, np.repeat(multipliers, rows))


def _with_biases(op: View, product: Product, gates: Sequence[str]) -> Product:
    biases = [_codes(op, f"{gate}_gate_bias") for gate in gates]
    return replace(product, bias=np.concatenate(biases))


def _norm(op: View, gates: Sequence[str], scales: Array) -> Norm:
    return Norm(
        np.stack([_codes(op, f"{gate}_layer_norm_coefficients") for gate in gates]),
        np.stack([_codes(op, f"{gate}_gate_bias") for gate in gates]),
        scales,
    )


def _peephole(op: View, gates: Sequence[str], multipliers: Array) -> Peephole:
    if op.get("projection_weights") is not None:
        raise Untranslatable("TFLite takes a projected cell's peephole for as long as its outputs")
    weights: list[Array] = []
    for gate in gates:
        seen = gate in PEEPHOLE_GATES
        weights.append(_codes(op, f"cell_to_{gate}_weights") if seen else np.zeros_like(weights[0]))
    return Peephole(np.stack(weights), multipliers)


def _projection(op: View, scales: CellScales) -> Product | None:
    """The projection of the hidden codes.

    TFLite uses their zero point with the opposite sign, here and in the bias.
    """
    if op.get("projection_weights") is None:
        return None
    weights = _codes(op, "projection_weights")
    bias = scales.hidden_zero_point * weights.sum(axis=1, dtype=np.int32)
    if op.get("projection_bias") is not None:
        bias = bias + _codes(op, "projection_bias")
    return Product(weights.T, bias, np.repeat(scales.projection, len(weights)))
