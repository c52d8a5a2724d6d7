"""The discrete Fourier transform of many rows of real numbers, as two matrix products.

With N = A * B, element n = a * B + b and frequency k = c + A * d, the transform is

    X[k] = sum over b of w(b * k / N) * (sum over a of x[a, b] * w(a * c / A))

where w(t) = exp(-2 pi i t). The inner sums are a product with one matrix, the outer ones a product
with a matrix for each c.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.opmap.graph import Graph, ir

FloatArray = npt.NDArray[np.float32]
# Fewer rows do not pay for reading the matrices; larger factors do not pay either.
_FEWEST_ROWS, _LARGEST_FACTOR = 8, 128


def factors_of(length: int, rows: int) -> tuple[int, int] | None:
    """A and B, which is even, for rows of this length; None where the products are not faster."""
    if rows < _FEWEST_ROWS:
        return None
    pairs = [(a, length // a) for a in range(2, _LARGEST_FACTOR + 1) if length % a == 0]
    fit = [(a, b) for a, b in pairs if b % 2 == 0 and b <= _LARGEST_FACTOR]
    return min(fit, key=lambda pair: (sum(pair), pair), default=None)


def factored_transform(g: Graph, value: ir.Value, rows: int, factors: tuple[int, int]) -> ir.Value:
    """The first half of the frequencies, [rows, A * B / 2 + 1, 2], of `value` [rows, A * B]."""
    a, b = factors
    length, frequencies = a * b, b // 2 + 1
    inner = g.op("MatMul", g.constants.add(_inner(a), "waves"), g.reshape(value, (rows, a, b)))
    inner = g.op("Transpose", g.reshape(inner, (rows, a, 2 * b)), perm=[1, 0, 2])
    outer = g.op("MatMul", inner, g.constants.add(_outer(a, b), "waves"))
    outer = g.op("Transpose", g.reshape(outer, (a, rows, frequencies, 2)), perm=[1, 2, 0, 3])
    whole = g.reshape(outer, (rows, a * frequencies, 2))
    return g.op("Slice", whole, g.ints([0]), g.ints([length // 2 + 1]), g.ints([1]))


@cache
def _inner(a: int) -> FloatArray:
    """[2 * A, A]: real and imaginary parts of the waves of each frequency c."""
    places = np.outer(np.arange(a), np.arange(a))
    return _parts(places, a, axis=1).reshape(2 * a, a)


@cache
def _outer(a: int, b: int) -> FloatArray:
    """[A, 2 * B, (B / 2 + 1) * 2]: for each c, from real and imaginary parts of the inner sums to
    those of each d."""
    frequency = np.arange(a)[:, np.newaxis, np.newaxis] + a * np.arange(b // 2 + 1)
    places = np.arange(b)[:, np.newaxis] * frequency  # [A, B, B / 2 + 1]
    waves = _parts(places, a * b, axis=-1)
    turned = np.stack([-waves[..., 1], waves[..., 0]], axis=-1)  # times i
    return np.stack([waves, turned], axis=1).reshape(a, 2 * b, -1)


def _parts(places: npt.NDArray[Any], length: int, axis: int) -> FloatArray:
    """cos and sin of -2 pi * places / length, stacked along a new axis."""
    angles = places % length * (-2 * math.pi / length)
    return np.stack([np.cos(angles), np.sin(angles)], axis=axis).astype(np.float32)
