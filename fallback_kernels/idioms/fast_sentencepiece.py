"""SentencePiece's unigram models as tf.text's TFLite operators have them: tries in a FlatBuffer.

Scores are float32, as in tf.text.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tflite_ort.fallback_kernels.idioms.tries import Trie
from tflite_ort.fallback_kernels.registry import Array
from tflite_ort.schema import KernelError
from tflite_ort.schema.file import tokenizer_models
from tflite_ort.schema.file.tokenizer_models import (
    SentencepieceDecoder,
    SentencepieceEncoder,
    read_tokenizer,
)

_SPACES, _SIGN = b" \t\r\n", "\u2581".encode()
_MOST_TEXT = 1 << 24


class FastSentencepiece:
    """What makes pieces of texts.

    Raises:
        MalformedModel: the content is no such model.
    """

    def __init__(self, content: Array) -> None:
        self._model = read_tokenizer(content, SentencepieceEncoder)
        pieces = _trie(self._model.pieces)
        if self._model.version or pieces is None or self._model.scores is None:
            raise KernelError("the model is not one of SentencePiece, or has no pieces")
        self._pieces, self._scores = pieces, self._model.scores.astype(np.float32)
        self._replaced = _trie(self._model.replaced)
        replacements = self._model.replacements
        self._replacements = b"" if replacements is None else replacements.tobytes()

    def numbers(self, text: bytes, *, start: bool, end: bool, reverse: bool) -> list[int]:
        """The numbers of a text's pieces, with those that begin and end it where they are asked."""
        model = self._model
        found = self._best(self._normalized(text))
        found = [model.start_code] * start + found + [model.end_code] * end
        return found[::-1] if reverse else found

    def _normalized(self, text: bytes) -> bytes:
        model = self._model
        if not text:
            return text
        text = b" " + text if model.add_dummy_prefix else text
        if self._replaced is not None:
            text = _changed(text, self._replacement)
        if model.remove_extra_whitespaces:
            text = _changed(text, _one_space)
            text = text[:-1] if text[-1:] and text[-1] in _SPACES else text
        if model.escape_whitespaces:
            text = b"".join(_SIGN if byte in _SPACES else bytes([byte]) for byte in text)
        return text

    def _replacement(self, text: bytes, at: int) -> tuple[int, bytes] | None:
        """The end of the longest prefix that is replaced, and what it becomes."""
        assert self._replaced is not None
        found = list(self._replaced.prefixes(text, at))
        if not found or found[-1][1] >= len(self._replacements):
            return None
        end, place = found[-1]
        return end, self._replacements[place : self._replacements.find(b"\0", place)]

    def _best(self, text: bytes) -> list[int]:
        """The numbers of the pieces of the greatest score; bytes of none together are unknown."""
        model, size = self._model, len(text)
        scores = np.zeros(size + 1, np.float32)
        codes, sources = [-1] * (size + 1), [-1] * (size + 1)
        penalty = np.float32(model.unknown_penalty)
        for at in range(size):
            if at and sources[at] < 0:
                continue
            if model.unknown_code >= 0:
                score = scores[at] + penalty
                if sources[at + 1] < 0 or scores[at + 1] < score:
                    joined = codes[at] == model.unknown_code
                    sources[at + 1] = sources[at] if joined else at
                    scores[at + 1], codes[at + 1] = score, model.unknown_code
            for end, number in self._pieces.prefixes(text, at):
                if number >= self._scores.size:
                    continue
                score = scores[at] + self._scores[number]
                if sources[end] < 0 or scores[end] < score:
                    scores[end], codes[end], sources[end] = score, number, at
        if sources[size] < 0:
            return []
        found, at = list[int](), size
        while at > 0:
            unknown = codes[at] == model.unknown_code
            found.append(codes[at] + (0 if unknown else model.encoding_offset))
            at = sources[at]
        return found[::-1]


class FastDetokenizer:
    """What makes texts of pieces.

    Raises:
        MalformedModel: the content is no such model.
    """

    def __init__(self, content: Array) -> None:
        self._model = read_tokenizer(content, SentencepieceDecoder)
        self._pieces = [piece.encode() for piece in self._model.pieces]

    def text(self, numbers: Sequence[int]) -> bytes:
        """The text of pieces; the first one loses the space before it, if the model says so."""
        found: list[bytes] = []
        for number in numbers:
            place = number - self._model.encoding_offset
            if not 0 <= place < len(self._pieces):
                raise KernelError(f"piece {number} of {len(self._pieces)}")
            piece = self._pieces[place].partition(b"\0")[0]
            first = not found and self._model.remove_dummy_prefix
            found.append(piece.removeprefix(b" ") if first else piece)
        return b"".join(found)


def _trie(table: tokenizer_models.Trie | None) -> Trie | None:
    nodes = None if table is None else table.nodes
    return None if nodes is None or not nodes.size else Trie(nodes.astype(np.uint32))


def _changed(text: bytes, change: Callable[[bytes, int], tuple[int, bytes] | None]) -> bytes:
    """`text` with what `change` says of its bytes from the first on: an end, and what stands before
    it then."""
    found, at, size = list[bytes](), 0, 0
    while at < len(text):
        end, piece = change(text, at) or (at + 1, text[at : at + 1])
        found.append(piece)
        at, size = end, size + len(piece)
        if size > _MOST_TEXT:
            raise KernelError(f"a text becomes longer than {_MOST_TEXT} bytes")
    return b"".join(found)


def _one_space(text: bytes, at: int) -> tuple[int, bytes] | None:
    end = at
    while end < len(text) and text[end] in _SPACES:
        end += 1
    return (end, b" ") if end > at + 1 else None
