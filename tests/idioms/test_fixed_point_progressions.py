"""Progressions beside the multiples of a number, against trying all."""

from __future__ import annotations

import random
import time

from tflite_ort.opmap.idioms.fixed_point import Progression


def tried(progression: Progression, modulus: int, low: int, high: int) -> bool:
    start, step, count = progression.start, progression.step, progression.terms
    away = {(start + k * step) % modulus for k in range(count)}
    return any(above % modulus in away for above in range(low, high + 1))


def test_small_ones() -> None:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    for _ in range(5000):
        progression = Progression(rng.randint(-90, 90), rng.randint(0, 90), rng.randint(0, 40))
        modulus = rng.randint(1, 60)
        low, high = rng.randint(-modulus, modulus), rng.randint(0, 2 * modulus)
        told = progression.is_near(modulus, low, high)
        assert told == tried(progression, modulus, low, high), (progression, modulus, low, high)


def test_large_ones_take_no_time() -> None:
    """As many as the edges between results of 16 bits."""
    rng = random.Random(3)
    started = time.process_time()
    for _ in range(200):
        modulus = rng.randrange(2**30, 2**31)
        progression = Progression(rng.randrange(2**40), 2**40, 2**40)
        assert progression.is_near(modulus, 0, 2**10)
    assert time.process_time() - started < 1
    for _ in range(20):
        progression = Progression(rng.randrange(2**50), 1 << rng.randint(32, 55), 2**12)
        modulus, high = rng.randrange(2**30, 2**31), rng.randrange(2**20)
        assert progression.is_near(modulus, 0, high) == tried_large(progression, modulus, high)


def tried_large(progression: Progression, modulus: int, high: int) -> bool:
    start, step, count = progression.start, progression.step, progression.terms
    return any((start + k * step) % modulus <= high for k in range(count))
