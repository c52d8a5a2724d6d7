"""Counter-based random bits: Philox 4x32 and Threefry 2x32 (Salmon et al., SC 2011)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.arithmetic.generators import (
    PHILOX_FACTORS,
    PHILOX_ROUNDS,
    PHILOX_STEPS,
    THREEFRY_PARITY,
    THREEFRY_ROUNDS,
    THREEFRY_TURNS,
)

Words = npt.NDArray[np.uint32]
Counters = npt.NDArray[np.uint64]

_LOW = 0xFFFFFFFF
_AT_A_TIME = 1 << 14


def philox(key: int, low: Counters, high: Counters) -> Words:
    """Random words [N, 4]: a block for every counter (128 bits, in halves), by a 64-bit key."""
    words = np.empty((len(low), 4), np.uint32)
    for start in range(0, len(low), _AT_A_TIME):  # few enough to stay in the processor's cache
        part = slice(start, start + _AT_A_TIME)
        words[part] = _philox(key, low[part], high[part])
    return words


def _philox(key: int, low: Counters, high: Counters) -> Counters:
    a, b, c, d = _low(low), _high(low), _low(high), _high(high)
    key0, key1 = key & _LOW, key >> 32
    for _ in range(PHILOX_ROUNDS):
        product0 = a * np.uint64(PHILOX_FACTORS[0])
        product1 = c * np.uint64(PHILOX_FACTORS[1])
        a, b, c, d = (
            _high(product1) ^ b ^ np.uint64(key0),
            _low(product1),
            _high(product0) ^ d ^ np.uint64(key1),
            _low(product0),
        )
        key0 = (key0 + PHILOX_STEPS[0]) & _LOW
        key1 = (key1 + PHILOX_STEPS[1]) & _LOW
    return np.stack([a, b, c, d], axis=-1)


def threefry(key: int, counters: Counters) -> Words:
    """Random words [N, 2]: a block for every counter (64 bits), by a 64-bit key."""
    keys = [key & _LOW, key >> 32]
    keys.append(keys[0] ^ keys[1] ^ THREEFRY_PARITY)
    a, b = _low(_low(counters) + np.uint64(keys[0])), _low(_high(counters) + np.uint64(keys[1]))
    for number in range(THREEFRY_ROUNDS):
        for turn in THREEFRY_TURNS[number % 2]:
            a = _low(a + b)
            b = (_low(b << np.uint64(turn)) | b >> np.uint64(32 - turn)) ^ a
        a = _low(a + np.uint64(keys[(number + 1) % 3]))
        b = _low(b + np.uint64(keys[(number + 2) % 3] + number + 1))
    return np.stack([a, b], axis=-1).astype(np.uint32)


def _low(words: Counters) -> Counters:
    return words & np.uint64(_LOW)


def _high(words: Counters) -> Counters:
    return words >> np.uint64(32)
