"""Numbers at which programs break."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.fields import FLOAT32, Number

Array = npt.NDArray[Any]

NAN, INF = float("nan"), float("inf")
FLOATS = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 0.1, 2.0, 6.0, 1e-3, 1 / 3, 255.0, 256.0, 65536.0),
    *(1e-38, 1e-40, 1e-45, 2.0**-16, 2.0**-31, 3.0e38, -3.0e38, 1e10, 1e20, -1e20),
    *(NAN, INF, -INF),
)
SMALL = (0, 1, 2, 3, 4, 5, 7, 8, 16, -1, -2, -3)
WORDS = (
    *SMALL,
    *(100, 127, 128, 129, 255, 256, 257, 1000, 4096, 32767, 32768, 65535, 65536, 1 << 24),
    *(2**31 - 1, -(2**31), 2**31 - 2, 2**30, 3 * 2**30),
)
LONG = (*WORDS, 2**32 - 1, 2**32, 2**32 + 7, 2**63 - 1, -(2**63), 2**53 + 1)
DIMENSIONS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 0)
HUGE = (-1, -2, 17, 33, 100, 255, 1000, 4097, 65536, 1 << 20, 2**31 - 1, -(2**31))
TEXTS = (
    *("", "x", "main", "serving_default", "a/b", "..", "../x", "/", "/etc/hosts", "con"),
    *("a" * 300, "\n", "\x1b[31m", "a\x00b", "\u202e", "ä", "\ufffd", "%s", "{0}", "tflite.state"),
)
# Scales: none, odd ones, powers of two, those that overflow a multiplier.
SCALES = (
    *(0.0, -0.5, NAN, INF, 1e-38, 1e-30, 1e-9, 2.0**-31, 2.0**-16, 2.0**-15, 1 / 32768, 1 / 256),
    *(1 / 128, 1e-4, 1e-3, 0.0039, 0.01, 0.0235, 0.03, 0.1, 1 / 3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.7),
    *(10.0, 128.0, 1e3, 1e6, 1e30, 3e38),
)
ZERO_POINTS = (0, 0, 1, -1, 3, -5, 100, 121, 127, 128, -127, -128, 255, 256, -129, 32767, -32768)
FAR_ZERO_POINTS = (2**31 - 1, -(2**31), 2**31, 2**63 - 1, -(2**63))


def integer(draw: random.Random, number: Number) -> int:
    """An edge of an integer type, inside its range."""
    bits = 8 * number.size
    low, high = (0, 2**bits - 1) if number.code.isupper() else (-(2 ** (bits - 1)), 0)
    if not number.code.isupper():
        high = 2 ** (bits - 1) - 1
    if number.code == "?":
        low, high = 0, 1
    value = draw.choice(SMALL if draw.random() < 0.6 else LONG)
    return value if low <= value <= high else draw.choice((low, high, abs(value) % (high + 1)))


def value(draw: random.Random, number: Number) -> float | int | bool:
    """An edge of a type of the file format."""
    if number is FLOAT32:
        return draw.choice(FLOATS)
    return bool(draw.getrandbits(1)) if number.code == "?" else integer(draw, number)


def near(draw: random.Random, old: float, number: Number) -> float | int | bool:
    """A neighbour of `old` within the type, or an edge."""
    if isinstance(old, bool) or number.code == "?":
        return not old
    if draw.random() < 0.5:
        return value(draw, number)
    if number is FLOAT32:
        return float(np.float32(old * draw.choice((-1, 0.5, 2, 1.1, 1 + 1e-6, 1e3, 1e-3))))
    moved = old + draw.choice((-2, -1, 1, 2))
    bits = 8 * number.size
    low = 0 if number.code.isupper() else -(2 ** (bits - 1))
    return int(moved) if low <= moved < low + 2**bits else value(draw, number)


def dimension(draw: random.Random) -> int:
    """A size: most are small, few are none."""
    return draw.choice(DIMENSIONS if draw.random() < 0.93 else HUGE)
