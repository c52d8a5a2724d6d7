"""The tokenizer of a bundle: text to tokens and back."""

from __future__ import annotations

import struct
import zlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tflite_ort.bundles import Bundle
from tflite_ort.generation.errors import GenerationError, needed
from tflite_ort.json_text import parsed
from tflite_ort.schema import Budgets, MalformedBundle
from tflite_ort.schema.file.budgets import DEFAULT
from tflite_ort.versioning.registration import reported

HUGGING_FACE, SENTENCEPIECE = "HF_Tokenizer_Zlib", "SP_Tokenizer"
_SIZE = struct.Struct("<Q")
_UNFINISHED = "\N{REPLACEMENT CHARACTER}"


class Vocabulary(ABC):
    """Text to tokens and back."""

    def tokens(self, text: str) -> tuple[int, ...]:
        """The tokens of a text, without any that stand around it.

        Raises:
            GenerationError: the tokenizer fails.
        """
        with reported(GenerationError, "the tokenizer failed"):
            return tuple(self._encoded(text))

    def text(self, tokens: Sequence[int]) -> str:
        """The text of tokens.

        Raises:
            GenerationError: the tokenizer fails.
        """
        with reported(GenerationError, "the tokenizer failed"):
            return self._decoded(list(tokens))

    @abstractmethod
    def _encoded(self, text: str) -> Sequence[int]: ...

    @abstractmethod
    def _decoded(self, tokens: list[int]) -> str: ...


class HuggingFaceVocabulary(Vocabulary):
    """A ``tokenizer.json``.

    Args:
        content: its text.

    Raises:
        MalformedBundle: it is none.
        GenerationError: `tokenizers` is not installed.
    """

    def __init__(self, content: bytes) -> None:
        library = needed("tokenizers", "the tokenizer of this bundle")
        parsed(content, MalformedBundle, "the tokenizer")
        with reported(GenerationError, "the tokenizer cannot be read"):
            self._tokenizer: Any = library.Tokenizer.from_str(content.decode())

    def _encoded(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    def _decoded(self, tokens: list[int]) -> str:
        return str(self._tokenizer.decode(tokens, skip_special_tokens=False))


class SentencePieceVocabulary(Vocabulary):
    """A model of SentencePiece.

    Args:
        content: its bytes.

    Raises:
        GenerationError: they are none, or `sentencepiece` is not installed.
    """

    def __init__(self, content: bytes) -> None:
        library = needed("sentencepiece", "the tokenizer of this bundle")
        with reported(GenerationError, "the tokenizer cannot be read"):
            self._processor: Any = library.SentencePieceProcessor(model_proto=content)

    def _encoded(self, text: str) -> Sequence[int]:
        ids: Sequence[int] = self._processor.encode(text)
        return ids

    def _decoded(self, tokens: list[int]) -> str:
        return str(self._processor.decode(tokens))


def vocabulary_of(bundle: Bundle, budgets: Budgets | None = None) -> Vocabulary:
    """The tokenizer in a bundle.

    Raises:
        GenerationError: there is none, or its library is not installed.
        MalformedBundle: it is damaged.
        BudgetExceeded: unpacked it is larger than ``bundle_bytes``.
    """
    for entry in bundle.entries:
        if entry.kind == HUGGING_FACE:
            content = tokenizer_json(bytes(bundle.content(entry.name)), budgets or DEFAULT)
            return HuggingFaceVocabulary(content)
        if entry.kind == SENTENCEPIECE:
            return SentencePieceVocabulary(bytes(bundle.content(entry.name)))
    raise GenerationError("the bundle has no tokenizer")


def tokenizer_json(section: bytes, budgets: Budgets) -> bytes:
    """The ``tokenizer.json`` of a section: its size in 8 bytes, then a zlib stream.

    Raises:
        MalformedBundle: the section is damaged.
        BudgetExceeded: the text is larger than ``bundle_bytes``.
    """
    if len(section) < _SIZE.size:
        raise MalformedBundle("the tokenizer's section is too short")
    (size,) = _SIZE.unpack_from(section)
    budgets.check("bundle_bytes", size, "the tokenizer")
    try:
        content = zlib.decompressobj().decompress(section[_SIZE.size :], size + 1)
    except zlib.error as error:
        raise MalformedBundle(f"the tokenizer cannot be unpacked: {error}") from error
    if len(content) != size:
        raise MalformedBundle(f"the tokenizer has not {size} bytes, as its section says")
    return content


class TextStream:
    """The text of tokens that come one after the other, in pieces of whole characters."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokens: list[int] = []
        # The text up to `_read` was given out; tokens from `_start` on are decoded for the rest.
        self._start, self._read = 0, 0

    def add(self, tokens: Sequence[int]) -> str:
        """What these tokens add to the text; a character that is not whole yet comes later."""
        self._tokens.extend(tokens)
        before, text = self._texts()
        if text.endswith(_UNFINISHED) or len(text) <= len(before):
            return ""
        self._start, self._read = self._read, len(self._tokens)
        return text[len(before) :]

    def rest(self) -> str:
        """What was held back."""
        before, text = self._texts()
        return text[len(before) :]

    def _texts(self) -> tuple[str, str]:
        text = self._vocabulary.text
        return text(self._tokens[self._start : self._read]), text(self._tokens[self._start :])
