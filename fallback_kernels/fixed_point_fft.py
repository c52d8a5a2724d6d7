"""Fourier transforms of fixed-point samples, number by number as kiss_fft 1.3.0 makes them.

A transform is halved and halved again; each pass divides by its radix first, so that nothing
overflows, and rounds each product. Numbers are int64 here, and wrapped where kiss_fft stores them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Parts = tuple[Ints, Ints]  # real and imaginary


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """Numbers of `dtype`, int16 or int32, of which all bits but the sign are a fraction."""

    dtype: np.dtype[Any]

    @property
    def fraction(self) -> int:
        return 8 * self.dtype.itemsize - 1

    @property
    def most(self) -> int:
        return (1 << self.fraction) - 1

    def wrapped(self, x: Ints) -> Ints:
        return x.astype(self.dtype).astype(np.int64)

    def rounded(self, product: Ints) -> Ints:
        return self.wrapped((product + (1 << (self.fraction - 1))) >> self.fraction)

    def divided(self, x: Parts, divisor: int) -> Parts:
        real, imaginary = (self.rounded(part * (self.most // divisor)) for part in x)
        return real, imaginary

    def times(self, x: Parts, y: Parts) -> Parts:
        return self.rounded(x[0] * y[0] - x[1] * y[1]), self.rounded(x[0] * y[1] + x[1] * y[0])

    def plus(self, x: Parts, y: Parts) -> Parts:
        return self.wrapped(x[0] + y[0]), self.wrapped(x[1] + y[1])

    def minus(self, x: Parts, y: Parts) -> Parts:
        return self.wrapped(x[0] - y[0]), self.wrapped(x[1] - y[1])

    def unit(self, phases: npt.ArrayLike) -> Parts:
        """Points of the unit circle."""
        cosines, sines = np.cos(phases), np.sin(phases)
        real, imaginary = (
            np.floor(0.5 + self.most * part).astype(np.int64) for part in (cosines, sines)
        )
        return real, imaginary


def rfft(samples: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[..., n] to [..., n + 2], real and imaginary parts side by side; divided by n."""
    fixed = FixedPoint(samples.dtype)
    wide = samples.astype(np.int64)
    half = samples.shape[-1] // 2
    packed = _transformed(fixed, (wide[..., ::2], wide[..., 1::2]), inverse=False)
    ends = fixed.divided(_at(packed, 0), 2)
    # Where both write the same bin, the middle one, the mirrored half is the later.
    one, other = np.arange(1, half // 2 + 1), half - np.arange(1, half // 2 + 1)
    near = fixed.divided(_at(packed, one), 2)
    far = fixed.divided(_conjugate(fixed, _at(packed, other)), 2)
    total, difference = fixed.plus(near, far), fixed.minus(near, far)
    turned = fixed.times(difference, _turns(fixed, half, inverse=False))
    bins = np.zeros((2, *samples.shape[:-1], half + 1), np.int64)
    bins[0][..., 0], bins[0][..., half] = ends[0] + ends[1], ends[0] - ends[1]
    bins[0][..., one], bins[1][..., one] = (total[0] + turned[0]) >> 1, (total[1] + turned[1]) >> 1
    bins[0][..., other] = (total[0] - turned[0]) >> 1
    bins[1][..., other] = (turned[1] - total[1]) >> 1
    parts = np.stack(list(bins), axis=-1)
    return parts.reshape(*samples.shape[:-1], -1).astype(samples.dtype)


def irfft(bins: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """[..., n + 2], real and imaginary parts side by side, to [..., n]."""
    fixed = FixedPoint(bins.dtype)
    parts = (bins[..., ::2].astype(np.int64), bins[..., 1::2].astype(np.int64))
    half = parts[0].shape[-1] - 1
    first, last = parts[0][..., 0], parts[0][..., half]
    ends = fixed.divided((fixed.wrapped(first + last), fixed.wrapped(first - last)), 2)
    one, other = np.arange(1, half // 2 + 1), half - np.arange(1, half // 2 + 1)
    near = fixed.divided(_at(parts, one), 2)
    far = fixed.divided(_conjugate(fixed, _at(parts, other)), 2)
    even = fixed.plus(near, far)
    odd = fixed.times(fixed.minus(near, far), _turns(fixed, half, inverse=True))
    packed = tuple(np.empty((*bins.shape[:-1], half), np.int64) for _ in range(2))
    sums, differences = fixed.plus(even, odd), _conjugate(fixed, fixed.minus(even, odd))
    for part, end, sum, difference in zip(packed, ends, sums, differences, strict=True):
        part[..., 0], part[..., one] = end, sum
        part[..., other] = difference
    samples = _transformed(fixed, (packed[0], packed[1]), inverse=True)
    return np.stack(samples, axis=-1).reshape(*bins.shape[:-1], -1).astype(bins.dtype)


def _at(x: Parts, index: Any) -> Parts:
    return x[0][..., index], x[1][..., index]


def _conjugate(fixed: FixedPoint, x: Parts) -> Parts:
    return x[0], fixed.wrapped(-x[1])


def _turns(fixed: FixedPoint, half: int, inverse: bool) -> Parts:
    """What the odd samples' bins 1, 2, ... are turned by, and a quarter turn more."""
    phases = -np.pi * (np.arange(1, half // 2 + 1) / half + 0.5)
    return fixed.unit(-phases if inverse else phases)


def _factors(n: int) -> list[int]:
    """4 as often as it goes, then 2, then odd numbers."""
    factors, candidate, most = [], 4, int(n**0.5)
    while n > 1:
        while n % candidate:
            candidate = {4: 2, 2: 3}.get(candidate, candidate + 2)
            if candidate > most:
                candidate = n
        factors.append(candidate)
        n //= candidate
    return factors


def _transformed(fixed: FixedPoint, x: Parts, inverse: bool) -> Parts:
    """The transform along the last axis, divided by its length."""
    n = x[0].shape[-1]
    phases = -2 * np.pi * np.arange(n) / n
    circle = fixed.unit(-phases if inverse else phases)
    return _pass(fixed, x, circle, _factors(n), inverse)


def _pass(fixed: FixedPoint, x: Parts, circle: Parts, factors: list[int], inverse: bool) -> Parts:
    """One transform of n from `radix` transforms of every radix-th sample."""
    if not factors:
        return x
    radix, n = factors[0], x[0].shape[-1]
    size, step = n // radix, circle[0].size // n
    split = tuple(np.moveaxis(part.reshape(*part.shape[:-1], size, radix), -1, 0) for part in x)
    inner = _pass(fixed, (split[0], split[1]), circle, factors[1:], inverse)
    inner = fixed.divided(inner, radix)
    turned = [
        fixed.times((inner[0][k], inner[1][k]), _at(circle, np.arange(size) * step * k))
        for k in range(1, radix)
    ]
    outputs = _COMBINED[radix](fixed, (inner[0][0], inner[1][0]), turned, circle, inverse)
    return (
        np.concatenate([real for real, _ in outputs], axis=-1),
        np.concatenate([imaginary for _, imaginary in outputs], axis=-1),
    )


def _two(
    fixed: FixedPoint, first: Parts, turned: list[Parts], circle: Parts, inverse: bool
) -> list[Parts]:
    return [fixed.plus(first, turned[0]), fixed.minus(first, turned[0])]


def _three(
    fixed: FixedPoint, first: Parts, turned: list[Parts], circle: Parts, inverse: bool
) -> list[Parts]:
    total, difference = fixed.plus(*turned), fixed.minus(*turned)
    sine = circle[1][circle[1].size // 3]
    across = fixed.rounded(difference[0] * sine), fixed.rounded(difference[1] * sine)
    middle = fixed.minus(first, (total[0] >> 1, total[1] >> 1))
    turn = _quarter(across)
    return [fixed.plus(first, total), fixed.plus(middle, turn), fixed.minus(middle, turn)]


def _four(
    fixed: FixedPoint, first: Parts, turned: list[Parts], circle: Parts, inverse: bool
) -> list[Parts]:
    one, two, three = turned
    sides, ends = fixed.plus(one, three), fixed.plus(first, two)
    turn = _quarter(fixed.minus(one, three))
    middle = fixed.minus(first, two)
    before, after = fixed.minus(middle, turn), fixed.plus(middle, turn)
    if inverse:
        before, after = after, before
    return [fixed.plus(ends, sides), before, fixed.minus(ends, sides), after]


def _five(
    fixed: FixedPoint, first: Parts, turned: list[Parts], circle: Parts, inverse: bool
) -> list[Parts]:
    one, two, three, four = turned
    outer, inner = fixed.plus(one, four), fixed.plus(two, three)
    across_outer, across_inner = fixed.minus(one, four), fixed.minus(two, three)
    near, far = (_at(circle, turn * circle[0].size // 5) for turn in (1, 2))

    def weighed(x: Parts, of_x: Ints, y: Parts, of_y: Ints, sign: int = 1) -> Parts:
        real, imaginary = (
            fixed.rounded(part * of_x) + sign * fixed.rounded(other * of_y)
            for part, other in zip(x, y, strict=True)
        )
        return real, imaginary

    middle = fixed.plus(first, weighed(outer, near[0], inner, far[0]))
    turn = _quarter(weighed(across_outer, near[1], across_inner, far[1]))
    second, fifth = fixed.plus(middle, turn), fixed.minus(middle, turn)
    middle = fixed.plus(first, weighed(outer, far[0], inner, near[0]))
    turn = _quarter(weighed(across_outer, far[1], across_inner, near[1], -1))
    third, fourth = fixed.plus(middle, turn), fixed.minus(middle, turn)
    return [fixed.plus(first, fixed.plus(outer, inner)), second, third, fourth, fifth]


def _quarter(x: Parts) -> Parts:
    """`x` turned by a quarter."""
    return -x[1], x[0]


_COMBINED = {2: _two, 3: _three, 4: _four, 5: _five}
