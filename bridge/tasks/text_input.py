"""How text becomes the inputs of a model: by the tokenizer that its metadata name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tflite_ort.metadata import Metadata
from tflite_ort.schema import ModelError
from tflite_ort.schema.file.model_metadata import (
    BertTokenizerOptions,
    ProcessUnit,
    RegexTokenizerOptions,
)

Array = npt.NDArray[Any]

# A delimiter: characters or classes of them, one of several, which may repeat. Other expressions
# can take exponential time, and a file may have any.
_ATOM = r"(?:\[\^?(?:\\.|[^\]\\])+\]|\\.|[^\\\[\](){}*+?|^$.])"
_DELIMITER = re.compile(rf"\(?{_ATOM}\+?(?:\|{_ATOM}\+?)*\)?")
_SPACES = re.compile(r"[\t\n\f\r ]+")
# In bytes: of longer words nothing is known.
_LONGEST_WORD = 100
# Chinese and Japanese characters are words of their own.
_IDEOGRAPHS = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class TextInput(Protocol):
    """Makes the inputs of a model.

    Args:
        length: how many tokens they hold; None where the model takes any number.
    """

    def __call__(self, text: str, length: int | None) -> Sequence[Array]:
        """The inputs, in the order of the model."""


@dataclass(frozen=True, slots=True)
class Whole:
    """The text itself."""

    def __call__(self, text: str, length: int | None) -> Sequence[Array]:
        """One input of one text."""
        return [np.array([text.encode()])]


@dataclass(frozen=True, slots=True)
class Words:
    """Words between delimiters, each a number.

    Args:
        delimiter: what separates words.
        numbers: of the words, and of ``<PAD>``, ``<START>`` and ``<UNKNOWN>``.
    """

    delimiter: re.Pattern[str]
    numbers: Mapping[str, int]

    def __call__(self, text: str, length: int | None) -> Sequence[Array]:
        """One input."""
        start = self.numbers.get("<START>")
        unknown = self.numbers.get("<UNKNOWN>", 0)
        words = (word for word in self.delimiter.split(text) if word)
        ids = [self.numbers.get(word, unknown) for word in words]
        ids = ids if start is None else [start, *ids]
        return [_padded(ids, length, self.numbers.get("<PAD>", 0))]


@dataclass(frozen=True, slots=True)
class WordPieces:
    """BERT's pieces of words: their numbers, a mask, and the numbers of segments.

    Args:
        numbers: of the pieces; those within a word begin with ``##``.
        order: where these three are among the inputs of the model.
    """

    numbers: Mapping[str, int]
    order: tuple[int, int, int] = (0, 1, 2)

    def __call__(self, text: str, length: int | None) -> Sequence[Array]:
        """Three inputs."""
        lowered = "".join(each.lower() if each.isascii() else each for each in text)
        pieces = [piece for word in _bert_words(lowered) for piece in self._pieces(word)]
        if length is not None:
            pieces = pieces[: max(length - 2, 0)]
        numbers = self.numbers
        ids = [numbers.get("[CLS]", 0), *pieces, numbers.get("[SEP]", 0)]
        made = (ids, [1] * len(ids), [0] * len(ids))
        arrays = [_padded(each, length, 0) for each in made]
        return [arrays[self.order.index(place)] for place in range(3)]

    def _pieces(self, word: str) -> list[int]:
        """The longest pieces that are known, from the left; unless all of a word is known, the
        number for unknown words."""
        unknown = [self.numbers.get("[UNK]", 0)]
        if len(word.encode()) > _LONGEST_WORD:
            return unknown
        found, start = list[int](), 0
        while start < len(word):
            mark = "##" if start else ""
            ends = range(len(word), start, -1)
            end = next((e for e in ends if mark + word[start:e] in self.numbers), None)
            if end is None:
                return unknown
            found.append(self.numbers[mark + word[start:end]])
            start = end
        return found


def _bert_words(text: str) -> Iterator[str]:
    """Words, and each punctuation mark and each ideograph by itself."""
    for part in _SPACES.split(text):
        word = ""
        for character in part:
            if _stands_alone(character):
                yield from filter(None, (word, character))
                word = ""
            else:
                word += character
        if word:
            yield word


def _stands_alone(character: str) -> bool:
    code = ord(character)
    if code < 128:
        return not (character.isalnum() or code < 0x21 or code == 0x7F)
    if unicodedata.category(character).startswith("P"):
        return True
    return any(first <= code <= last for first, last in _IDEOGRAPHS)


def _padded(ids: Sequence[int], length: int | None, padding: int) -> Array:
    wanted = len(ids) if length is None else length
    made = np.full((1, wanted), padding, np.int32)
    made[0, : len(ids)] = ids[:wanted]
    return made


def text_input(metadata: Metadata, types: Sequence[Any], names: Sequence[str]) -> TextInput:
    """How text becomes the inputs of a model.

    Args:
        types: of the inputs.
        names: of the inputs, where the metadata have none.

    Raises:
        ModelError: the metadata name no tokenizer that is known here, or its inputs are others.
    """
    if len(types) == 1 and np.dtype(types[0]).kind in "SU":
        return Whole()
    graphs = metadata.table.subgraph_metadata if metadata.table is not None else ()
    told = graphs[0] if graphs else None
    units: list[ProcessUnit] = []
    if told is not None:
        units = [*told.input_process_units]
        units += [unit for each in told.input_tensor_metadata for unit in each.process_units]
    for unit in units:
        match unit.options:
            case RegexTokenizerOptions() as options if len(types) == 1:
                return _words_of(options, metadata)
            case BertTokenizerOptions() as options if len(types) == 3:
                lines = _lines(options.vocab_file, metadata)
                numbers = {line: number for number, line in enumerate(lines)}
                return WordPieces(numbers, _bert_order([e.name for e in metadata.inputs] or names))
    raise ModelError(
        "the model says no tokenizer that is known here for its inputs: words between delimiters "
        "for one input of numbers, BERT's pieces for three"
    )


def _words_of(options: RegexTokenizerOptions, metadata: Metadata) -> Words:
    pattern = options.delim_regex_pattern
    if not _DELIMITER.fullmatch(pattern):
        raise ModelError(f"the delimiter of the tokenizer is no list of characters: {pattern!r}")
    numbers = {}
    for line in _lines(options.vocab_file, metadata):
        word, _, number = line.rpartition(" ")
        if word and number.lstrip("-").isdecimal():
            numbers[word] = int(number)
    try:
        return Words(re.compile(f"(?:{pattern})", re.ASCII), numbers)
    except re.error as error:
        raise ModelError(f"the delimiter of the tokenizer is wrong: {error}") from error


def _lines(files: Sequence[Any], metadata: Metadata) -> list[str]:
    name = files[0].name if files else None
    if name is None or name not in metadata.files:
        raise ModelError("the tokenizer of the model has no vocabulary")
    return metadata.files[name].decode("utf-8", "replace").splitlines()


def _bert_order(names: Sequence[str]) -> tuple[int, int, int]:
    """Where the numbers, the mask and the segments are, by the names of the inputs; one after the
    other where these do not tell."""
    found = [
        [place for place, name in enumerate(names) if any(word in name for word in words)]
        for words in (("ids", "word"), ("mask",), ("segment", "type"))
    ]
    ids = [place for place in found[0] if place not in found[2]]
    places = [*ids, *found[1], *found[2]]
    if len(ids) == len(found[1]) == len(found[2]) == 1 and sorted(places) == [0, 1, 2]:
        return places[0], places[1], places[2]
    return 0, 1, 2
