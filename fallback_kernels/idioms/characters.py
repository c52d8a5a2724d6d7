"""Characters in bytes, and texts split as TensorFlow splits them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt


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


CHARACTERS = 0x110000
# Unicode's property White_Space.
WHITE_SPACE = frozenset(
    {
        *(*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680),
        *(*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
    }
)
_SURROGATES, _NO_CHARACTERS = range(0xD800, 0xE000), range(0xFDD0, 0xFDF0)


def decoded(text: bytes) -> Iterator[tuple[int, int]]:
    """(character, first byte); the character is -1 for a longest piece of an incomplete one."""
    at = 0
    while at < len(text):
        try:
            good, rest = text[at:].decode(), len(text)
        except UnicodeDecodeError as error:
            good, rest = text[at : at + error.start].decode(), at + error.end
        for character in good:
            yield ord(character), at
            at += len(character.encode())
        if at < rest:
            yield -1, at
        at = rest


def text_array(texts: Sequence[bytes]) -> npt.NDArray[np.object_]:
    """A list of texts."""
    array = np.empty(len(texts), np.object_)
    array[:] = texts
    return array


def is_character(code: int) -> bool:
    """Whether Unicode has such a character: half a pair is none, nor are the last two of 65536."""
    inside = 0 <= code < CHARACTERS and code not in _SURROGATES
    return inside and code & 0xFFFE != 0xFFFE and code not in _NO_CHARACTERS
