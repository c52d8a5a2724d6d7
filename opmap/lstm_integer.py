"""The codes of integer LSTM cells (8x8_16), read for a graph that computes them bit for bit.

B batch, I input, C cells, O outputs. Codes are carried with their zero points taken off.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from tflite_ort.opmap.fixed_point import exact_product, rescaled
from tflite_ort.opmap.graph import Graph
from tflite_ort.opmap.normalization_integer import Norm
from tflite_ort.schema import OperatorView, Quantization, TensorView, Untranslatable
from tflite_ort.schema.lstm_inputs import GATES, PEEPHOLE_GATES

Array = npt.NDArray[Any]
View = OperatorView[Any]

SHORT, BYTE = (-32768, 32767), (-128, 127)
_REACH = 255  # of an 8-bit code less its zero point
_HIDDEN = 4  # the intermediate with the scale of the cell's output


@dataclass(frozen=True, slots=True)
class Product:
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
class Peephole:
    """What gates see of the cell state: weights [4, C], 0 for the update, and multipliers [4]."""

    weights: Array
    multiplier: Array


@dataclass(frozen=True, slots=True)
class IntegerCell:
    """One cell; its gates stand in the order input, forget, update, output.

    Args:
        coupled: the input gate is one less the forget gate.
        cell_bits: fraction bits of the cell state.
        cell_range, output_range: what the codes are cut to.
        hidden: multiplier of the output gate times the activated cell state, and zero point.
    """

    input: Product
    recurrent: Product
    peephole: Peephole | None
    norm: Norm | None
    coupled: bool
    cell_bits: int
    cell_range: tuple[int, int]
    hidden: tuple[np.float32, int]
    projection: Product | None
    output_range: tuple[int, int]
    output_zero_point: int

    @property
    def size(self) -> int:
        return len(self.input.bias) // len(GATES)


def read_integer_cell(op: View) -> IntegerCell:
    """The cell of an operator whose inputs are named."""
    if len(op.intermediates) != _HIDDEN + 1:
        raise Untranslatable("integer cells with 8-bit sums")
    coupled = op.get("input_to_input_weights") is None
    gates = ("forget", *GATES[1:]) if coupled else GATES
    state, cell = _quantization(op, "output_state"), _quantization(op, "cell_state")
    norm = _norm(op, gates)
    units = _units(op, gates, norm is not None)
    bits = -round(float(np.log2(cell.scale[0])))
    hidden_scale, zero_point = _hidden(op)
    projection = _projection(op, hidden_scale, zero_point)
    proj_clip = op.options.proj_clip if projection else 0
    zero = state.scalar_zero_point
    lowest, highest = code_limit(BYTE, proj_clip, _scale(op.output))
    input = _stacked(op, "input_to_{}_weights", gates, _quantization(op, "input"), units)
    return IntegerCell(
        input if norm else _with_biases(op, input, gates),
        _stacked(op, "recurrent_to_{}_weights", gates, state, units),
        _peephole(op, gates, units, bits),
        norm,
        coupled,
        bits,
        code_limit(SHORT, op.options.cell_clip, cell.scale[0]),
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


def _scale(tensor: TensorView) -> np.float32:
    if tensor.quantization is None:
        raise Untranslatable(f"{tensor.name!r} has no scale")
    return np.float32(tensor.quantization.scale[0])


def _hidden(op: View) -> tuple[np.float32, int]:
    """Scale and zero point of the output gate times the activated cell state."""
    tensor = op.intermediates[_HIDDEN]
    scale, quantization = _scale(tensor), tensor.quantization
    return scale, 0 if quantization is None else quantization.scalar_zero_point


def _units(op: View, gates: Sequence[str], normalized: bool) -> Array:
    """The scales of the gates' sums."""
    if not normalized:
        return np.full(len(gates), 2.0**-12, np.float32)
    # An input gate that is one less the forget gate stands for it.
    return np.array([_scale(op.intermediates[GATES.index(gate)]) for gate in gates])


def code_limit(codes: tuple[int, int], clip: float, scale: np.float32) -> tuple[int, int]:
    """`codes`, or those within +-`clip`, which is in units of `scale` the highest code at most."""
    if clip <= 0:
        return codes
    limit = int(min(np.float32(clip) / np.float32(scale), np.float32(codes[1])))
    return (-limit, limit) if limit else codes


def _stacked(
    op: View, pattern: str, gates: Sequence[str], codes: Quantization, units: Array
) -> Product:
    """All gates' weights side by side."""
    names = [pattern.format(gate) for gate in gates]
    weights = [_codes(op, name) for name in names]
    scales = np.array([_quantization(op, name).scale[0] for name in names])
    multipliers = scales * np.float32(codes.scale[0]) / units
    rows = len(weights[0])
    zeros = np.zeros(rows * len(gates), np.int32)
    return Product(np.concatenate(weights).T, zeros, np.repeat(multipliers, rows))


def _with_biases(op: View, product: Product, gates: Sequence[str]) -> Product:
    biases = [_codes(op, f"{gate}_gate_bias") for gate in gates]
    return replace(product, bias=np.concatenate(biases))


def _norm(op: View, gates: Sequence[str]) -> Norm | None:
    names = [f"{gate}_layer_norm_coefficients" for gate in gates]
    if names[1] not in op.names or op.get(names[1]) is None:
        return None
    return Norm(
        np.stack([_codes(op, name) for name in names]),
        np.stack([_codes(op, f"{gate}_gate_bias") for gate in gates]),
        np.array([_scale(op[name]) for name in names]),
    )


def _peephole(op: View, gates: Sequence[str], units: Array, bits: int) -> Peephole | None:
    if op.get("cell_to_output_weights") is None:
        return None
    if op.get("projection_weights") is not None:
        raise Untranslatable("TFLite takes a projected cell's peephole for as long as its outputs")
    weights: list[Array] = []
    multipliers: list[float] = []
    for gate, unit in zip(gates, units, strict=True):
        name = f"cell_to_{gate}_weights"
        seen = gate in PEEPHOLE_GATES
        weights.append(_codes(op, name) if seen else np.zeros_like(weights[0]))
        multipliers.append(2.0**-bits * float(_scale(op[name])) / float(unit) if seen else 0.0)
    return Peephole(np.stack(weights), np.array(multipliers, np.float32))


def _projection(op: View, scale: np.float32, zero_point: int) -> Product | None:
    """TFLite gives the hidden codes' zero point the other sign, here and in the bias."""
    if op.get("projection_weights") is None:
        return None
    weights = _codes(op, "projection_weights")
    bias = zero_point * weights.sum(axis=1, dtype=np.int32)
    if op.get("projection_bias") is not None:
        bias = bias + _codes(op, "projection_bias")
    own, state = _quantization(op, "projection_weights"), _quantization(op, "output_state")
    multiplier = own.scale[0] * scale / state.scale[0]
    return Product(weights.T, bias, np.repeat(multiplier, len(weights)))
