"""Regular expressions of RE2, put into Python's: which texts match and where is the same.

What RE2 and Python read differently is written out: classes and cases as ranges, ends of lines as
look-ahead. What is not the same in the end is refused, and so is an expression that could take long
on a text: Python's matcher tries one way after the other, RE2's all at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from tflite_ort.fallback_kernels.idioms.expression_parser import Parser
from tflite_ort.schema import KernelError

_LONGEST = 10_000
_MOST_STEPS = 1e9


class Piece(NamedTuple):
    """Where a match is in a text: the first group from `start` to `stop`, and the end of all."""

    start: int
    stop: int
    end: int


class Expression:
    """A regular expression of RE2.

    Raises:
        KernelError: RE2 does not take it, or it is not computed here.
    """

    def __init__(self, pattern: bytes) -> None:
        try:
            text = pattern.decode()
        except UnicodeDecodeError:
            raise KernelError(f"regular expression {pattern!r} is not UTF-8") from None
        if len(text) > _LONGEST:
            raise KernelError(f"a regular expression of {len(text)} characters")
        parser = Parser(text)
        self._pattern = text
        self._part = parser.whole()
        self._takes_all = parser.takes_all or self._part.is_empty
        self._compiled = re.compile(self._part.text)
        # What comes before a place counts, or whether a text begins there.
        self._looks_back = any(sign in self._part.text for sign in (r"\A", "(?m:^)", "(?<"))
        self.groups = self._compiled.groups

    def is_full(self, text: bytes) -> bool:
        """Whether the whole of `text` matches."""
        return self._compiled.fullmatch(self._decoded(text)) is not None

    def replaced(self, text: bytes, rewrite: bytes, *, everywhere: bool) -> bytes:
        """`text` with `rewrite` for the first match or for all; see `names_groups`."""
        source, at, last = self._decoded(text), 0, -1
        made: list[bytes] = []
        while at <= len(source):
            match = self._compiled.search(source, at)
            if match is None:
                break
            made.append(_encoded(source[at : match.start()]))
            if match.start() == match.end() == last:  # an empty match where the last one ended
                made.append(_encoded(source[at : at + 1]))
                at += 1
                continue
            made.append(_rewritten(match, rewrite))
            at = last = match.end()
            if not everywhere:
                break
        return b"".join([*made, _encoded(source[at:])])

    def matches(self, text: bytes) -> Iterator[Piece]:
        """All matches one after the other, each in the text that begins where the last one ended;
        none of an expression without groups.

        Raises:
            KernelError: a match is empty, so that there is no next one, or is without the group.
        """
        source, base, at = self._decoded(text), 0, 0
        place = 0  # in bytes, of the character `at` of all
        while self.groups:
            if self._looks_back:
                source, base = source[at - base :], at
            match = self._compiled.search(source, at - base)
            if match is None:
                return
            if match.end() == at - base or match.start(1) < 0:
                raise KernelError(
                    f"regular expression {self._pattern!r} matches nothing, or without its group"
                )
            begin = at - base
            bounds = (match.start(1), match.end(1), match.end())
            start, stop, end = (place + len(_encoded(source[begin:bound])) for bound in bounds)
            yield Piece(start, stop, end)
            at, place = base + match.end(), end

    def _decoded(self, text: bytes) -> str:
        source = text.decode("utf-8", "surrogateescape")
        steps = (len(source) + 1.0) ** (self._part.loops + 1) * self._part.choices
        if steps > _MOST_STEPS:
            raise KernelError(
                f"regular expression {self._pattern!r} may take {steps:.0e} steps on a text of "
                f"{len(source)} characters"
            )
        if self._takes_all and not _is_utf8(text):
            raise KernelError(f"regular expression {self._pattern!r} on a text that is not UTF-8")
        return source


@lru_cache(64)
def expression_of(pattern: bytes) -> Expression:
    """The expression of a pattern; the last ones are remembered."""
    return Expression(pattern)


def names_groups(rewrite: bytes, groups: int) -> bool:
    r"""Whether an expression has all groups that `rewrite` names by \0 to \9.

    Raises:
        KernelError: something else follows a backslash.
    """
    named = re.findall(rb"\\(.?)", rewrite, re.DOTALL)
    if any(after != b"\\" and not after.isdigit() for after in named):
        raise KernelError(f"rewrite {rewrite!r} has a backslash before other than a digit")
    return all(after == b"\\" or int(after) <= groups for after in named)


def _rewritten(match: re.Match[str], rewrite: bytes) -> bytes:
    def value(escape: re.Match[bytes]) -> bytes:
        return b"\\" if escape[1] == b"\\" else _encoded(match[int(escape[1])] or "")

    return re.sub(rb"\\(.)", value, rewrite)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
