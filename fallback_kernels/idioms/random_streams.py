"""Streams of TensorFlow's random bits, and the numbers that it makes of them: Philox 4x32."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record
from tflite_ort.fallback_kernels.idioms.counters import philox
from tflite_ort.fallback_kernels.registry import Array
from tflite_ort.schema.arithmetic.generators import (
    HIGH_MANTISSA,
    LEAST,
    MANTISSA,
    MANTISSAS,
    PHILOX_LANES,
    SCRAMBLED,
    SPARE,
    TRUNCATED,
)

Words = npt.NDArray[np.uint32]

_ALL = 2**64


@record
class Stream:
    """Random words from a key of 64 bits and a counter of 128, in halves."""

    key: int
    low: int
    high: int

    @classmethod
    def of_seeds(cls, seed: int, other: int) -> Stream:
        """That of a stateful operator; two zeros give another one each time."""
        if not seed and not other:
            seed, other = secrets.randbits(64), secrets.randbits(64)
        return cls(seed % _ALL, 0, other % _ALL)

    @classmethod
    def scrambled(cls, seed: Array) -> Stream:
        """That of a stateless operator with two seeds."""
        first, second = (int(each) % _ALL for each in seed.reshape(-1))
        a, b, c, d = (int(each) for each in cls(SCRAMBLED, first, second).words(PHILOX_LANES))
        return cls(b << 32 | a, 0, d << 32 | c)

    def after(self, blocks: int) -> Stream:
        """The stream from so many blocks on."""
        place = (self.high << 64 | self.low) + blocks
        return Stream(self.key, place % _ALL, (place >> 64) % _ALL)

    def words(self, count: int) -> Words:
        """The first `count` words."""
        return self.blocks(np.arange(-(-count // PHILOX_LANES))).reshape(-1)[:count]

    def blocks(self, numbers: npt.NDArray[np.int64]) -> Words:
        """The blocks of these numbers, [N, 4]."""
        low = np.uint64(self.low) + numbers.astype(np.uint64)
        high = np.uint64(self.high) + (low < np.uint64(self.low)).astype(np.uint64)
        return philox(self.key, low, high)


def _unit(words: Words, bits: int) -> npt.NDArray[np.float32]:
    """In [0, 1): the low bits as a fraction."""
    return (words & np.uint32(2**bits - 1)).astype(np.float32) * np.float32(2.0**-bits)


def unit_double(words: Words) -> npt.NDArray[np.float64]:
    """In [0, 1), of pairs of words, the high one first."""
    high = words[..., ::2].astype(np.uint64) & np.uint64((1 << HIGH_MANTISSA) - 1)
    mantissa = high << np.uint64(32) | words[..., 1::2].astype(np.uint64)
    return mantissa.astype(np.float64) * 2.0**-52


def uniform(stream: Stream, count: int, dtype: np.dtype[Any]) -> Array:
    """Uniform in [0, 1)."""
    if dtype == np.float64:
        return unit_double(stream.words(2 * count))
    return _unit(stream.words(count), MANTISSAS[dtype.name.upper()]).astype(dtype)


def _pairs(words: Words, dtype: np.dtype[Any]) -> Array:
    """Normal numbers by Box and Muller, as many as words, or half of them if of 64 bits."""
    units: Array
    turn: Array
    if dtype == np.float64:
        units = unit_double(words)
        turn = 2 * np.pi * units[..., 1::2]
    else:
        units = _unit(words, MANTISSA)
        turn = (2 * np.pi * units[..., 1::2].astype(np.float64)).astype(np.float32)
    least = units.dtype.type(LEAST)
    radius = np.sqrt(units.dtype.type(-2) * np.log(np.maximum(units[..., ::2], least)))
    pairs = np.stack([np.sin(turn) * radius, np.cos(turn) * radius], axis=-1)
    return pairs.reshape(*units.shape)


def normal(stream: Stream, count: int, dtype: np.dtype[Any]) -> Array:
    """Of the standard normal distribution."""
    even = count + count % 2
    words = stream.words(2 * even if dtype == np.float64 else even)
    return _pairs(words, dtype)[:count].astype(dtype)


def truncated_normal(stream: Stream, count: int, dtype: np.dtype[Any]) -> Array:
    """As `normal`, drawn again where they are 2 and more from 0; each group of numbers has blocks
    of its own."""
    size = 2 if dtype == np.float64 else 4
    groups, taken = -(-count // size), 4
    starts = np.arange(groups)[:, None] * (size * SPARE // PHILOX_LANES)
    while True:
        numbers = (starts + np.arange(taken)).reshape(-1)
        drawn = _pairs(stream.blocks(numbers).reshape(groups, taken * PHILOX_LANES), dtype)
        inside = np.abs(drawn) < TRUNCATED
        if (inside.sum(axis=1) >= size).all():
            break
        taken *= 2
    order = np.argsort(~inside, axis=1, kind="stable")[:, :size]
    return np.take_along_axis(drawn, order, axis=1).reshape(-1)[:count].astype(dtype)


def full_integers(stream: Stream, count: int, dtype: np.dtype[Any]) -> Array:
    """All bits are random."""
    if dtype.itemsize == 4:
        return stream.words(count).view(dtype)
    words = stream.words(2 * count).astype(np.uint64)
    return (words[::2] | words[1::2] << np.uint64(32)).view(dtype)


def integers(stream: Stream, count: int, low: Array, high: Array) -> Array:
    """Uniform from `low` on, and below `high`; a remainder of all bits."""
    unsigned = np.dtype(f"u{low.dtype.itemsize}")
    first, end = (int(each.item()) % 2 ** (8 * unsigned.itemsize) for each in (low, high))
    span = np.array((end - first) % 2 ** (8 * unsigned.itemsize), unsigned)
    drawn = full_integers(stream, count, unsigned) % span
    found: Array = (drawn + np.array(first, unsigned)).view(low.dtype)
    return found


class Draws:
    """Numbers of 64 bits drawn one by one, of a block the last first, as rejections do."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.at = stream, 0
        self._uniforms: list[float] = []
        self._normals: list[float] = []

    def _block(self) -> Words:
        self.at += 1
        words: Words = self.stream.blocks(np.array([self.at - 1]))[0]
        return words

    def uniform(self) -> float:
        """In [0, 1)."""
        if not self._uniforms:
            self._uniforms = unit_double(self._block()).tolist()
        return self._uniforms.pop()

    def normal(self) -> float:
        """Of the standard normal distribution."""
        if not self._normals:
            self._normals = _pairs(self._block(), np.dtype(np.float64)).tolist()
        return self._normals.pop()
