"""FarmHash's 64-bit fingerprint, by which TFLite hashes, of byte strings of one length."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.records import record

Word = npt.NDArray[np.uint64]  # one for each string; sums and products wrap
Pair = tuple[Word, Word]

_K0, _K1, _K2 = (
    np.uint64(prime) for prime in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F)
)
_BLOCK = 64
_SEED = 81


@record
class _Strings:
    """Bytes [N, length], and those of them that are in whole words: [length // 8, N]."""

    bytes: npt.NDArray[np.uint8]
    words: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, strings: npt.NDArray[np.uint8]) -> _Strings:
        whole = np.ascontiguousarray(strings[:, : strings.shape[1] // 8 * 8]).view("<u8")
        return cls(strings, np.ascontiguousarray(whole.T).astype(np.uint64, copy=False))

    @property
    def length(self) -> int:
        return int(self.bytes.shape[1])

    @property
    def factor(self) -> np.uint64:
        """The odd multiplier for short strings, another for every length."""
        return np.uint64((int(_K2) + 2 * self.length) % 2**64)

    def word(self, start: int, size: int = 8) -> Word:
        """The little-endian number of `size` bytes from `start`; negative counts from the end."""
        first = start if start >= 0 else self.length + start
        if size == first % 8 + 8:
            word: Word = self.words[first // 8]
            return word
        part = np.ascontiguousarray(self.bytes[:, first : first + size])
        return part.view(f"<u{size}")[:, 0].astype(np.uint64)


def fingerprint(strings: npt.NDArray[np.uint8]) -> Word:
    """The fingerprints [N] of strings [N, length]."""
    s = _Strings.of(strings)
    if s.length <= 16:
        return _to_16(s)
    if s.length <= 32:
        return _to_32(s)
    return _to_64(s) if s.length <= _BLOCK else _longer(s)


def _rotated(word: Word, bits: int) -> Word:
    return word >> np.uint64(bits) | word << np.uint64(64 - bits)


def _mixed(word: Word) -> Word:
    return word ^ word >> np.uint64(47)


def _joined(one: Word, other: Word, factor: Any) -> Word:
    first = _mixed((one ^ other) * factor)
    joined: Word = _mixed((other ^ first) * factor) * factor
    return joined


def _to_16(s: _Strings) -> Word:
    if s.length >= 8:
        a, b = s.word(0) + _K2, s.word(-8)
        c, d = _rotated(b, 37) * s.factor + a, (_rotated(a, 25) + b) * s.factor
        return _joined(c, d, s.factor)
    length = np.uint64(s.length)
    if s.length >= 4:
        return _joined(length + (s.word(0, 4) << np.uint64(3)), s.word(-4, 4), s.factor)
    if s.length == 0:
        return np.full(len(s.bytes), _K2)
    y = s.word(0, 1) + (s.word(s.length // 2, 1) << np.uint64(8))
    z = length + (s.word(-1, 1) << np.uint64(2))
    short: Word = _mixed(y * _K2 ^ z * _K0) * _K2
    return short


def _to_32(s: _Strings) -> Word:
    a, b, c, d = s.word(0) * _K1, s.word(8), s.word(-8) * s.factor, s.word(-16) * _K2
    one = _rotated(a + b, 43) + _rotated(c, 30) + d
    return _joined(one, a + _rotated(b + _K2, 18) + c, s.factor)


def _to_64(s: _Strings) -> Word:
    a, b, c, d = s.word(0) * _K2, s.word(8), s.word(-8) * s.factor, s.word(-16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _joined(y, a + _rotated(b + _K2, 18) + c, s.factor)
    e, f = s.word(16) * s.factor, s.word(24)
    g, h = (y + s.word(-32)) * s.factor, (z + s.word(-24)) * s.factor
    one = _rotated(e + f, 43) + _rotated(g, 30) + h
    return _joined(one, e + _rotated(f + a, 18) + g, s.factor)


@record(frozen=False)
class _State:
    """The state of 56 bytes, into which blocks of 64 bytes are mixed."""

    x: Word
    y: Word
    z: Word
    v: Pair
    w: Pair

    def stir(self, s: _Strings, start: int, factor: Any, weight: int = 1) -> None:
        (v0, v1), (w0, w1), times = self.v, self.w, np.uint64(weight)
        x = _rotated(self.x + self.y + v0 + s.word(start + 8), 37) * factor ^ w1 * times
        y = _rotated(self.y + v1 + s.word(start + 48), 42) * factor
        y = y + v0 * times + s.word(start + 40)
        z = _rotated(self.z + w0, 33) * factor
        self.v = _weakly_hashed(s, start, v1 * factor, x + w0)
        self.w = _weakly_hashed(s, start + 32, z + w1, y + s.word(start + 16))
        self.x, self.y, self.z = z, y, x


def _weakly_hashed(s: _Strings, start: int, a: Word, b: Word) -> Pair:
    first, second, third, last = (s.word(start + 8 * i) for i in range(4))
    a = a + first
    b = _rotated(b + a + last, 21)
    total = a + second + third
    return total + last, b + _rotated(total, 44) + a


def _longer(s: _Strings) -> Word:
    zero = np.zeros(len(s.bytes), np.uint64)
    y = zero + np.uint64((_SEED * int(_K1) + 113) % 2**64)
    z: Word = _mixed(y * _K2 + np.uint64(113)) * _K2
    x = np.uint64(_SEED * int(_K2) % 2**64) + s.word(0)
    state = _State(x, y, z, (zero, zero), (zero, zero))
    end = (s.length - 1) // _BLOCK * _BLOCK
    for start in range(0, end, _BLOCK):
        state.stir(s, start, _K1)
    factor = _K1 + ((state.z & np.uint64(0xFF)) << np.uint64(1))
    w0 = state.w[0] + np.uint64((s.length - 1) % _BLOCK)
    v0 = state.v[0] + w0
    state.v, state.w = (v0, state.v[1]), (w0 + v0, state.w[1])
    state.stir(s, s.length - _BLOCK, factor, weight=9)
    one = _joined(state.v[0], state.w[0], factor) + _mixed(state.y) * _K0 + state.z
    return _joined(one, _joined(state.v[1], state.w[1], factor) + state.x, factor)
