"""Changes of a file that know nothing of its structure."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.fuzz.edges import WORDS

Content = bytearray


def flip(draw: random.Random, data: Content) -> None:
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)


def byte(draw: random.Random, data: Content) -> None:
    data[draw.randrange(len(data))] = draw.choice((0, 1, 2, 4, 127, 128, 255, draw.randrange(256)))


def cut(draw: random.Random, data: Content) -> None:
    del data[draw.randrange(len(data)) :]


def remove(draw: random.Random, data: Content) -> None:
    at = draw.randrange(len(data))
    del data[at : at + draw.choice((1, 2, 4, 8, 16, 64))]


def insert(draw: random.Random, data: Content) -> None:
    at = draw.randrange(len(data))
    data[at:at] = draw.randbytes(draw.choice((1, 2, 4, 8, 16)))


def repeat(draw: random.Random, data: Content) -> None:
    start, at = draw.randrange(len(data)), draw.randrange(len(data))
    piece = data[start : start + draw.choice((1, 4, 16, 64))]
    data[at : at + len(piece)] = piece


def noise(draw: random.Random, data: Content) -> None:
    at, size = draw.randrange(len(data)), draw.choice((2, 4, 8, 32))
    data[at : at + size] = draw.randbytes(len(data[at : at + size]))


def _aligned(draw: random.Random, data: Content) -> int:
    return 4 * draw.randrange(max(1, len(data) // 4))


def word(draw: random.Random, data: Content) -> None:
    at = _aligned(draw, data)
    data[at : at + 4] = (draw.choice(WORDS) & 0xFFFFFFFF).to_bytes(4, "little")


def step(draw: random.Random, data: Content) -> None:
    at = _aligned(draw, data)
    old = int.from_bytes(data[at : at + 4], "little")
    moved = old + draw.choice((-8, -4, -2, -1, 1, 2, 4, 8))
    data[at : at + 4] = (moved & 0xFFFFFFFF).to_bytes(4, "little")


def swap(draw: random.Random, data: Content) -> None:
    a, b = _aligned(draw, data), _aligned(draw, data)
    if max(a, b) + 4 <= len(data):
        data[a : a + 4], data[b : b + 4] = data[b : b + 4], data[a : a + 4]


def copy(draw: random.Random, data: Content) -> None:
    a, b = _aligned(draw, data), _aligned(draw, data)
    if max(a, b) + 4 <= len(data):
        data[a : a + 4] = data[b : b + 4]


Change = Callable[[random.Random, Content], None]

BYTES: tuple[Change, ...] = (flip, flip, byte, byte, byte, cut, remove, insert, repeat, noise)
BY_WORDS: tuple[Change, ...] = (word, word, word, step, step, swap, copy)


def damaged(
    draw: random.Random, content: bytes, changes: tuple[Change, ...]
) -> tuple[bytes, list[str]]:
    """`content` after one to four changes, and their names."""
    data, names = bytearray(content), []
    for _ in range(draw.choice((1, 1, 2, 2, 3, 4))):
        if data:
            change = draw.choice(changes)
            change(draw, data)
            names.append(change.__name__)
    return bytes(data), names
