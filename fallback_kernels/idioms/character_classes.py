"""Classes of characters that regular expressions of RE2 name, as ranges."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import groupby

Range = tuple[int, int]

LAST = 0x10FFFF
_HALVES = "Cs"  # of pairs, which UTF-8 does not have
_DIGIT = [(48, 57)]
_WORD = [(48, 57), (65, 90), (95, 95), (97, 122)]
_SPACE = [(9, 10), (12, 13), (32, 32)]
PERL = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
POSIX = {
    "alnum": [(48, 57), (65, 90), (97, 122)],
    "alpha": [(65, 90), (97, 122)],
    "ascii": [(0, 127)],
    "blank": [(9, 9), (32, 32)],
    "cntrl": [(0, 31), (127, 127)],
    "digit": _DIGIT,
    "graph": [(33, 126)],
    "lower": [(97, 122)],
    "print": [(32, 126)],
    "punct": [(33, 47), (58, 64), (91, 96), (123, 126)],
    "space": [(9, 13), (32, 32)],
    "upper": [(65, 90)],
    "word": _WORD,
    "xdigit": [(48, 57), (65, 70), (97, 102)],
}


@cache
def categories() -> dict[str, list[Range]]:
    """The characters of each of Unicode's general categories, such as ``Lu``, and of all whose
    names begin with the same letter, such as ``L``, as the running Python knows them."""
    found: dict[str, list[Range]] = {}
    for name, group in groupby(range(LAST + 1), lambda code: unicodedata.category(chr(code))):
        codes = list(group)
        for each in (name, name[0]) if name != _HALVES else ():
            found.setdefault(each, []).append((codes[0], codes[-1]))
    return found


def between(ranges: list[Range]) -> Iterator[Range]:
    """All characters that are in none of `ranges`."""
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            yield start, low - 1
        start = max(start, high + 1)
    if start <= LAST:
        yield start, LAST
