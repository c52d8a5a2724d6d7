"""How far a tensor is from what it should be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.values.view import Quantization

Array = npt.NDArray[Any]

# Channels of fewer elements say nothing about a share.
_CHANNEL = 8
# What a product and a quotient in float32 may be off, relative.
_FLOAT_NOISE = 4 * float(np.finfo(np.float32).eps)
# So many channels are named, beside which the others have little of a difference.
_FEW_CHANNELS, _LITTLE = 3, 0.05
# Elements that are compared at a time.
_BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What a difference may be. docs/verify.md tells what the numbers were measured by.

    Args:
        relative: of floats, the largest difference over the largest magnitude of the reference.
        quanta: of quantized tensors, the largest difference in steps of the scale.
        isolated: as `relative`, of a single operator that is fed the reference's inputs; a tenth of
            it of operators that neither add up nor approximate.
        share: of such an operator's 8-bit results, the share of elements that may differ at all;
            50 times as large a share of one channel may.
        absolute: of the floats of outputs, what is near enough however small the reference is.
    """

    relative: float = 1e-4
    quanta: float = 1.0
    isolated: float = 1e-5
    share: float = 0.005
    absolute: float = 1e-7


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one tensor is from the reference's, over all samples.

    Args:
        elements: how many were compared.
        equal: how many of them are the same; NaN equals NaN.
        largest: the largest absolute difference; of a quantized tensor in real numbers.
        mean: the mean absolute difference, in the same unit.
        relative: `largest` over the largest magnitude of the reference.
        quanta, mean_quanta: the same differences of a quantized tensor in steps of its scale, of
            other integers in units; None for floats and truth values.
        nan: elements that are NaN on one side alone.
        infinite: elements that are infinite on one side alone, or with the other sign.
        crowded: of quantized tensors, the largest share of elements that differ in one channel
            (the last axis), of channels with 8 elements and more.
        channels: where nearly all of the difference is in few channels, these.
        of_channels: how many channels there are; 0 where they have fewer elements.
        problem: why it cannot be compared, such as a shape that is another one; the numbers
            then mean nothing.
    """

    elements: int
    equal: int
    largest: float = 0.0
    mean: float = 0.0
    relative: float = 0.0
    quanta: float | None = None
    mean_quanta: float | None = None
    nan: int = 0
    infinite: int = 0
    crowded: float = 0.0
    problem: str = ""
    channels: tuple[int, ...] = ()
    of_channels: int = 0

    @property
    def changed(self) -> float:
        """The share of elements that differ."""
        return 1.0 - self.equal / self.elements if self.elements else 0.0

    @property
    def exact(self) -> bool:
        return self.equal == self.elements and not self.problem

    @property
    def finite(self) -> bool:
        """Whether NaN and infinity stand in the same places."""
        return not (self.nan or self.infinite or self.problem)

    @property
    def words(self) -> str:
        """How large it is."""
        if self.problem:
            return self.problem
        if self.exact:
            return "nothing"
        parts = []
        if self.quanta is not None:
            parts.append(f"{steps_text(self.quanta)} in {self.changed:.2%} of the elements")
        elif self.relative or not (self.nan or self.infinite):
            parts.append(f"{self.relative:.2g} of the largest value")
        if self.nan:
            parts.append(f"{self.nan} NaN")
        if self.infinite:
            parts.append(f"{self.infinite} infinities")
        if self.channels:
            named = " and ".join(map(str, self.channels))
            several = "s" * (len(self.channels) > 1)
            parts.append(f"in channel{several} {named} of {self.of_channels}")
        return ", ".join(parts)

    def within(self, tolerance: Tolerance) -> bool:
        """Whether the values are near enough; `tolerance.share` is not asked for."""
        if self.exact or not self.finite:
            return self.exact
        if self.quanta is not None:
            return self.quanta <= tolerance.quanta
        return self.relative <= tolerance.relative or self.largest <= tolerance.absolute

    def as_near_as(self, other: Difference, times: float = 1.0) -> bool:
        """Whether the values are no further away than `times` as far as those of `other`."""
        if self.exact or not self.finite:
            return self.exact
        if self.quanta is not None and other.quanta is not None:
            return self.quanta <= times * other.quanta
        return self.relative <= times * other.relative


def steps_text(count: float) -> str:
    """So many quanta."""
    number = f"{count:.3g}"
    return f"{number} {'quantum' if number == '1' else 'quanta'}"


def difference(got: Array, want: Array, quantization: Quantization | None = None) -> Difference:
    """How far `got` is from the reference's `want`.

    Args:
        quantization: of `want`, whose elements are codes then. `got` has codes too, or the real
            numbers that they stand for as floats.
    """
    if got.shape != want.shape:
        return Difference(0, 0, problem=f"shape {got.shape}, the reference has {want.shape}")
    if got.dtype.kind in "OSU" or want.dtype.kind in "OSU":
        return _of_words(got, want)
    if quantization is not None:
        return _of_codes(got, want, quantization)
    if not _comparable(got.dtype, want.dtype):
        problem = f"elements of {got.dtype}, the reference has {want.dtype}"
        return Difference(0, 0, problem=problem)
    whole = got.dtype == want.dtype and want.dtype.kind in "iu"
    if whole and np.array_equal(got, want):
        return Difference(want.size, want.size, quanta=0.0, mean_quanta=0.0)
    wide = np.complex128 if "c" in (got.dtype.kind, want.dtype.kind) else np.float64
    sums = _Sums(_channels_of(want))
    for some, right in _blocks(got, want):
        sums.add(some.astype(wide), right.astype(wide), some == right if whole else None)
    return sums.difference(sums if whole else None)


def merged(found: Sequence[Difference]) -> Difference | None:
    """The largest of the largest and the mean of the means; None of none."""
    if not found:
        return None
    problem = next((each.problem for each in found if each.problem), "")
    elements = sum(each.elements for each in found)
    quanta = [each.quanta for each in found if each.quanta is not None]

    def mean(values: Sequence[float | None]) -> float:
        pairs = zip(found, values, strict=True)
        return sum(each.elements * (value or 0.0) for each, value in pairs) / max(1, elements)

    return Difference(
        elements,
        sum(each.equal for each in found),
        max(each.largest for each in found),
        mean([each.mean for each in found]),
        max(each.relative for each in found),
        max(quanta) if quanta else None,
        mean([each.mean_quanta for each in found]) if quanta else None,
        sum(each.nan for each in found),
        sum(each.infinite for each in found),
        max(each.crowded for each in found),
        problem,
        *_same_channels([each for each in found if not each.exact]),
    )


def _same_channels(found: Sequence[Difference]) -> tuple[tuple[int, ...], int]:
    """The channels in which all of `found` differ; none where they differ in others."""
    channels = {(each.channels, each.of_channels) for each in found}
    return channels.pop() if len(channels) == 1 else ((), 0)


def worst(found: Sequence[Difference]) -> Difference | None:
    """The one that is furthest away; None of none."""
    return max(found, key=badness, default=None)


def largest(found: Sequence[Difference]) -> Difference | None:
    """The largest of each number; None of none."""
    if not found:
        return None
    both = merged(found)
    assert both is not None
    changed = max(found, key=lambda each: each.changed)
    return replace(both, elements=changed.elements, equal=changed.equal)


def badness(found: Difference) -> tuple[bool, float]:
    """The order of differences of any kind: a larger one is worse."""
    return not found.finite, found.relative


def real_values(codes: Array, quantization: Quantization) -> npt.NDArray[np.float64]:
    """The real numbers that `codes` stand for."""
    scale, zero_point = _parameters(quantization, codes.ndim)
    return (codes.astype(np.float64) - zero_point) * scale


def _parameters(quantization: Quantization, rank: int) -> tuple[Array, Array]:
    shape = [1] * rank
    if quantization.per_channel:
        shape[quantization.axis] = -1
    scale = quantization.scale.astype(np.float64)
    return scale.reshape(shape), quantization.zero_point.reshape(shape)


def _comparable(got: np.dtype[Any], want: np.dtype[Any]) -> bool:
    floats = {"f", "c", "V"}
    return got == want or (got.kind in floats and want.kind in floats)


def _of_words(got: Array, want: Array) -> Difference:
    pairs = zip(got.reshape(-1).tolist(), want.reshape(-1).tolist(), strict=True)
    equal = sum(_octets(a) == _octets(b) for a, b in pairs)
    off = 0.0 if equal == want.size else 1.0
    return Difference(want.size, equal, off, off, off)


def _octets(word: Any) -> Any:
    return word.encode() if isinstance(word, str) else word


def _of_codes(got: Array, want: Array, quantization: Quantization) -> Difference:
    if got.dtype == want.dtype and np.array_equal(got, want):
        return Difference(want.size, want.size, quanta=0.0, mean_quanta=0.0)
    scale, zero_point = _parameters(quantization, want.ndim)
    steps, reals = _Sums(_channels_of(want)), _Sums()
    changed = list[npt.NDArray[np.bool_]]()
    # Scales of channels fit the whole alone.
    blocks = [(got, want)] if quantization.per_channel else _blocks(got, want)
    if not quantization.per_channel:
        scale, zero_point = scale.reshape(-1), zero_point.reshape(-1)
    for some, right in blocks:
        codes = right.astype(np.float64) - zero_point
        if got.dtype.kind in "iu":
            found, same = some.astype(np.float64) - zero_point, some == right
        else:  # real numbers are the same where they would be rounded to the same code
            found = _snapped(some.astype(np.float64) / np.where(scale == 0, 1, scale))
            with np.errstate(invalid="ignore"):
                same = np.rint(found) == codes
        steps.add(found, codes)
        reals.add(found * scale, codes * scale)
        changed.append(~same.reshape(-1))
    apart = np.concatenate(changed).reshape(want.shape) if changed else np.zeros(want.shape, bool)
    reals.same = want.size - int(apart.sum())
    return reals.difference(steps, _crowded(apart))


def _snapped(steps: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Whole numbers of steps where float32 cannot tell them from these: codes that were made real
    numbers."""
    whole = np.rint(steps)
    with np.errstate(invalid="ignore"):
        near = np.abs(steps - whole) <= _FLOAT_NOISE * np.maximum(np.abs(steps), 1)
    return np.where(near, whole, steps)


