"""Where the marks of plots stand, in units of their viewBox; a template draws them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.comparison.differences import Difference

Array = npt.NDArray[Any]

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 82, 12, 16, 36

# Exact results have no logarithm: they stand on the ground line, this many decades below the rest.
_GROUND = 0.7
_DECADES_SHOWN = 12
_BINS = 40


@dataclass(frozen=True, slots=True)
class Tick:
    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class Series:
    """Dots of one colour; `points` is what SVG's polyline takes, empty where no line joins them."""

    name: str
    dots: tuple[Dot, ...]
    points: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot with its axes.

    Args:
        description: what a reader who cannot see it should know.
        x_title, y_title: of the axes.
        limit: where the tolerance lies, and its text.
    """

    title: str
    description: str
    x_title: str
    y_title: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    series: tuple[Series, ...]
    limit: Tick | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """The size of a difference at a place on the x axis; `text` tells where."""

    x: int
    size: float
    text: str


def size_plot(
    title: str,
    axes: tuple[str, str],
    found: Sequence[tuple[str, Sequence[Sample]]],
    limit: float | None = None,
) -> Plot | None:
    """Sizes on a logarithmic axis, a series a name; None where there are none. A line joins the
    dots of the first one alone.

    Args:
        axes: the titles of x and y.
        limit: the tolerance, drawn as a line.
    """
    samples = [each for _, series in found for each in series]
    if not samples:
        return None
    finite = [each.size for each in samples if math.isfinite(each.size)]
    axis = _LogAxis.around([*finite, limit or 0.0])
    last = max(each.x for each in samples)

    def across(x: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (x / last if last else 0.5)

    drawn = tuple(
        _series(name, [Dot(across(each.x), axis.place(each.size), each.text) for each in series])
        for name, series in found
        if series
    )
    drawn = (*drawn[:1], *(replace(each, points="") for each in drawn[1:]))
    return Plot(
        title,
        "; ".join(_summary(name, series) for name, series in found if series),
        *axes,
        tuple(Tick(across(x), str(x)) for x in _whole_ticks(last)),
        axis.ticks(),
        drawn,
        Tick(axis.place(limit), f"tolerance {limit:g}") if limit else None,
    )


def histogram(title: str, x_title: str, found: Sequence[tuple[str, Array]]) -> Plot | None:
    """How many elements have which value, of several arrays; None where none is finite."""
    arrays = [(name, values.astype(np.float64).reshape(-1)) for name, values in found]
    arrays = [(name, values[np.isfinite(values)]) for name, values in arrays]
    arrays = [(name, values) for name, values in arrays if values.size]
    if not arrays:
        return None
    low = min(float(values.min()) for _, values in arrays)
    high = max(float(values.max()) for _, values in arrays)
    edges = _edges(low, high)
    counts = [np.histogram(values, edges)[0] for _, values in arrays]
    axis = _LogAxis.around([float(each) for count in counts for each in count])
    series = tuple(
        _series(name, _stairs(count, axis.place))
        for (name, _), count in zip(arrays, counts, strict=True)
    )
    sizes = ", ".join(f"{name}: {values.size}" for name, values in arrays)
    description = f"Finite elements: {sizes}; values from {low:.4g} to {high:.4g}."
    places = np.linspace(LEFT, WIDTH - RIGHT, 5).tolist()
    labels = (np.linspace(edges[0] / 2, edges[-1] / 2, 5) * 2).tolist()
    x_ticks = tuple(Tick(at, f"{text:.3g}") for at, text in zip(places, labels, strict=True))
    return Plot(title, description, x_title, "elements", x_ticks, axis.ticks("0"), series)


@dataclass(frozen=True, slots=True)
class _LogAxis:
    """From the decade `low` up to `high`; below it the ground line of zero."""

    low: int
    high: int

    @classmethod
    def around(cls, sizes: Sequence[float]) -> _LogAxis:
        powers = [math.log10(size) for size in sizes if size > 0]
        high = math.ceil(max(powers, default=0.0) + 0.01)
        low = math.floor(min(powers, default=-1.0))
        return cls(min(max(low, high - _DECADES_SHOWN), high - 1), high)

    def place(self, size: float) -> float:
        """The y of a size; NaN and infinity stand at the top."""
        if not math.isfinite(size):
            return TOP
        if size <= 0:
            return float(HEIGHT - BOTTOM)
        return self._at(min(max(math.log10(size), self.low), self.high))

    def _at(self, power: float) -> float:
        ground = self.low - _GROUND
        share = (power - ground) / (self.high - ground)
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * share

    def ticks(self, zero: str = "exact") -> tuple[Tick, ...]:
        step = max(1, -(-(self.high - self.low) // 5))
        powers = range(self.low, self.high + 1, step)
        return (Tick(self.place(0.0), zero), *(Tick(self._at(p), _power(p)) for p in powers))


def _power(power: int) -> str:
    return f"{10.0**power:g}" if -4 < power < 5 else f"1e{power:+03d}"


def _whole_ticks(last: int) -> Sequence[int]:
    """About eight round numbers."""
    power = 10 ** max(0, len(str(last)) - 2)
    step = next(each * power for each in (1, 2, 5, 10, 20) if last <= 8 * each * power)
    return range(0, last + 1, step)


def _series(name: str, dots: Sequence[Dot]) -> Series:
    points = " ".join(f"{dot.x:.1f},{dot.y:.1f}" for dot in dots)
    return Series(name, tuple(dot for dot in dots if dot.text), points)


def _summary(name: str, series: Sequence[Sample]) -> str:
    worst = max(series, key=lambda each: (not math.isfinite(each.size), each.size))
    exact = sum(each.size == 0 for each in series)
    return f"{name}: {exact} of {len(series)} exact, the worst: {worst.text}"


def _edges(low: float, high: float) -> Array:
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low / 2, high / 2, _BINS + 1) * 2  # halves cannot overflow
    return edges if (np.diff(edges) > 0).all() else np.array([low, np.nextafter(high, np.inf)])


def _stairs(counts: Array, place: Callable[[float], float]) -> list[Dot]:
    lefts = np.linspace(LEFT, WIDTH - RIGHT, len(counts) + 1)
    dots = []
    for at, count in enumerate(counts.tolist()):
        y = place(float(count))
        dots += [Dot(float(lefts[at]), y, ""), Dot(float(lefts[at + 1]), y, "")]
    return dots


def size_of(found: Difference) -> tuple[str, float]:
    """The unit of a difference's size, ``"quanta"`` or ``"relative"``, and the size in it; of one
    that has NaN, infinity or another shape, infinity."""
    unit, size = ("relative", found.relative) if found.quanta is None else ("quanta", found.quanta)
    return unit, size if found.finite else math.inf
