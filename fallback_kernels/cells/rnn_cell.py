"""One recurrent cell: B batch, T time, I input, A auxiliary input, C cells."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.cells.lstm_float import Weights, activated
from tflite_ort.fallback_kernels.cells.lstm_tensors import CellTensors
from tflite_ort.schema import ActivationFunctionType

Array = npt.NDArray[Any]


@record
class RnnCell:
    """h = f(W x + A a + R h + b).

    Args:
        weights, auxiliary, recurrent: [1, C, I], [1, C, A] and [1, C, C].
        state: [B, C] before the sequence.
    """

    weights: Weights
    auxiliary: Weights | None
    recurrent: Weights
    bias: Array
    state: Array
    activation: ActivationFunctionType

    @classmethod
    def of(cls, cell: CellTensors) -> RnnCell:
        """The cell of an RNN operator, with an auxiliary input where there are weights for one."""
        auxiliary = cell.tensor("aux_weights") is not None
        return cls(
            Weights.single(cell, "weights"),
            Weights.single(cell, "aux_weights") if auxiliary else None,
            Weights.single(cell, "recurrent_weights"),
            cell.required("bias"),
            cell.required("hidden_state"),
            cell.op.options.fused_activation_function,
        )

    def run(self, x: Array, aux: Array | None, h: Array) -> tuple[Array, Array]:
        """[T, B, C] and the last of it; x [T, B, I], aux [T, B, A]."""
        sums = self.bias + self.weights.times(x)[..., 0, :]
        if aux is not None and self.auxiliary is not None:
            sums = sums + self.auxiliary.times(aux)[..., 0, :]
        outputs = np.empty_like(sums)
        for step, output in zip(sums, outputs, strict=True):
            output[...] = h = activated(step + self.recurrent.times(h)[..., 0, :], self.activation)
        return outputs, h
