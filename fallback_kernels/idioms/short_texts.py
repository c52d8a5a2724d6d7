"""Texts as MediaPipe's NGramHash reads them, by characters, and MurmurHash64A."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.letters import is_letter, lowered

Word = npt.NDArray[np.uint64]  # sums and products wrap

_BEFORE, _AFTER, _OTHER = b"^", b"$", b" "
_BAD = 0xFFFD
_FACTOR, _SHIFT = np.uint64(0xC6A4A7935BD1E995), np.uint64(47)


def _character(text: bytes, at: int) -> tuple[int, int]:
    """A character and its bytes; no bytes for one that is cut off at the end of the text, and one
    for what is no character."""
    lead = text[at]
    if lead < 0x80:
        return lead, 1
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    part = text[at : at + size]
    if any(byte & 0xC0 != 0x80 for byte in part[1:]):
        return _BAD, 1
    if len(part) < size:
        return _BAD, 0
    try:
        return ord(part.decode("utf-8", "surrogatepass")), size
    except UnicodeDecodeError:
        return _BAD, 1


def _characters(text: bytes, lower: bool) -> Iterator[tuple[int, bytes]]:
    """The characters of a text, each with its bytes.

    Small letters may have more bytes than the letters of the text, or fewer. MediaPipe looks at as
    many bytes as the text has: one that is cut off ends them, and zeros follow the last one.
    """
    at, left = 0, len(text)
    while left > 0:
        code, size = _character(text, at) if at < len(text) else (0, 1)
        made = text[at : at + size] if at < len(text) else b"\0"
        if lower and size and at < len(text):
            code = lowered(code)
            made = chr(code).encode("utf-8", "surrogatepass")
        if not size or len(made) > left:
            return
        yield code, made
        at, left = at + size, left - len(made)


def pieces(text: bytes, lower: bool, most: int) -> list[bytes]:
    """A mark, the letters of a text with a space for every other character, and another mark: at
    most so many, but both marks."""
    found = [_BEFORE]
    if most > 2:
        for code, made in _characters(text, lower):
            found.append(made if is_letter(code) else _OTHER)
            if len(found) + 1 >= most:
                break
    return [*found, _AFTER]


def hashes(strings: list[bytes], seed: int) -> Word:
    """MurmurHash64A of each string."""
    sizes = np.array([len(each) for each in strings], np.uint64)
    width = (int(sizes.max(initial=0)) // 8 + 1) * 8
    packed = b"".join(each.ljust(width, b"\0") for each in strings)
    words = np.frombuffer(packed, "<u8").reshape(len(strings), width // 8)
    wholes = sizes // np.uint64(8)
    found: Word = np.uint64(seed) ^ (sizes * _FACTOR)
    for place in range(int(wholes.max(initial=0))):
        more = (found ^ _mixed(words[:, place] * _FACTOR) * _FACTOR) * _FACTOR
        found = np.where(wholes > place, more, found)
    rest = words[np.arange(len(strings)), wholes.astype(np.int64)]
    found = np.where(sizes % np.uint64(8) > 0, (found ^ rest) * _FACTOR, found)
    return _mixed(_mixed(found) * _FACTOR)


def _mixed(values: Word) -> Word:
    mixed: Word = values ^ (values >> _SHIFT)
    return mixed
