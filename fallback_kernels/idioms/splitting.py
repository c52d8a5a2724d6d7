"""Texts split as TensorFlow splits them."""

from __future__ import annotations

from itertools import pairwise


def split_at(text: bytes, separator: bytes, most: int) -> list[bytes]:
    """The parts between separators, which are at most so many; between spaces without one."""
    if not most:
        return [text]
    pieces = text.split(separator or None, most)
    # TensorFlow's rest after the last split at spaces can be empty.
    return pieces if separator or len(pieces) != most else [*pieces, b""]


def split_at_bytes(text: bytes, separators: bytes, skip_empty: bool) -> list[bytes]:
    """The parts between bytes of which each is a separator; all bytes without one."""
    if not separators or not text:
        pieces = [text[i : i + 1] for i in range(len(text))]
    else:
        table = bytes.maketrans(separators, separators[:1] * len(separators))
        ends = [i for i, c in enumerate(text.translate(table)) if c == separators[0]]
        pieces = [text[a + 1 : b] for a, b in pairwise([-1, *ends, len(text)])]
    return [piece for piece in pieces if piece] if skip_empty else pieces
