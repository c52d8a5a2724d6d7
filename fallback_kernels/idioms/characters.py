"""Characters in bytes, and which numbers are characters."""

from __future__ import annotations

from collections.abc import Iterator

CHARACTERS = 0x110000
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


def is_character(code: int) -> bool:
    """Whether Unicode has such a character: half a pair is none, nor are the last two of 65536."""
    inside = 0 <= code < CHARACTERS and code not in _SURROGATES
    return inside and code & 0xFFFE != 0xFFFE and code not in _NO_CHARACTERS
