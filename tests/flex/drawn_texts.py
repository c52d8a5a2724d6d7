"""Texts of all kinds, drawn: several scripts, spaces, marks, and bytes that are not UTF-8."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.flex.cases import Array, texts

PIECES = (
    *("a", "ab", "abc", "Hello", "world", "unaffable", "x", "Z", "9", "42"),
    *("\u00e4", "\u00c9", "e\u0301", "\u00df", "\u01c5", "\ufb01", "\u1e9e", "\u0130"),
    *("\u4e2d", "\u6587", "\u3042", "\u30ab", "\uff76\uff9e", "\ud55c", "\u1112\u1161\u11ab"),
    *(
        "\u0434\u043e\u043c",
        "\u05d0",
        "\u0639",
        "\u0915\u094d",
        "\u0e01",
        "\U0001f600",
        "\u03a3\u03c2",
    ),
    *(" ", "  ", "\t", "\n", "\u00a0", "\u3000", "\u2003", "\u2028", "\u200b", "\u0085"),
    *(".", ",", "!", "?", "...", "\u2026", "'", '"', "\u201c", "(", ")", "-", "##", "$", "\u060c"),
    *("\u00ad", "\u034f", "\ufeff", "\u0345", "\u00bd", "\u2460", "\u212b", "\0", "\u1f82"),
)
BROKEN = (b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\x80", b"\xc0\xaf")


def drawn_text(draw: random.Random, most: int, *, broken: bool = False, without: str = "") -> bytes:
    """A text of up to so many pieces.

    Args:
        broken: some of the bytes are not UTF-8.
        without: characters that it does not have.
    """
    pieces = [piece for piece in PIECES if not set(piece) & set(without)]
    found = [draw.choice(pieces).encode() for _ in range(draw.randrange(most + 1))]
    if broken and draw.random() < 0.5:
        found.insert(draw.randrange(len(found) + 1), draw.choice(BROKEN))
    return b"".join(found)


def drawn_texts(seed: int, count: int, most: int = 12, **options: bool | str) -> Array:
    """A list of texts."""
    draw = random.Random(seed)
    return texts(*(drawn_text(draw, most, **options) for _ in range(count)))  # type: ignore[arg-type]  # by name


def characters(words: Sequence[bytes]) -> tuple[list[int], list[int]]:
    """The characters of all texts, and the splits of texts."""
    rows = [[*map(ord, word.decode(errors="replace"))] for word in words]
    splits = [0]
    for row in rows:
        splits.append(splits[-1] + len(row))
    return [code for row in rows for code in row], splits
