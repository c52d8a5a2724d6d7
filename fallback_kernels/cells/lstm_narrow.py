"""LSTM cells in integers whose partial sums are held in 8 bits (8x8_8).

All such cells are coupled, normalised, and projected with a bias. Peepholes and the weights of an
input gate are ignored. B batch, C cells, O outputs, G gates in the order forget, cell, output.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.cells.lstm_integer import Multiplier, clipped, updated_cell
from tflite_ort.fallback_kernels.cells.lstm_tensors import CellTensors, States, joined, run_steps
from tflite_ort.schema.arithmetic.fixed_point import (
    multiply_wide_by_quantized_multiplier,
    round_half_away,
    rounding_shift_right,
    saturate,
)
from tflite_ort.schema.arithmetic.fixed_point16 import truncated_logistic, truncated_tanh
from tflite_ort.schema.arithmetic.lstm_scales import NARROW_GATES, NarrowSum, narrow_scales

Array = npt.NDArray[Any]

_CELL_BITS = 15  # fraction bits of the cell state


@record
class PartialSum:
    """A product that is clipped to 8 bits and then rescaled to the scale of the whole sum.

    Args:
        matrix: [columns, G * C].
        offset: [G, C], the contribution of the zero point of the vectors.
        zero_point: [G, 1], of the 8-bit sums.
    """

    matrix: Array
    offset: Array
    factor: Multiplier
    zero_point: Array
    to_whole: Multiplier

    @classmethod
    def of(cls, cell: CellTensors, pattern: str, source: str, scales: NarrowSum) -> PartialSum:
        """The product with vectors that are quantized as the input `source`."""
        weights = np.stack([cell.required(pattern.format(gate)) for gate in NARROW_GATES])
        return cls(
            matrix=joined(weights, np.float64),
            offset=-cell.zero_point(source) * weights.sum(axis=-1, dtype=np.int32),
            factor=Multiplier.of(scales.factor),
            zero_point=scales.zero_point,
            to_whole=Multiplier.of(scales.to_whole),
        )

    def times(self, codes: Array) -> Array:
        """The sums [B, G, C] for `codes` [B, columns]."""
        sums = (codes.astype(np.float64) @ self.matrix).astype(np.int32)
        products = self.factor.times(sums.reshape(len(codes), *self.offset.shape) + self.offset)
        held = saturate(products + self.zero_point, np.int8)
        return self.to_whole.times(held - self.zero_point)


@record
class NarrowCell:
    """One cell.

    Args:
        norm, bias: [G, C], in units of `norm_scale` [G, 1] and of its 2**-10th.
        projection: [C, O], int64.
    """

    input: PartialSum
    recurrent: PartialSum
    norm: Array
    bias: Array
    norm_scale: Array
    cell_clip: int
    projection: Array
    projection_bias: Array
    projection_factor: Multiplier
    proj_clip: int
    output_zero_point: int

    @classmethod
    def of(cls, cell: CellTensors) -> NarrowCell:
        """Reads the cell from the inputs of its operator, and its multipliers from their scales.

        The input gate is one less the forget gate, whatever its weights; peepholes are not read.
        KernelError: a required input is absent.
        """
        scales = narrow_scales(cell.op)
        gates = [(f"{gate}_layer_norm_coefficients", f"{gate}_gate_bias") for gate in NARROW_GATES]
        return cls(
            input=PartialSum.of(cell, "input_to_{}_weights", "input", scales.input),
            recurrent=PartialSum.of(
                cell, "recurrent_to_{}_weights", "output_state", scales.recurrent
            ),
            norm=np.stack([cell.required(norm) for norm, _ in gates]),
            bias=np.stack([cell.required(bias) for _, bias in gates]),
            norm_scale=_as_float32(Multiplier.of(scales.norm)),
            cell_clip=scales.cell_limit,
            projection=cell.required("projection_weights").T.astype(np.int64),
            projection_bias=cell.required("projection_bias").astype(np.int64),
            projection_factor=Multiplier.of(scales.projection),
            proj_clip=scales.output_limit,
            output_zero_point=cell.zero_point("output_state"),
        )

    def run(self, x: Array, aux: Array | None, states: States) -> tuple[Array, States]:
        """[T, B, O] and the states after it; there is no auxiliary input."""
        return run_steps(self.step, x, states)

    def step(self, x: Array, h: Array, c: Array) -> States:
        """The states after one more step of input [B, I]."""
        recurrent = self.recurrent.times(h)
        # LiteRT multiplies this sum by a shift that it reads in place of a factor: 0 is left.
        recurrent[:, -1] = 0
        sums = saturate(self.input.times(x) + recurrent, np.int16)
        early = self._normalized(sums, slice(None, -1))
        forget, update = truncated_logistic()[early[:, 0]], truncated_tanh(12)[early[:, 1]]
        c = updated_cell(c, forget, 32767 - forget, update, _CELL_BITS, self.cell_clip)
        output = truncated_logistic()[self._normalized(sums, slice(-1, None))[:, 0]]
        activated = truncated_tanh(15)[c.view(np.uint16)]
        hidden = saturate(rounding_shift_right(output.astype(np.int32) * activated, 15), np.int16)
        wide = hidden @ self.projection + self.projection_bias
        factor = self.projection_factor
        result = multiply_wide_by_quantized_multiplier(wide, factor.q31, factor.shift)
        codes = saturate(result + self.output_zero_point, np.int8)
        return clipped(codes, self.proj_clip), c

    def _normalized(self, sums: Array, which: slice) -> npt.NDArray[np.uint16]:
        """The normalised sums of some gates, with 12 fraction bits, as indices of a table.

        Sums exceed the integers that float32 holds, so the order of addition matters. A variance
        below 0 has no root; LiteRT makes a code of 0 of the NaN.
        """
        x = sums[:, which].astype(np.float32)
        count, scale = np.float32(x.shape[-1]), self.norm_scale[which]
        mean = _added_up(x) / count
        variance = _added_up(x * x) / count - mean * mean
        rooted = np.where(variance > 0, variance, np.float32(1e-8))
        real = (x - mean) * (np.float32(1) / np.sqrt(rooted)) * self.norm[which] * scale
        real = real + self.bias[which].astype(np.float32) * (np.float32(2.0**-10) * scale)
        codes = saturate(round_half_away(real * np.float32(4096)), np.int16)
        return np.where(variance < 0, np.int16(0), codes).view(np.uint16)


def _added_up(x: Array) -> Array:
    """The sum of each row, [..., 1], one number after the other."""
    return np.asarray(np.add.accumulate(x, axis=-1)[..., -1:])


def _as_float32(factor: Multiplier) -> Array:
    real: Array = factor.q31 * 2.0 ** (factor.shift - 31)
    return real.astype(np.float32)
