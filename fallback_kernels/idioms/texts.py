"""Texts as TensorFlow reads, splits and writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
# By the bytes of a float: how many digits are tried first, and how many tell it from all others.
_DIGITS = {4: (6, 9), 8: (15, 17)}
_ESCAPES = {0x0A: "\\n", 0x0D: "\\r", 0x09: "\\t", 0x22: '\\"', 0x27: "\\'", 0x5C: "\\\\"}


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


def summary(array: Array | np.generic | bytes, most: int, depth: int = 1) -> str:
    """The text of an array, such as ``[[1 2 ... 8 9] ... [3 4 ... 5 6]]``.

    Args:
        most: how many elements of a longer dimension are written at each end; all of them if it is
            negative.
        depth: how many dimensions there are up to the first of `array`.
    """
    if not isinstance(array, np.ndarray) or not array.ndim:
        return _element(array[()] if isinstance(array, np.ndarray) else array)
    size = len(array)
    ends = min(size if most < 0 else most, size, array.size)
    parts = [summary(array[place], most, depth + 1) for place in range(ends)]
    parts += ["..."] if size > 2 * ends else []
    parts += [
        summary(array[place], most, depth + 1) for place in range(max(size - ends, ends), size)
    ]
    inner = array.ndim - 1
    between = "\n" * inner + " " * depth if inner else " "
    first = between if size and not ends else ""  # before the dots, whatever comes before them
    return f"[{first}{between.join(parts)}]"


def _element(value: Any) -> str:
    if isinstance(value, bytes):
        return f'"{"".join(map(_escaped, value))}"'
    if isinstance(value, np.bool_):
        return str(int(value))
    if isinstance(value, np.floating):
        return _float(value)
    if isinstance(value, np.complexfloating):
        return "?"  # as TensorFlow has it
    return str(int(value))


def _float(value: Any) -> str:
    value = np.float32(value) if value.dtype.itemsize == 2 else value
    few, many = _DIGITS[value.dtype.itemsize]
    short = f"{float(value):.{few}g}"
    return (
        short if value.dtype.type(short) == value or np.isnan(value) else f"{float(value):.{many}g}"
    )


def _escaped(byte: int) -> str:
    if byte in _ESCAPES:
        return _ESCAPES[byte]
    return f"\\{byte:03o}" if byte < 0x20 or byte == 0x7F else chr(byte)
