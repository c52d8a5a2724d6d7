"""LSTM cells in floats, with weights that are floats or 8-bit codes (hybrid).

T time, B batch, G gates, C cells, O outputs. The gates of a stack have the order input, forget,
cell, output; the input gate is missing where it is one less the forget gate.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.cells.lstm_tensors import CellTensors, States, joined, run_steps
from tflite_ort.fallback_kernels.idioms.accumulator import quantized_rows
from tflite_ort.fallback_kernels.idioms.operands import clamped
from tflite_ort.schema import ActivationFunctionType
from tflite_ort.schema.values.lstm import PEEPHOLE_GATES

Array = npt.NDArray[Any]


@record
class Weights:
    """A stack of matrices.

    Args:
        matrix: [columns, G * rows], codes where there are scales.
        scales: [G, 1], or None for reals.
        asymmetric: whether vectors are quantized with a zero point before codes multiply them.
    """

    matrix: Array
    stack: int
    scales: Array | None = None
    asymmetric: bool = False

    @classmethod
    def of(cls, cell: CellTensors, pattern: str) -> Weights:
        """The matrices of all gates."""
        values = cell.stacked(pattern)
        reals = values.dtype == np.float32
        return cls.stacked(cell, values, None if reals else cell.scales(pattern))

    @classmethod
    def single(cls, cell: CellTensors, name: str) -> Weights:
        """A stack of one matrix."""
        values = cell.required(name)[np.newaxis]
        reals = values.dtype == np.float32
        return cls.stacked(cell, values, None if reals else cell.scale(name).reshape(1, 1))

    @classmethod
    def stacked(cls, cell: CellTensors, values: Array, scales: Array | None) -> Weights:
        """The stack of `values` [G, rows, columns]; uint8 codes are read as int8, as in TFLite."""
        if scales is None:
            return cls(joined(values, np.float32), len(values))
        # In float64 all sums of products are exact.
        matrix = joined(values.view(np.int8), np.float64)
        return cls(matrix, len(values), scales, cell.op.options.asymmetric_quantize_inputs)

    def times(self, vectors: Array) -> Array:
        """The products [..., G, rows] with `vectors` [..., columns]."""
        rows = self.matrix.shape[1] // self.stack
        shape = (*vectors.shape[:-1], self.stack, rows)
        if self.scales is None:
            return np.asarray((vectors @ self.matrix).reshape(shape))
        codes, scales = quantized_rows(vectors, (-1,), self.asymmetric)
        sums = (codes.astype(np.float64) @ self.matrix).astype(np.float32).reshape(shape)
        return np.asarray(sums * (scales[..., np.newaxis] * self.scales))


@record
class FloatCell:
    """One cell.

    Args:
        input, auxiliary, recurrent: [G, C, I], [G, C, A] and [G, C, O].
        diagonal: [G, C], recurrent weights that are diagonal matrices; None without any.
        peephole: [G, C], 0 for the cell gate; None without.
        bias, norm: [G, C]; a gate's sums are normalised before the bias is added.
        projection: [1, O, C].
    """

    input: Weights
    auxiliary: Weights | None
    recurrent: Weights | None
    diagonal: Array | None
    peephole: Array | None
    bias: Array
    norm: Array | None
    projection: Weights | None
    projection_bias: Array | None
    options: Any

    @classmethod
    def of(cls, cell: CellTensors) -> FloatCell:
        """Reads the cell from the inputs of its operator.

        A cell without an input gate has G = 3: `updated` takes 1 - forget gate for it.

        Raises:
            KernelError: a required input is absent, or integer weights have no scale.
        """
        auxiliary = cell.array("aux_input_to_output_weights") is not None
        normalized = cell.array("forget_layer_norm_coefficients") is not None
        projected = cell.array("projection_weights") is not None
        recurrent, diagonal = _recurrent(cell)
        return cls(
            input=Weights.of(cell, "input_to_{}_weights"),
            auxiliary=Weights.of(cell, "aux_input_to_{}_weights") if auxiliary else None,
            recurrent=recurrent,
            diagonal=diagonal,
            peephole=_peephole(cell),
            bias=cell.stacked("{}_gate_bias"),
            norm=cell.stacked("{}_layer_norm_coefficients") if normalized else None,
            projection=Weights.single(cell, "projection_weights") if projected else None,
            projection_bias=cell.array("projection_bias"),
            options=cell.op.options,
        )

    def run(self, x: Array, aux: Array | None, states: States) -> tuple[Array, States]:
        """[T, B, O] and the states after it.

        Args:
            x, aux: [T, B, I] and [T, B, A].
        """
        return run_steps(self.step, self.given(x, aux), states)

    def given(self, x: Array, aux: Array | None) -> Array:
        """The contributions of the inputs of all steps to the gates' sums, [T, B, G, C]."""
        sums = self.input.times(x)
        if self.norm is None:
            sums = self.bias + sums
        if aux is not None and self.auxiliary is not None:
            sums = sums + self.auxiliary.times(aux)
        return sums

    def step(self, given: Array, h: Array, c: Array) -> States:
        """The states after one more step, for the contribution `given` [B, G, C] of its input."""
        sums, function = self.sums(given, h), self.options.fused_activation_function
        early = self.gates(sums, slice(None, -1), c)
        c = self.updated(early, activated(early[:, -1], function), c)
        output = sigmoid(self.gates(sums, slice(-1, None), c)[:, 0])
        return self.projected(output * activated(c, function)), c

    def sums(self, given: Array, h: Array) -> Array:
        """The gates' sums [B, G, C] of the input and the last output `h`."""
        if self.recurrent is not None:
            given = given + self.recurrent.times(h)
        if self.diagonal is not None:
            given = given + self.diagonal * h[:, np.newaxis]
        return given

    def gates(self, sums: Array, which: slice, c: Array) -> Array:
        """The arguments of the activations of some gates: with peephole, normalisation and bias."""
        sums = sums[:, which]
        if self.peephole is not None:
            sums = sums + self.peephole[which] * c[:, np.newaxis]
        if self.norm is None:
            return sums
        return np.asarray(normalized(sums) * self.norm[which] + self.bias[which])

    def updated(self, early: Array, update: Array, c: Array) -> Array:
        """The new cell state [B, C], from the arguments of all gates but the output gate."""
        doors = sigmoid(early[:, :-1])
        forget = doors[:, -1]
        admit = doors[:, 0] if doors.shape[1] == 2 else 1 - forget
        return clipped(forget * c + update * admit, self.options.cell_clip)

    def projected(self, hidden: Array) -> Array:
        """The output [B, O] of hidden values [B, C]: projected and clipped, if the cell is."""
        if self.projection is None:
            return hidden
        result = self.projection.times(hidden)[:, 0]
        if self.projection_bias is not None:
            result = self.projection_bias + result
        return clipped(result, self.options.proj_clip)


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)); a large negative `x` gives 0 without a warning."""
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-x)))


def normalized(x: Array) -> Array:
    """Rows of mean 0 and variance 1."""
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = np.square(centred).mean(axis=-1, keepdims=True)
    return np.asarray(centred / np.sqrt(variance + np.float32(1e-8)))


def clipped(x: Array, limit: float) -> Array:
    """`x` clipped to +-`limit`; a limit of 0 is none."""
    return np.clip(x, -limit, limit) if limit > 0 else x


def activated(x: Array, function: ActivationFunctionType) -> Array:
    """`x` after an activation function of a recurrent cell."""
    if function == ActivationFunctionType.TANH:
        return np.tanh(x)
    if function == ActivationFunctionType.SIGN_BIT:
        return np.signbit(x).astype(x.dtype)
    return clamped(x, function)


def _recurrent(cell: CellTensors) -> tuple[Weights | None, Array | None]:
    """The recurrent matrices, and the diagonals; None if no gate has one.

    Where some gates have a matrix and others a diagonal, the missing ones are 0.
    """
    pattern = "recurrent_to_{}_weights"
    found = {pattern.format(gate): cell.required(pattern.format(gate)) for gate in cell.gates}
    matrices = [array for array in found.values() if array.ndim == 2]
    if len(matrices) == len(found):
        return Weights.of(cell, pattern), None
    rows = [a if a.ndim == 1 else np.zeros(len(a), np.float32) for a in found.values()]
    if not matrices:
        return None, np.stack(rows)
    values = np.stack([a if a.ndim == 2 else np.zeros_like(matrices[0]) for a in found.values()])
    scales = None
    if values.dtype != np.float32:
        scales = np.array(
            [[cell.scale(n) if a.ndim == 2 else 1] for n, a in found.items()], np.float32
        )
    return Weights.stacked(cell, values, scales), np.stack(rows)


def _peephole(cell: CellTensors) -> Array | None:
    if cell.array("cell_to_output_weights") is None:
        return None
    rows: list[Array] = []
    for gate in cell.gates:
        name = f"cell_to_{gate}_weights"
        if gate not in PEEPHOLE_GATES:
            rows.append(np.zeros_like(rows[-1]))
            continue
        weights = cell.required(name)
        if weights.dtype != np.float32:
            weights = cell.scale(name) * weights.view(np.int8)
        rows.append(weights)
    return np.stack(rows)
