"""What a model is fed: drawn from its input details, the same for LiteRT and for the library."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from enum import IntFlag
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Detail = dict[str, Any]
Shape = tuple[int, ...]
Shapes = Sequence[tuple[int, Shape]]

# More elements than this are not drawn: a part of them is repeated.
_DRAWN = 1 << 12
# No input of more elements is made.
MOST = 1 << 25
_SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, 3.4e38, -3.4e38, 1e10, 0.5, 1.5, 2.5, -0.5]
)
TEXTS = (b"", b"a", b"text", b"\x00", b"\xff\xfe", b"a b c", b"12", b"x" * 100)


class Tame(IntFlag):
    """What a file is not fed."""

    NONE = 0
    FINITE = 1  # no NaN and no infinity
    BOUNDED = 2  # numbers of a usual size only
    AWAY = 4  # no code of next to 0
    NUDGED = 8  # each float next to what it was
    NO_LOWEST = 16  # no int8 of -128
    SMALL = 32  # integers of 1 and 3 only
    FULL = 64  # no input without elements
    POSITIVE = 128  # no float below 0


class TooLarge(Exception):
    """A model asks for more input than is worth making."""


def resized(
    details: Sequence[Detail], seed: int, wanted: Shapes = (), tame: int = 0
) -> dict[int, Shape]:
    """New shapes by tensor index: those that are wanted, else drawn ones for one file in twelve.

    Args:
        wanted: pairs of an input's position and its shape.
    """
    if wanted:
        return {details[position]["index"]: shape for position, shape in wanted}
    rng = np.random.default_rng((seed, 1))
    if rng.random() > 1 / 12:
        return {}
    shapes = {}
    for detail in details:
        shape = [int(size) for size in detail["shape"]]
        if shape and rng.random() < 0.7:
            size = max(int(rng.choice((1, 2, 3, 5, 0))), int(bool(tame & Tame.FULL)))
            shape[int(rng.integers(len(shape)))] = size
            shapes[detail["index"]] = tuple(shape)
    return shapes


def feed(detail: Detail, seed: int, tame: int = 0) -> Array:
    """Values of an input: odd ones in a part of the files.

    Args:
        tame: what is not among them, see `Tame`.
    """
    name = zlib.crc32(str(detail["index"]).encode())
    rng = np.random.default_rng((seed, name))
    shape = tuple(int(size) for size in detail["shape"])
    count = int(np.prod(shape, dtype=np.int64))
    if count > MOST:
        raise TooLarge
    dtype = np.dtype(detail["dtype"])
    values = _tamed(_values(rng, dtype, min(count, _DRAWN), detail), detail, tame)
    return np.resize(values, shape) if count else np.zeros(shape, dtype)


def _values(rng: np.random.Generator, dtype: np.dtype[Any], count: int, detail: Detail) -> Array:
    count = max(count, 1)
    odd = rng.random()
    if dtype.kind in "OSU":
        texts = np.empty(count, np.object_)
        texts[:] = [TEXTS[int(each)] for each in rng.integers(0, len(TEXTS), count)]
        return texts
    if dtype.kind == "b":
        return rng.integers(0, 2, count).astype(np.bool_)
    if dtype.kind in "iu":
        return _integers(rng, dtype, count, odd, bool(detail["quantization"][0]))
    values = rng.uniform(-4, 4, count)
    if odd < 0.1:
        values = np.where(rng.random(count) < 0.3, rng.choice(_SPECIAL, count), values)
    with np.errstate(all="ignore"):
        return values.astype(dtype)


def _integers(
    rng: np.random.Generator, dtype: np.dtype[Any], count: int, odd: float, quantised: bool
) -> Array:
    info = np.iinfo(dtype)
    if quantised or (dtype.itemsize == 1 and odd < 0.7):
        return rng.integers(info.min, int(info.max) + 1, count, dtype)
    if odd < 0.1:
        edges = np.array([info.min, info.max, info.max - 1, info.min + 1, 0, 1], dtype)
        return rng.choice(edges, count)
    low = -4 if odd < 0.4 and info.min else 0
    return rng.integers(low, 5, count).astype(dtype)


def _tamed(values: Array, detail: Detail, tame: int) -> Array:
    if values.dtype.kind in "fcV" and tame & (Tame.FINITE | Tame.BOUNDED | Tame.POSITIVE):
        values = np.where(np.isfinite(values), values, values.dtype.type(1))
    if values.dtype.kind == "f":
        if tame & Tame.BOUNDED:
            size = np.clip(np.abs(values), values.dtype.type(1e-3), values.dtype.type(4))
            values = np.where(np.signbit(values), -size, size)
        if tame & Tame.POSITIVE:
            values = np.abs(values)
        return values * values.dtype.type(1 + 2**-22) if tame & Tame.NUDGED else values
    return _tame_integers(values, detail, tame) if values.dtype.kind in "iu" else values


def _tame_integers(values: Array, detail: Detail, tame: int) -> Array:
    scale, zero = detail["quantization"]
    if tame & Tame.SMALL:
        return values & values.dtype.type(3) | values.dtype.type(1)
    if tame & Tame.BOUNDED and (values.dtype.itemsize > 2 or not scale):
        return values & values.dtype.type(3)
    if tame & Tame.AWAY and values.dtype.itemsize <= 2:
        values = away(values, int(zero))
    if tame & Tame.NO_LOWEST and values.dtype == np.int8:
        values = np.maximum(values, np.int8(-127))
    return values


def away(values: Array, zero: int) -> Array:
    """Codes of 8 and 16 bits that are not next to the zero point."""
    info, near = np.iinfo(values.dtype), 8 if values.dtype.itemsize == 1 else 256
    wide = values.astype(np.int64)
    moved = np.where(np.abs(wide - zero) < near, zero + np.where(wide < zero, -near, near), wide)
    return np.clip(moved, info.min, info.max).astype(values.dtype)
