"""Counter-based random bits: Philox 4x32 and Threefry 2x32 (Salmon et al., SC 2011)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.uint32]

_LOW = 0xFFFFFFFF
_PHILOX_FACTORS = (0xD2511F53, 0xCD9E8D57)
_PHILOX_STEPS = (0x9E3779B9, 0xBB67AE85)  # what each round adds to the two halves of the key
_PHILOX_ROUNDS = 10
_THREEFRY_PARITY = 0x1BD11BDA
_THREEFRY_TURNS = ((13, 15, 26, 6), (17, 29, 16, 24))
_THREEFRY_ROUNDS = 5  # of four turns


def philox(key: int, start: int, count: int) -> Words:
    """[count, 4]: the blocks of counters (128 bits) from `start` up, for a 64-bit key."""
    a, b, c, d = (_word(start, count, i) for i in range(4))
    key0, key1 = key & _LOW, key >> 32
    for _ in range(_PHILOX_ROUNDS):
        product0 = a * np.uint64(_PHILOX_FACTORS[0])
        product1 = c * np.uint64(_PHILOX_FACTORS[1])
        a, b, c, d = (
            _high(product1) ^ b ^ np.uint64(key0),
            _low(product1),
            _high(product0) ^ d ^ np.uint64(key1),
            _low(product0),
        )
        key0 = (key0 + _PHILOX_STEPS[0]) & _LOW
        key1 = (key1 + _PHILOX_STEPS[1]) & _LOW
    return np.stack([a, b, c, d], axis=-1).astype(np.uint32)


def threefry(key: int, start: int, count: int) -> Words:
    """[count, 2]: the blocks of counters (64 bits) from `start` up, for a 64-bit key."""
    keys = [key & _LOW, key >> 32]
    keys.append(keys[0] ^ keys[1] ^ _THREEFRY_PARITY)
    a, b = (_low(_word(start, count, i) + np.uint64(keys[i])) for i in range(2))
    for number in range(_THREEFRY_ROUNDS):
        for turn in _THREEFRY_TURNS[number % 2]:
            a = _low(a + b)
            b = (_low(b << np.uint64(turn)) | b >> np.uint64(32 - turn)) ^ a
        a = _low(a + np.uint64(keys[(number + 1) % 3]))
        b = _low(b + np.uint64(keys[(number + 2) % 3] + number + 1))
    return np.stack([a, b], axis=-1).astype(np.uint32)


def _word(start: int, count: int, index: int) -> npt.NDArray[np.uint64]:
    """32-bit word `index` of the counters start, start + 1, ..."""
    low = start & (1 << 64) - 1
    counters = np.arange(count, dtype=np.uint64) + np.uint64(low)
    if index < 2:
        return _low(counters) if index == 0 else _high(counters)
    carried = np.uint64(start >> 64) + (counters < np.uint64(low))
    return _low(carried) if index == 2 else _high(carried)


def _low(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return words & np.uint64(_LOW)


def _high(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return words >> np.uint64(32)
