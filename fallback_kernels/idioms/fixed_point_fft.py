"""Fourier transforms of fixed-point samples, equal to those of kiss_fft 1.3.0 in every bit.

A transform of n samples is computed from shorter ones of every second, third, ... sample. A pass
first divides by its radix, so that nothing overflows, and rounds all products. Complex numbers are
int64 arrays [2, ...] of real and imaginary parts, which wrap where kiss_fft stores them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record

Ints = npt.NDArray[np.int64]


@record
class FixedPoint:
    """Numbers of `dtype`, int16 or int32, of which all bits but the sign are a fraction."""

    dtype: np.dtype[Any]

    @property
    def fraction(self) -> int:
        """The number of fraction bits."""
        return 8 * self.dtype.itemsize - 1

    @property
    def most(self) -> int:
        """The largest number, just below 1."""
        return (1 << self.fraction) - 1

    def wrapped(self, x: Ints) -> Ints:
        """Integers cut to the bits of the type."""
        return x.astype(self.dtype).astype(np.int64)

    def rounded(self, product: Ints) -> Ints:
        """A product of two numbers, shifted back; halves go up."""
        return self.wrapped((product + (1 << (self.fraction - 1))) >> self.fraction)

    def divided(self, x: Ints, divisor: int) -> Ints:
        """Numbers times 1 / `divisor`."""
        return self.rounded(x * (self.most // divisor))

    def times(self, x: Ints, y: Ints) -> Ints:
        """The product of complex numbers [2, ...]."""
        return self.rounded(np.stack([x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]))

    def unit(self, phases: npt.NDArray[np.float64]) -> Ints:
        """Points of the unit circle."""
        circle = np.stack([np.cos(phases), np.sin(phases)])
        return np.floor(0.5 + self.most * circle).astype(np.int64)


def rfft(samples: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The transform of real [..., n], divided by n: [..., n + 2], real, imaginary parts in turn."""
    fixed, half = FixedPoint(samples.dtype), samples.shape[-1] // 2
    packed = _transformed(fixed, _complex(samples), inverse=False)
    ends = fixed.divided(packed[..., 0], 2)
    near, far = _mirrored(half)
    bins = np.zeros((*packed.shape[:-1], half + 1), np.int64)
    bins[0][..., 0], bins[0][..., half] = ends[0] + ends[1], ends[0] - ends[1]
    total, turned = _halves(fixed, packed, half, inverse=False)
    bins[..., near] = (total + turned) >> 1
    # The middle bin is its own mirror image: this value is kept.
    bins[..., far] = _conjugate(total - turned) >> 1
    return _interleaved(bins, samples.dtype)


