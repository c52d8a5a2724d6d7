"""Filters that calm landmarks from frame to frame: the one-euro filter and a low pass.

The one-euro filter is that of Casiez, Roussel and Vogel, "1€ Filter" (2012): a low pass whose
cut-off grows with speed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

_FIRST_RATE = 30.0


@dataclass
class OneEuro:
    """A one-euro filter of many values at once.

    Args:
        least_cutoff: in hertz, at rest.
        beta: what is added to it for each unit of speed.
        speed_cutoff: of the speed's own low pass.
    """

    least_cutoff: float
    beta: float
    speed_cutoff: float = 1.0
    _value: Array | None = field(default=None, init=False)
    _raw: Array | None = field(default=None, init=False)
    _speed: Array | None = field(default=None, init=False)
    _time: float | None = field(default=None, init=False)
    _rate: float = field(default=_FIRST_RATE, init=False)

    def __call__(self, values: Array, seconds: float, scale: float = 1.0) -> Array:
        """The filtered values.

        Args:
            seconds: when they were seen; not later than the last: they are returned as they are.
            scale: of the values, so that speeds do not depend on how large things are seen.
        """
        values = np.asarray(values, np.float64)
        if self._time is not None and seconds <= self._time:
            return values
        if self._time is not None:
            self._rate = 1 / (seconds - self._time)
        self._time = seconds
        if self._value is None or self._raw is None or self._speed is None:
            self._value = self._raw = values
            self._speed = np.zeros_like(values)
            return values
        speed = (values - self._raw) * (scale * self._rate)
        self._speed = _mixed(speed, self._speed, self._alpha(self.speed_cutoff))
        cutoff = self.least_cutoff + self.beta * np.abs(self._speed)
        self._value = _mixed(values, self._value, self._alpha(cutoff))
        self._raw = values
        return self._value

    def _alpha(self, cutoff: Any) -> Any:
        return cutoff / (cutoff + self._rate / (2 * np.pi))


@dataclass
class LowPass:
    """A low pass: `alpha` of the new value, the rest of the old one."""

    alpha: float
    _value: Array | None = field(default=None, init=False)

    def __call__(self, values: Array) -> Array:
        """The filtered values."""
        old = values if self._value is None else self._value
        self._value = _mixed(values, old, self.alpha)
        return self._value


def _mixed(new: Array, old: Array, alpha: Any) -> Array:
    mixed: Array = old + alpha * (new - old)
    return mixed
