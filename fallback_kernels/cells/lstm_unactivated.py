"""LSTM cells in floats whose activation is NONE, as LiteRT's kernel runs them.

LiteRT's activation functions write from one buffer to another, and NONE writes nothing. So the
buffer that should get the activated cell state still has the update, and the output gate multiplies
that. The update itself is a sum of products with float weights, which LiteRT builds in two buffers
in turn. The cell reads the first buffer: it has the whole sum after an even number of products, and
the sum without the last product after an odd number. A product with an input of zeros is skipped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.cells.lstm_float import FloatCell, sigmoid
from tflite_ort.fallback_kernels.cells.lstm_tensors import States, run_steps

Array = npt.NDArray[Any]


class UnactivatedCell(FloatCell):
    """A cell that multiplies its output gate with the update, not with the cell state."""

    __slots__ = ()

    def run(self, x: Array, aux: Array | None, states: States) -> tuple[Array, States]:
        """[T, B, O] and the states after it."""
        given = self.given(x, aux)
        steps = list(zip(given, self._whole(x, aux), strict=True))
        return run_steps(self._step, steps, states)

    def _whole(self, x: Array, aux: Array | None) -> npt.NDArray[np.bool_]:
        """[T, B, 1]: whether the update of a row is its whole sum."""
        if self.input.scales is not None:
            return np.ones((*x.shape[:2], 1), np.bool_)
        products = self._met(x) + (0 if aux is None else self._met(aux))
        return np.asarray(products == 0 if self._diagonal_update else products % 2 == 1)

    def _met(self, x: Array) -> npt.NDArray[np.int_]:
        """[T, B, 1]: 1 where LiteRT multiplies an input by its weights, 0 where it skips it.

        It skips a step of zeros in all rows of a time-major input, and a row of zeros in others.
        """
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
        """The content of the first buffer without the last product."""
        if not self._diagonal_update:
            return given[:, -2]
        return np.zeros_like(self.bias[-2]) if self.norm is not None else self.bias[-2]
