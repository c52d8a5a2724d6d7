"""LSTM cells in integers: 8-bit activations and weights, 16-bit gates and cell state (8x8_16).

T time, B batch, G gates, C cells, O outputs; gates are stacked as in `lstm_float`. Sums are clipped
to 16 bits after every summand: input, last output, peephole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.cells.lstm_tensors import CellTensors, States, joined, run_steps
from tflite_ort.schema.arithmetic.fixed_point import (
    inverse_sqrt,
    multiply_by_quantized_multiplier,
    quantize_multiplier,
    rounding_shift_right,
    saturate,
)
from tflite_ort.schema.arithmetic.fixed_point16 import logistic, tanh
from tflite_ort.schema.arithmetic.lstm_scales import CellScales, cell_scales
from tflite_ort.schema.values.lstm import PEEPHOLE_GATES

Array = npt.NDArray[Any]

_GATE_BITS = 3  # integer bits of a gate's sum


@record
class Multiplier:
    """A real factor, or one per gate, in fixed point."""

    q31: Array
    shift: Array

    @classmethod
    def of(cls, real: npt.ArrayLike) -> Multiplier:
        """The fixed-point form of `real`, element by element."""
        return cls(*quantize_multiplier(np.asarray(real, np.float32)))

    def times(self, x: Array) -> Array:
        """round(x * factor), rounded twice as TFLite does."""
        return multiply_by_quantized_multiplier(x, self.q31, self.shift)

    def __getitem__(self, which: slice) -> Multiplier:
        return Multiplier(self.q31[which], self.shift[which])


@record
class Product:
    """A stack of matrices, [G, rows, columns] codes, with the rescaling of its products.

    Args:
        matrix: [columns, G * rows], in floats that hold every sum exactly.
        bias: [G, rows], zero points included.
    """

    matrix: Array
    bias: Array
    factor: Multiplier

    @classmethod
    def of(
        cls, weights: Array, zero_point: int, factors: Array, bias: Array | None = None
    ) -> Product:
        """The product for codes with `zero_point`, rescaled by `factors` [G]."""
        exact = np.float32 if weights.shape[-1] * 2**14 <= 2**24 else np.float64
        offset = (-zero_point * weights.sum(axis=-1, dtype=np.int64)).astype(np.int32)  # it wraps
        matrix = joined(weights, exact)
        factor = Multiplier.of(factors[:, np.newaxis])
        return cls(matrix, offset if bias is None else bias + offset, factor)

    def times(self, codes: Array) -> Array:
        """The rescaled products [..., G, rows] with `codes` [..., columns]."""
        sums = (codes.astype(self.matrix.dtype) @ self.matrix).astype(np.int32)
        return self.factor.times(sums.reshape(*codes.shape[:-1], *self.bias.shape) + self.bias)


@record
class LayerNorm:
    """Layer normalisation: rows of mean 0 and variance 1, times weights [G, C], plus bias [G, C].

    Args:
        least: [G, 1], the variance that TFLite takes for a row of equal codes.
    """

    weights: Array
    bias: Array
    factor: Multiplier
    least: Array

    @classmethod
    def of(cls, cell: CellTensors, scales: Array) -> LayerNorm:
        """The normalisation of a cell whose weights have `scales` [G, 1]."""
        return cls(
            cell.stacked("{}_layer_norm_coefficients").astype(np.int64),
            cell.stacked("{}_gate_bias"),
            Multiplier.of(scales),
            np.maximum(1, (np.float32(10000) * scales).astype(np.int64)),
        )

    def apply(self, x: Array, which: slice) -> Array:
        """Normalise the sums of some gates; means have 10 fraction bits, results 12."""
        wide, count = x.astype(np.int64), x.shape[-1]
        mean = _quotient(wide.sum(axis=-1, keepdims=True) * 1024, count)
        squares = np.square(wide).sum(axis=-1, keepdims=True) * (2**20 // count)
        variance = _quotient(squares - mean * mean, 2**20)
        variance = np.where(variance < 1, self.least[which], variance)
        deviations = multiply_by_quantized_multiplier(1024 * wide - mean, *inverse_sqrt(variance))
        weighted = deviations * self.weights[which] + self.bias[which]
        rounded = _quotient(np.where(weighted > 0, weighted + 512, weighted - 512), 1024)
        factor = self.factor[which]
        codes = multiply_by_quantized_multiplier(rounded, factor.q31, factor.shift + 12)
        return saturate(codes, np.int16)


@record
class IntegerCell:
    """One cell.

    Args:
        peephole: [B, G, C] or [1, G, C], 0 for the cell gate.
        projection: [1, O, C].
        The other fields are those of `CellScales`.
    """

    input: Product
    recurrent: Product
    peephole: tuple[Array, Multiplier] | None
    norm: LayerNorm | None
    cell_bits: int
    cell_limit: int
    hidden: Multiplier
    hidden_zero_point: int
    projection: Product | None
    output_limit: int
    output_zero_point: int

    @classmethod
    def of(cls, cell: CellTensors) -> IntegerCell:
        """Reads the cell from the inputs of its operator, and its multipliers from their scales.

        The zero points of the input and of the output state become part of the biases. A cell
        without an input gate has G = 3: `step` takes one less the forget gate for it.

        Raises:
            KernelError: a required input is absent.
        """
        scales = cell_scales(cell.op, cell.gates)
        norm = None if scales.norm is None else LayerNorm.of(cell, scales.norm[:, np.newaxis])
        projected = cell.array("projection_weights") is not None
        return cls(
            input=Product.of(
                cell.stacked("input_to_{}_weights"),
                cell.zero_point("input"),
                scales.input,
                None if norm is not None else cell.stacked("{}_gate_bias"),
            ),
            recurrent=Product.of(
                cell.stacked("recurrent_to_{}_weights"),
                cell.zero_point("output_state"),
                scales.recurrent,
            ),
            peephole=None if scales.peephole is None else _peephole(cell, scales.peephole),
            norm=norm,
            cell_bits=scales.cell_bits,
            cell_limit=scales.cell_limit,
            hidden=Multiplier.of(scales.hidden),
            hidden_zero_point=scales.hidden_zero_point,
            projection=_projection(cell, scales) if projected else None,
            output_limit=scales.output_limit,
            output_zero_point=cell.zero_point("output_state"),
        )

    def run(self, x: Array, aux: Array | None, states: States) -> tuple[Array, States]:
        """[T, B, O] and the states after it; there is no auxiliary input."""
        return run_steps(self.step, saturate(self.input.times(x), np.int16), states)

    def step(self, sums: Array, h: Array, c: Array) -> States:
        """The states after one more step, for the contribution `sums` [B, G, C] of its input."""
        sums = saturate(sums + self.recurrent.times(h), np.int16)
        early = self._gates(sums, slice(None, -1), c)
        update = tanh(early[:, -1], _GATE_BITS)
        doors = logistic(early[:, :-1], _GATE_BITS)
        forget = doors[:, -1]
        admit = doors[:, 0] if doors.shape[1] == 2 else 32767 - forget
        c = updated_cell(c, forget, admit, update, self.cell_bits, self.cell_limit)
        output = logistic(self._gates(sums, slice(-1, None), c)[:, 0], _GATE_BITS)
        return self._output(output, tanh(c, 15 - self.cell_bits)), c

    def _gates(self, sums: Array, which: slice, c: Array) -> Array:
        """The arguments of the activations of some gates, from sums without the peephole."""
        sums = sums[:, which]
        if self.peephole is not None:
            weights, factor = self.peephole
            seen = factor[which].times(weights[:, which] * c[:, np.newaxis])
            sums = saturate(sums + seen, np.int16)
        return sums if self.norm is None else self.norm.apply(sums, which)

    def _output(self, gate: Array, activated: Array) -> Array:
        hidden = self.hidden.times(gate.astype(np.int32) * activated)
        if self.projection is None:
            return saturate(hidden + self.hidden_zero_point, np.int8)
        # TFLite subtracts the zero point here, and in the bias of the projection.
        codes = saturate(hidden - self.hidden_zero_point, np.int8)
        result = self.projection.times(codes)[:, 0] + self.output_zero_point
        return clipped(saturate(result, np.int8), self.output_limit)


def updated_cell(
    c: Array, forget: Array, admit: Array, update: Array, bits: int, limit: int
) -> Array:
    """``forget * c + admit * update``, each product rounded to `bits` fraction bits."""
    kept = rounding_shift_right(forget.astype(np.int32) * c, 15)
    added = rounding_shift_right(admit.astype(np.int32) * update, 30 - bits)
    return clipped(saturate(kept + added, np.int16), limit)


def clipped(codes: Array, limit: int) -> Array:
    """`codes` clipped to +-`limit`; a limit of 0 is none."""
    return np.clip(codes, -limit, limit) if limit > 0 else codes


def _quotient(a: Array, b: int) -> Array:
    """a / b rounded towards zero, as in C."""
    return np.asarray(np.sign(a) * (np.abs(a) // b))


def _peephole(cell: CellTensors, factors: Array) -> tuple[Array, Multiplier]:
    rows: list[Array] = []
    for gate in cell.gates:
        seen = gate in PEEPHOLE_GATES
        weights = cell.required(f"cell_to_{gate}_weights") if seen else np.zeros_like(rows[-1])
        rows.append(weights.astype(np.int32))
    return _walked(np.stack(rows), cell), Multiplier.of(factors[:, np.newaxis])


def _walked(weights: Array, cell: CellTensors) -> Array:
    """[B, G, C]: the peephole weight that LiteRT applies to every cell of every row, 0 for none.

    LiteRT steps through the cells of a time-major batch as one row, and through those of any other
    batch row by row. It starts over in the weights [G, C] after O cells, not C, and stops after O
    cells times the number of rows.
    """
    gates, cells = weights.shape
    together = getattr(cell.op.options, "time_major", True)
    batch = cell.required("cell_state").size // cells if together else 1
    outputs = min(cell.sizes)
    place = np.arange(batch * cells)
    met = np.where(place < batch * outputs, weights[:, place % outputs], 0)
    return met.reshape(gates, batch, cells).swapaxes(0, 1)


def _projection(cell: CellTensors, scales: CellScales) -> Product:
    weights = cell.required("projection_weights")[np.newaxis]
    zero_point, bias = -scales.hidden_zero_point, cell.array("projection_bias")
    return Product.of(weights, zero_point, scales.projection.reshape(1), bias)
