"""Classes of characters that regular expressions of RE2 name, as ranges."""

from __future__ import annotations

from collections.abc import Iterator

Range = tuple[int, int]

LAST = 0x10FFFF
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


def between(ranges: list[Range]) -> Iterator[Range]:
    """All characters that are in none of `ranges`."""
    start = 0
    for low, high in sorted(ranges):
        if low > start:
            yield start, low - 1
        start = max(start, high + 1)
    if start <= LAST:
        yield start, LAST