def _crowded(changed: npt.NDArray[np.bool_]) -> float:
    """The largest share that is true along the last axis."""
    if changed.ndim < 2 or changed.size < _CHANNEL * max(1, changed.shape[-1]):
        return 0.0
    return float(changed.reshape(-1, changed.shape[-1]).mean(axis=0).max(initial=0.0))


def _channels_of(want: Array) -> int:
    """How many channels it has, along the last axis; 0 where they have few elements."""
    many = want.ndim > 1 and want.shape[-1] > 1 and want.size >= _CHANNEL * want.shape[-1]
    return int(want.shape[-1]) if many else 0


def _blocks(got: Array, want: Array) -> Iterator[tuple[Array, Array]]:
    """Both in pieces of whole rows of channels, so that wider copies of them stay small."""
    flat, row = (got.reshape(-1), want.reshape(-1)), _channels_of(want) or 1
    size = max(1, _BLOCK // row) * row
    for at in range(0, want.size, size):
        yield flat[0][at : at + size], flat[1][at : at + size]


@dataclass(slots=True)
class _Sums:
    """Differences of numbers, as float64 or complex128, over several pieces.

    Args:
        channels: along the last axis, of which it is told where the differences are; 0 for none.
        by_channel: by channel the sum of the differences, and how many elements differ.
    """

    channels: int = 0
    by_channel: npt.NDArray[np.float64] | None = None
    elements: int = 0
    same: int = 0
    nan: int = 0
    infinite: int = 0
    largest: float = 0.0
    total: float = 0.0
    magnitude: float = 0.0

    def add(self, got: Array, want: Array, equal: Array | None = None) -> None:
        """One more piece.

        Args:
            equal: which elements were the same as integers: float64 does not tell large ones apart.
        """
        same = (got == want) | (np.isnan(got) & np.isnan(want)) if equal is None else equal
        nan = np.isnan(got) != np.isnan(want)
        infinite = ~(same | nan) & ~(np.isfinite(got) & np.isfinite(want))
        apart = np.zeros(want.shape)
        with np.errstate(invalid="ignore", over="ignore"):
            np.abs(got - want, out=apart, where=~(same | nan | infinite))
            if equal is not None:
                np.maximum(apart, 1.0, out=apart, where=~equal)
            magnitude = np.abs(want).max(where=np.isfinite(want), initial=0.0)
        self.elements += want.size
        self.same += int(same.sum())
        self.nan += int(nan.sum())
        self.infinite += int(infinite.sum())
        self.largest = max(self.largest, float(apart.max(initial=0.0)))
        self.total += float(apart.sum())
        self.magnitude = max(self.magnitude, float(magnitude))
        if self.channels and want.size % self.channels == 0:
            rows = np.where(nan | infinite, self.magnitude, apart).reshape(-1, self.channels)
            found = np.stack([rows.sum(axis=0), (~same.reshape(rows.shape)).sum(axis=0)])
            self.by_channel = found if self.by_channel is None else self.by_channel + found

    def few_channels(self) -> tuple[int, ...]:
        """The channels in which nearly all of the differences are, in most of their elements; none
        where they are in many."""
        if self.by_channel is None:
            return ()
        (total, count), of_each = self.by_channel, self.elements / self.channels
        worst = np.flatnonzero(total > _LITTLE * total.max(initial=0.0))
        few = 0 < len(worst) <= min(_FEW_CHANNELS, self.channels // 4)
        crowded = bool(few) and bool((count[worst] >= of_each / 2).all())
        return tuple(worst.tolist()) if crowded else ()

    @property
    def mean(self) -> float:
        return self.total / max(1, self.elements)

    def difference(self, quanta: _Sums | None, crowded: float = 0.0) -> Difference:
        """These, and `quanta` in steps."""
        return Difference(
            self.elements,
            self.same,
            self.largest,
            self.mean,
            self.largest / (self.magnitude or 1.0),
            None if quanta is None else quanta.largest,
            None if quanta is None else quanta.mean,
            self.nan,
            self.infinite,
            crowded,
            "",
            channels := (self if quanta is None else quanta).few_channels(),
            (self if quanta is None else quanta).channels if channels else 0,
        )