def irfft(bins: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The inverse of `rfft`: [..., n + 2], real and imaginary parts in turn, to [..., n]."""
    fixed, parts = FixedPoint(bins.dtype), _complex(bins)
    half = parts.shape[-1] - 1
    first, last = parts[0][..., 0], parts[0][..., half]
    near, far = _mirrored(half)
    packed = np.zeros((*parts.shape[:-1], half), np.int64)
    packed[..., 0] = fixed.divided(fixed.wrapped(np.stack([first + last, first - last])), 2)
    total, turned = _halves(fixed, parts, half, inverse=True)
    packed[..., near] = fixed.wrapped(total + turned)
    packed[..., far] = fixed.wrapped(_conjugate(total - turned))
    return _interleaved(_transformed(fixed, packed, inverse=True), bins.dtype)


def _complex(pairs: npt.NDArray[Any]) -> Ints:
    """[..., 2n], real and imaginary parts in turn, as complex numbers [2, ..., n]."""
    return np.moveaxis(pairs.astype(np.int64).reshape(*pairs.shape[:-1], -1, 2), -1, 0)


def _interleaved(x: Ints, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    return np.moveaxis(x, 0, -1).reshape(*x.shape[1:-1], -1).astype(dtype)


def _conjugate(x: Ints) -> Ints:
    return np.stack([x[0], -x[1]])


def _mirrored(half: int) -> tuple[Ints, Ints]:
    """The bins 1, 2, ... up to the middle, and their mirror images from the other end."""
    near = np.arange(1, half // 2 + 1)
    return near, half - near


def _halves(fixed: FixedPoint, x: Ints, half: int, inverse: bool) -> tuple[Ints, Ints]:
    """The parts of the mirrored bins from the even samples, and from the odd ones, rotated."""
    near, far = _mirrored(half)
    one = fixed.divided(x[..., near], 2)
    other = fixed.divided(fixed.wrapped(_conjugate(x[..., far])), 2)
    phases = -np.pi * (near / half + 0.5)
    turns = fixed.unit(-phases if inverse else phases)
    return fixed.wrapped(one + other), fixed.times(fixed.wrapped(one - other), turns)


def _factors(n: int) -> list[int]:
    """The radices of n: as many 4s as possible, then 2, 3 and 5."""
    factors = []
    for factor in (4, 2, 3, 5):
        while n % factor == 0:
            factors.append(factor)
            n //= factor
    return factors


def _transformed(fixed: FixedPoint, x: Ints, inverse: bool) -> Ints:
    """The transform along the last axis, divided by its length."""
    n = x.shape[-1]
    phases = -2 * np.pi * np.arange(n) / n
    circle = fixed.unit(-phases if inverse else phases)
    return _pass(fixed, x, circle, _factors(n), inverse)


def _pass(fixed: FixedPoint, x: Ints, circle: Ints, factors: list[int], inverse: bool) -> Ints:
    """A transform of n samples from `radix` transforms of every radix-th sample."""
    if not factors:
        return x
    radix, n = factors[0], x.shape[-1]
    size, step = n // radix, circle.shape[-1] // n
    split = np.moveaxis(x.reshape(*x.shape[:-1], size, radix), -1, 1)
    parts = fixed.divided(_pass(fixed, split, circle, factors[1:], inverse), radix)
    turned = [
        fixed.times(parts[:, k], circle[:, np.arange(size) * step * k]) for k in range(1, radix)
    ]
    outputs = _COMBINED[radix](fixed, [parts[:, 0], *turned], circle, inverse)
    return fixed.wrapped(np.concatenate(outputs, axis=-1))


# The outputs of one pass from its rotated parts; the caller wraps the sums.


def _two(fixed: FixedPoint, parts: Sequence[Ints], circle: Ints, inverse: bool) -> list[Ints]:
    first, second = parts
    return [first + second, first - second]


def _three(fixed: FixedPoint, parts: Sequence[Ints], circle: Ints, inverse: bool) -> list[Ints]:
    first, second, third = parts
    total = fixed.wrapped(second + third)
    sine = circle[1, circle.shape[-1] // 3]
    turn = _quarter(fixed.rounded(fixed.wrapped(second - third) * sine))
    middle = first - (total >> 1)
    return [first + total, middle + turn, middle - turn]


def _four(fixed: FixedPoint, parts: Sequence[Ints], circle: Ints, inverse: bool) -> list[Ints]:
    first, second, third, fourth = parts
    turn = _quarter(second - fourth)
    turn = turn if inverse else -turn
    even, odd, middle = first + third, second + fourth, first - third
    return [even + odd, middle + turn, even - odd, middle - turn]


def _five(fixed: FixedPoint, parts: Sequence[Ints], circle: Ints, inverse: bool) -> list[Ints]:
    first, *others = parts
    outer, inner = fixed.wrapped(others[0] + others[3]), fixed.wrapped(others[1] + others[2])
    outwards, inwards = fixed.wrapped(others[0] - others[3]), fixed.wrapped(others[1] - others[2])
    (near, near_sine), (far, far_sine) = (
        circle[:, circle.shape[-1] * fifth // 5] for fifth in (1, 2)
    )
    middle = first + fixed.rounded(outer * near) + fixed.rounded(inner * far)
    turn = _quarter(fixed.rounded(outwards * near_sine) + fixed.rounded(inwards * far_sine))
    other_middle = first + fixed.rounded(outer * far) + fixed.rounded(inner * near)
    other_turn = _quarter(fixed.rounded(outwards * far_sine) - fixed.rounded(inwards * near_sine))
    return [
        first + outer + inner,
        *(middle + turn, other_middle + other_turn),
        *(other_middle - other_turn, middle - turn),
    ]


def _quarter(x: Ints) -> Ints:
    """`x` rotated by 90 degrees."""
    return np.stack([-x[1], x[0]])


_COMBINED: dict[int, Callable[[FixedPoint, Sequence[Ints], Ints, bool], list[Ints]]] = {
    2: _two,
    3: _three,
    4: _four,
    5: _five,
}
