"""Reads regular expressions of RE2, and writes them as Python's: see `regular_expressions`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from typing import NamedTuple

from tflite_ort.schema import KernelError

_DEEPEST, _MOST_REPEATS = 100, 1000
_LETTERS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
# Characters beyond ASCII that are small or large forms of ASCII letters.
_MORE_CASES = {"k": 0x212A, "s": 0x17F}
_WORD_TEXT = "[0-9A-Za-z_]"

# Classes of characters that expressions name, as ranges.
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


class Part(NamedTuple):
    """A piece of an expression in Python's form.

    Args:
        text: in Python's form.
        choices: in how many ways it may match from one place on, but for its loops.
        loops: how many of its repetitions have no end.
        is_empty: it can match nothing.
        start: the only character that it can begin with, if it is known.
        repeats: how often the numbers in braces that stand one in another repeat at most.
    """

    text: str
    choices: float = 1
    loops: int = 0
    is_empty: bool = False
    start: str = ""
    repeats: int = 1


class Parser:
    """Reads an expression of RE2."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.flags: frozenset[str] = frozenset()
        self.takes_all = False  # something matches characters that are not named

    def refused(self, why: str) -> KernelError:
        return KernelError(f"regular expression {self.text!r}: {why}")

    def whole(self) -> Part:
        """All of it."""
        part = self.alternatives()
        if self.at < len(self.text):
            raise self.refused("')' without '('")
        return part

    def takes(self, word: str) -> bool:
        """Whether `word` comes next; if so it is passed over."""
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def next(self) -> str:
        if self.at == len(self.text):
            raise self.refused("it ends early")
        self.at += 1
        return self.text[self.at - 1]

    def alternatives(self) -> Part:
        flags = self.flags
        branches = [self.sequence()]
        while self.takes("|"):
            branches.append(self.sequence())
        self.flags = flags
        if len(branches) == 1:
            return branches[0]
        starts = {branch.start for branch in branches}
        distinct = len(starts) == len(branches) and "" not in starts
        choices = [branch.choices for branch in branches]
        return Part(
            "|".join(branch.text for branch in branches),
            max(choices) if distinct else sum(choices),
            max(branch.loops for branch in branches),
            any(branch.is_empty for branch in branches),
            repeats=max(branch.repeats for branch in branches),
        )

    def sequence(self) -> Part:
        parts = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            quoted = self.quoted() if self.takes("\\Q") else None
            if quoted is not None:
                parts += quoted[:-1]
            atom = quoted[-1:] if quoted is not None else [self.atom()]
            parts += [self.repeated(part) for part in atom]
        return _joined(parts)

    def quoted(self) -> list[Part]:
        end = self.text.find("\\E", self.at)
        end = len(self.text) if end < 0 else end
        found = [self.literal(char) for char in self.text[self.at : end]]
        self.at = min(end + 2, len(self.text))
        return found

    def repeated(self, part: Part) -> Part:
        start = self.at
        bounds = self.bounds()
        if bounds is None:
            return part
        lazy = self.takes("?")
        if self.text[self.at : self.at + 1] in ("*", "+", "?") and self.at < len(self.text):
            raise self.refused("a repetition of a repetition")
        if part.text in ("", "(?:)") or part.is_empty:
            raise self.refused("a repetition of what can be empty is not implemented")
        low, high = bounds
        braces = self.text[start] == "{"
        repeats = part.repeats * max(low if high is None else high, 1) if braces else part.repeats
        if braces and max(low, high or 0) > 1 and repeats > _MOST_REPEATS:
            raise self.refused(f"more than {_MOST_REPEATS} repetitions")
        single = part.choices == 1 and part.loops == 0
        if not single and (low, high) != (0, 1):
            raise self.refused(
                "a repetition of what matches in more than one way is not implemented: it can take "
                "exponential time"
            )
        sign = self.text[start : self.at - lazy]
        text = f"(?:{part.text}){sign}" if not _is_atom(part.text) else f"{part.text}{sign}"
        ways = part.choices if high is None else part.choices * (high - low + 1)
        return Part(
            text + "?" * (lazy ^ ("U" in self.flags)),
            ways,
            part.loops + (high is None),
            low == 0,
            part.start if low else "",
            repeats,
        )

    def bounds(self) -> tuple[int, int | None] | None:
        """How often what stands before is repeated; None where nothing is said."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.takes(sign):
                return bounds
        match = re.compile(r"\{(\d{1,9})(,?)(\d{0,9})\}", re.ASCII).match(self.text, self.at)
        if match is None or (match[3] and not match[2]):
            return None
        self.at = match.end()
        low = int(match[1])
        high = low if not match[2] else int(match[3]) if match[3] else None
        if high is not None and high < low:
            raise self.refused("bad bounds of a repetition")
        return low, high

    def atom(self) -> Part:
        char = self.next()
        match char:
            case "(":
                return self.group()
            case "[":
                return self.of_ranges(self.bracketed())
            case ".":
                self.takes_all = True
                return Part("(?s:.)" if "s" in self.flags else "[^\\n]")
            case "^":
                return Part("(?m:^)" if "m" in self.flags else r"\A", is_empty=True)
            case "$":
                return Part(r"(?=\n|\Z)" if "m" in self.flags else r"\Z", is_empty=True)
            case "*" | "+" | "?":
                raise self.refused("a repetition of nothing")
            case "\\":
                return self.escaped()
        return self.literal(char)

    def group(self) -> Part:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self.refused(f"groups more than {_DEEPEST} deep")
        opening, flags = "(", self.flags
        if self.takes("?P<"):
            name = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)>").match(self.text, self.at)
            if name is None:
                raise self.refused("a name of a group")
            self.at = name.end()
        elif self.takes("?"):
            opening = "(?:"
            if not self.flagged():
                self.depth -= 1
                return Part("", is_empty=True)
        inner = self.alternatives()
        if not self.takes(")"):
            raise self.refused("'(' without ')'")
        self.flags, self.depth = flags, self.depth - 1
        return inner._replace(text=f"{opening}{inner.text})")

    def flagged(self) -> bool:
        """Read flags. Returns whether an expression follows that they apply to alone."""
        match = re.compile(r"([imsU]*)(-[imsU]+)?([:)])").match(self.text, self.at)
        if match is None or match[0] == ")":
            raise self.refused("a group of a kind that RE2 does not have, or is not implemented")
        self.at = match.end()
        self.flags = (self.flags | set(match[1])) - set(match[2] or "")
        return match[3] == ":"

    def literal(self, char: str) -> Part:
        if "i" in self.flags:
            return self.of_ranges([(ord(char), ord(char))])
        return Part(re.escape(char), start=char)

    def escaped(self) -> Part:
        char = self.next()
        match char:
            case "A":
                return Part(r"\A", is_empty=True)
            case "z":
                return Part(r"\Z", is_empty=True)
            case "b":
                edge = f"(?:(?<={_WORD_TEXT})(?!{_WORD_TEXT})|(?<!{_WORD_TEXT})(?={_WORD_TEXT}))"
                return Part(edge, is_empty=True)
        ranges = self.class_escape(char)
        if ranges is not None:
            return self.of_ranges(ranges)
        return self.literal(chr(self.code(char)))

    def class_escape(self, char: str) -> list[Range] | None:
        if char.lower() in PERL and char.isascii():
            ranges = PERL[char.lower()]
            return ranges if char.islower() else self.complement(self.cased(ranges))
        if char in "pP":
            return self.category(char)
        if char in "CB":
            raise self.refused(f"\\{char} is not implemented")
        return None

    def code(self, char: str) -> int:
        """The character that an escape stands for."""
        if char in _LETTERS:
            return _LETTERS[char]
        if char == "x":
            match = re.compile(r"\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2})").match(self.text, self.at)
            code = int(match[1] or match[2], 16) if match else LAST + 1
            if match is None or code > LAST or 0xD800 <= code <= 0xDFFF:
                raise self.refused("a bad \\x")
            self.at = match.end()
            return code
        octal = re.compile("0[0-7]{0,2}|[1-7][0-7]{1,2}").match(self.text, self.at - 1)
        if octal:
            self.at = octal.end()
            return int(octal[0], 8)
        if char.isascii() and not char.isalnum() and char != "_":
            return ord(char)
        raise self.refused(f"RE2 does not have \\{char}")

    def category(self, sign: str) -> list[Range]:
        """The characters of one of Unicode's categories, or all others."""
        name = self.next()
        if name == "{":
            name, closing, _ = self.text[self.at :].partition("}")
            if not closing:
                raise self.refused("it ends early")
            self.at += len(name) + 1
        negated = (sign == "P") ^ name.startswith("^")
        ranges = categories().get(name.removeprefix("^"))
        if ranges is None or "i" in self.flags:
            raise self.refused(f"\\{sign}{{{name}}} is not implemented")
        return self.complement(ranges) if negated else ranges

    def bracketed(self) -> list[Range]:
        negated, found, first = self.takes("^"), list[Range](), True
        while first or not self.takes("]"):
            if not first and self.takes("-"):
                if not self.text.startswith("]", self.at):
                    raise self.refused("a '-' in the middle of a class")
                found.append((45, 45))
                continue
            found += self.member()
            first = False
        found = self.cased(found)
        return self.complement(found) if negated else found

    def member(self) -> list[Range]:
        named = re.compile(r"\[:(\^?)([a-z]*):\]").match(self.text, self.at)
        if named:
            if named[2] not in POSIX:
                raise self.refused(f"a class {named[0]}")
            self.at = named.end()
            ranges = POSIX[named[2]]
            return self.complement(self.cased(ranges)) if named[1] else ranges
        char = self.next()
        if char == "\\":
            char = self.next()
            ranges = self.class_escape(char) or []
            if ranges:
                return ranges
            low = self.code(char)
        else:
            low = ord(char)
        if not self.text.startswith("-", self.at) or self.text.startswith("-]", self.at):
            return [(low, low)]
        self.at += 1
        char = self.next()
        high = self.code(self.next()) if char == "\\" else ord(char)
        if high < low:
            raise self.refused("a bad range of a class")
        return [(low, high)]

    def cased(self, ranges: list[Range]) -> list[Range]:
        """`ranges` with the other cases of their letters, where these count the same."""
        if "i" not in self.flags:
            return ranges
        if any(high > 127 for _, high in ranges):
            raise self.refused("cases beyond ASCII are not implemented")
        more = []
        for code in range(128):
            letter = chr(code).lower()
            if letter.isalpha() and any(low <= code <= high for low, high in ranges):
                codes = (ord(letter), ord(letter.upper()), _MORE_CASES.get(letter, ord(letter)))
                more += [(other, other) for other in codes]
        return ranges + more

    def complement(self, ranges: list[Range]) -> list[Range]:
        self.takes_all = True
        return list(between(ranges))

    def of_ranges(self, ranges: list[Range]) -> Part:
        if not ranges:
            raise self.refused("a class of nothing is not implemented")
        pieces = [f"\\U{low:08x}-\\U{high:08x}" for low, high in self.cased_once(ranges)]
        return Part(f"[{''.join(pieces)}]")

    def cased_once(self, ranges: list[Range]) -> list[Range]:
        """As `cased`; what stands for characters beyond ASCII has its cases already."""
        beyond = any(high > 127 for _, high in ranges)
        single = len(ranges) == 1 and ranges[0][0] == ranges[0][1]
        return ranges if beyond and not single else self.cased(ranges)


def _joined(parts: list[Part]) -> Part:
    choices, loops = 1.0, 0
    for part in parts:
        choices, loops = min(choices * part.choices, 1e30), loops + part.loops
    start = next((part.start for part in parts if part.text), "")
    return Part(
        "".join(part.text for part in parts),
        choices,
        loops,
        all(part.is_empty for part in parts),
        start,
        max((part.repeats for part in parts), default=1),
    )


def _is_atom(text: str) -> bool:
    """Whether a repetition after `text` repeats all of it: a character, a class, or a group."""
    return len(text) == 1 or (len(text) == 2 and text[0] == "\\") or text[0] + text[-1] == "[]"


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
