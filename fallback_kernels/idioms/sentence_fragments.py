"""Tokens of a text put into fragments that end where a sentence can end: as tf.text's rules do.

A fragment ends after marks such as ``.!?``, and brackets or quotes that close after them. A space
stands before every token.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from tflite_ort.fallback_kernels.idioms.texts import decoded
from tflite_ort.fallback_kernels.idioms.unicode_properties import has_property
from tflite_ort.schema import KernelError

_EMOTICON, _ACRONYM = 0x80, 0x100
_ENDS, _SEVERAL_MARKS, _CLOSES, _CLOSES_SENTENCE = 1, 2, 4, 8
# Characters that count beside those that Unicode's properties tell.
_MARKS = {0x55C, 0x55E, 0x17D4, 0x37E, 0x2026}
_CLOSING = {*map(ord, ">]`"), 0xFD3F, 0xFF02, 0xFF07}
_OPENING_BRACKETS, _CLOSING_BRACKETS = {ord("<"), 0xFD3E}, {ord(">"), 0xFD3F}
_PUNCTUATION = {*map(ord, "`<>~"), 0x166D}


class Fragment(NamedTuple):
    """Tokens from `start` to `limit`; `mark` is the first mark that ends it, or -1."""

    start: int
    limit: int
    properties: int
    mark: int


class Kinds(NamedTuple):
    """What a word is by itself."""

    is_mark: bool
    is_ellipsis: bool
    closes: bool
    is_opening_bracket: bool
    is_closing_bracket: bool
    is_punctuation: bool


@lru_cache(1 << 12)
def kinds_of(word: bytes) -> Kinds:
    """What a word is.

    Raises:
        KernelError: it is empty.
    """
    if not word:
        raise KernelError("a token is an empty text")
    if word in (b"...", b"''"):
        dots = word == b"..."
        return Kinds(dots, dots, not dots, False, False, False)
    code, *more = (code for code, _ in decoded(word))
    if more or code < 0:
        return Kinds(*[False] * 6)
    ellipsis = code == 0x2026
    ends = has_property(code, "Sentence_Break=ATerm") or has_property(code, "Sentence_Break=STerm")
    closing = has_property(code, "Line_Break=Close_Punctuation")
    closing = closing or has_property(code, "Line_Break=Close_Parenthesis")
    quotes = has_property(code, "Line_Break=Quotation")
    opening = has_property(code, "Line_Break=Open_Punctuation")
    dash = has_property(code, "Dash") or has_property(code, "Hyphen")
    return Kinds(
        ellipsis or code in _MARKS or ends,
        ellipsis,
        code in _CLOSING or closing or quotes,
        code in _OPENING_BRACKETS or opening,
        code in _CLOSING_BRACKETS or closing,
        code in _PUNCTUATION or unicodedata.category(chr(code)).startswith("P") or dash,
    )


class _Match(NamedTuple):
    """How far the end of a fragment is found: the first mark, the first that closes, the end."""

    mark: int = -1
    closing: int = -1
    limit: int = -1
    is_closing: bool = False


class Fragmenter:
    """The tokens of one text.

    Args:
        properties: of each token, tf.text's bits: emoticon, acronym and others.
    """

    def __init__(self, words: Sequence[bytes], properties: Sequence[int]) -> None:
        self._words = words
        self._kinds = [kinds_of(word) for word in words]
        self._properties = properties

    def fragments(self) -> list[Fragment]:
        """All fragments."""
        found: list[Fragment] = []
        start, opens_sentence = 0, False
        while start < len(self._words):
            match = self._next(start)
            brackets = [
                at for at in range(start, match.limit) if self._kinds[at].is_opening_bracket
            ]
            if brackets:
                opens_sentence = brackets[-1] == start
            found.append(self._fragment(start, match, opens_sentence))
            start = match.limit
        return found

    def _next(self, start: int) -> _Match:
        """The next end of a fragment. Spaces may stand before marks and brackets that close: the
        longest match counts, or the one before the last such space."""
        current, before, at = _Match(), _Match(), start
        while at < len(self._words):
            if current.mark >= 0 and at > start:
                if not self._follows_space(at):
                    break
                before = current
            advanced = self._advanced(current, at)
            if advanced is not None:
                current = advanced
                at += 1
            elif before.mark >= 0:
                return before
            else:
                current = _Match()
        return current

    def _follows_space(self, at: int) -> bool:
        kinds = self._kinds[at]
        listed = kinds.is_ellipsis or kinds.is_mark or kinds.is_closing_bracket
        return listed or self._is(_EMOTICON, at)

    def _advanced(self, match: _Match, at: int) -> _Match | None:
        kinds, emoticon = self._kinds[at], self._is(_EMOTICON, at)
        marks = kinds.is_mark or kinds.is_ellipsis or emoticon
        acronym = self._is(_ACRONYM, at) and self._words[at].endswith(b".")
        if match.is_closing:
            goes_on = kinds.closes or kinds.is_ellipsis or emoticon
            return match._replace(limit=at + 1) if goes_on else None
        if match.mark < 0:
            match = match._replace(limit=at + 1)
            return match._replace(mark=at, closing=at + 1) if marks or acronym else match
        if marks:
            return match._replace(limit=at + 1, closing=at + 1)
        if kinds.closes:
            return match._replace(limit=at + 1, closing=at, is_closing=True)
        return None

    def _fragment(self, start: int, match: _Match, opens_sentence: bool) -> Fragment:
        if match.mark < 0:
            return Fragment(start, match.limit, 0, -1)
        properties = _ENDS
        if any(self._is_clear_mark(at) for at in range(match.mark + 1, match.closing)):
            properties |= _SEVERAL_MARKS
        closing = range(match.closing, match.limit)
        if any(self._kinds[at].is_closing_bracket for at in closing):
            properties |= _CLOSES | (_CLOSES_SENTENCE if opens_sentence else 0)
        return Fragment(start, match.limit, properties, self._first_mark(match))

    def _is_clear_mark(self, at: int) -> bool:
        kinds = self._kinds[at]
        vague = kinds.is_ellipsis or self._is(_EMOTICON, at)
        return kinds.is_punctuation and not vague

    def _first_mark(self, match: _Match) -> int:
        """The mark after the last ellipsis or emoticon, if there is one; else the first."""
        for at in range(match.closing - 1, match.mark - 1, -1):
            if self._kinds[at].is_ellipsis or self._is(_EMOTICON, at):
                return match.mark if at == match.closing - 1 else at + 1
        return match.mark

    def _is(self, bits: int, at: int) -> bool:
        return bool(self._properties[at] & bits)
