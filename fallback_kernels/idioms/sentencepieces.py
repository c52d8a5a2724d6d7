"""Models of SentencePiece, which the library of that name runs in a process of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from tflite_ort.base.library_process import LibraryProcess
from tflite_ort.base.optional import installed
from tflite_ort.schema import KernelError, ModelError
from tflite_ort.schema.file.wire import Message

_LIBRARY = "sentencepiece"
# Bytes of memory that a model may take for each of its own.
_GROWTH = 160
_TEXT, _PIECES = 1, 2  # of a text's message
_PIECE, _ID, _BEGIN, _END = 1, 2, 4, 5  # of a piece's
_WAYS = 1


class Piece(NamedTuple):
    """A piece of a text: its first byte there, and the end."""

    piece: bytes
    id: int
    start: int
    end: int


class Around(NamedTuple):
    """What is done to the pieces of a text: one before, one behind, both at byte 0; then the last
    comes first."""

    start: bool
    end: bool
    reverse: bool


class Sentencepieces:
    """A model.

    Raises:
        KernelError: the library is not installed. What it says of the model is told by the first
            question.
    """

    def __init__(self, content: bytes) -> None:
        if not installed(_LIBRARY):
            raise KernelError("SentencePiece needs its package: pip install 'tflite-ort[text]'")
        if not content:
            raise KernelError("the model of SentencePiece is empty")
        self._process = LibraryProcess(
            _LIBRARY, "the model of SentencePiece", content, _GROWTH, error=KernelError
        )
        self._facts: list[Any] | None = None

    @property
    def size(self) -> int:
        """How many pieces it has."""
        return int(self._known()[0])

    def pieces(
        self, texts: Sequence[bytes], drawn: Sequence[tuple[int, float] | None], around: Around
    ) -> list[list[Piece]]:
        """The pieces of each text: the best ones, or drawn of so many ways with an exponent."""
        self._check(around)
        answers = self._process.ask(b"p", [[_shown(text) for text in texts], 0, list(drawn)])
        return [self._row(_message(answer), around) for answer in answers]

    def best_pieces(self, texts: Sequence[bytes], count: int, around: Around) -> list[list[Piece]]:
        """The best few ways of each text, one after the other."""
        self._check(around)
        answers = self._process.ask(b"p", [[_shown(text) for text in texts], count, []])
        return [
            self._row(way, around)
            for answer in answers
            for way in _message(answer).messages(_WAYS, lambda message: message)
        ]

    def texts(self, rows: Sequence[Sequence[int] | Sequence[bytes]], around: Around) -> list[bytes]:
        """The text of each row of pieces, or of their numbers."""
        self._check(around)
        given = [[_shown(each) for each in (row[::-1] if around.reverse else row)] for row in rows]
        return [_message(answer).blob(_TEXT) for answer in self._process.ask(b"d", given)]

    def numbers(self, pieces: Sequence[bytes]) -> list[int]:
        """The number of each piece."""
        found: list[int] = self._process.ask(b"l", [_shown(piece) for piece in pieces])
        return found

    def names(self, numbers: Sequence[int]) -> list[bytes]:
        """The piece of each number."""
        return [name.encode("latin-1") for name in self._process.ask(b"l", list(numbers))]

    def _known(self) -> list[Any]:
        if self._facts is None:
            self._facts = self._process.ask(b"i", None)
        return self._facts

    def _check(self, around: Around) -> None:
        for is_asked, number, name in zip(
            around[:2], self._known()[1:3], ("start", "end"), strict=True
        ):
            if is_asked and number < 0:
                raise KernelError(f"the model has no piece for the {name} of a text")

    def _row(self, message: Message, around: Around) -> list[Piece]:
        row = list(message.messages(_PIECES, _piece))
        _, start, end, start_piece, end_piece = self._known()
        if around.start:
            row.insert(0, Piece(start_piece.encode(), start, 0, 0))
        if around.end:
            row.append(Piece(end_piece.encode(), end, 0, 0))
        return row[::-1] if around.reverse else row


_MODELS: WeakValueDictionary[bytes, Sentencepieces] = WeakValueDictionary()


def model_of(content: bytes) -> Sentencepieces:
    """The model that stands in bytes; one as long as anybody has it."""
    key = hashlib.sha256(content).digest()
    found = _MODELS.get(key)
    if found is None:
        found = _MODELS[key] = Sentencepieces(content)
    return found


def _shown(each: Any) -> Any:
    """Bytes as JSON can have them."""
    return each.decode("latin-1") if isinstance(each, bytes) else each


def _message(answer: str) -> Message:
    return Message(answer.encode("latin-1"), ModelError)


def _piece(message: Message) -> Piece:
    begin, end = message.integer(_BEGIN), message.integer(_END)
    return Piece(message.blob(_PIECE), message.integer(_ID), begin, end)
