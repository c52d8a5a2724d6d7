"""LSTM cells in floats whose activation is NONE, as LiteRT's kernel runs them.

Its activation functions write from one buffer to another, and NONE writes nothing. So the cell
state that the output gate is to let through is never written over the update that was there. Sums
of float weights are built in two buffers in turn, and the update is what stands in the first: all
of them after an even number of products, the sum so far after an odd one. A product with an input
of nothing but zeros is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.cells.lstm_float import FloatCell, sigmoid
from tflite_ort.fallback_kernels.cells.lstm_tensors import States, run_steps

Array = npt.NDArray[Any]


class UnactivatedCell(FloatCell):
    """A cell with the update in place of the activated cell state."""

    __slots__ = ()

    def run(self, x: Array, aux: Array | None, states: States) -> tuple[Array, States]:
        """[T, B, O] and the states after it."""
        given = self.given(x, aux)
        steps = list(zip(given, self._whole(x, aux), strict=True))
        return run_steps(self._step, steps, states)

    def _whole(self, x: Array, aux: Array | None) -> npt.NDArray[np.bool_]:
        """[T, B, 1]: whether a row's update is its whole sum."""
        if self.input.scales is not None:
            return np.ones((*x.shape[:2], 1), np.bool_)
        products = self._met(x) + (0 if aux is None else self._met(aux))
        return np.asarray(products == 0 if self._diagonal_update else products % 2 == 1)

    def _met(self, x: Array) -> npt.NDArray[np.int_]:
        """[T, B, 1]: 1 where LiteRT multiplies with an input; all rows of a time-major one are
        looked at together."""
        together = getattr(self.options, "time_major", True)
        found = x.any(axis=(1, 2) if together else 2, keepdims=True)
        return np.broadcast_to(found, (*x.shape[:2], 1)).astype(np.int_)

    @property
    def _diagonal_update(self) -> bool:
        return self.diagonal is not None and bool(self.diagonal[-2].any())

    def _step(self, step: tuple[Array, Array], h: Array, c: Array) -> States:
        given, whole = step
        sums = self.sums(given, h)
        early = self.gates(sums, slice(None, -1), c)
        update = np.where(whole, early[:, -1], self._partial(given))
        c = self.updated(early, update, c)
        output = sigmoid(self.gates(sums, slice(-1, None), c)[:, 0])
        return self.projected(output * update), c

    def _partial(self, given: Array) -> Array:
        """What the first buffer holds of the update but for the last product."""
        if not self._diagonal_update:
            return given[:, -2]
        return np.zeros_like(self.bias[-2]) if self.norm is not None else self.bias[-2]
