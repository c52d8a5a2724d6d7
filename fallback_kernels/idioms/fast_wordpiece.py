"""tf.text's tokenizer of words in linear time: a trie with links for where a match fails.

A token in the trie is one number: its place in the vocabulary, its bytes without the suffix
indicator, and whether it is in the middle of a word.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from tflite_ort.fallback_kernels.idioms.texts import WHITE_SPACE, decoded
from tflite_ort.fallback_kernels.idioms.tries import ROOT, Trie
from tflite_ort.fallback_kernels.registry import Array
from tflite_ort.schema import KernelError
from tflite_ort.schema.file.tokenizer_models import FastWordpieceModel, read_tokenizer

_SUFFIX, _LENGTH, _ID_SHIFT = 1 << 30, 0xFF, 8
_NOWHERE = 0xFFFFFFFF
_HAN = (
    *((0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)),
    *((0x2B740, 0x2B81F), (0x2B820, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)),
)


class Token(NamedTuple):
    """A piece of a text: its first byte, and the end."""

    piece: bytes
    id: int
    start: int
    end: int


@lru_cache(1 << 12)
def stands_alone(code: int) -> bool:
    """Whether a character is a word of its own: punctuation, signs of ASCII, Chinese characters."""
    if any(low <= code <= high for low, high in _HAN):
        return True
    if code < 0x80:
        return 33 <= code <= 47 or 58 <= code <= 64 or 91 <= code <= 96 or 123 <= code <= 126
    return unicodedata.category(chr(code)).startswith("P")


class FastWordpiece:
    """A vocabulary.

    Raises:
        MalformedModel: the content is no model of such a tokenizer.
    """

    def __init__(self, content: Array) -> None:
        model = read_tokenizer(content, FastWordpieceModel)
        self._model = model
        self._trie = Trie(_numbers(model.trie, np.uint32))
        failures = _numbers(model.failures, np.uint64).view("<u4").reshape(-1, 2)
        self._links, self._passed = failures[:, 0], failures[:, 1]
        self._pool = _numbers(model.passed, np.int32)
        self._indicator, self._unknown = model.suffix_indicator.encode(), model.unknown.encode()

    def tokens(self, text: bytes) -> list[Token]:
        """The pieces of a text, or of a word."""
        return (
            _Walk(self, text).of_text() if self._model.end_to_end else _Walk(self, text).of_word()
        )

    def text(self, ids: list[int]) -> bytes:
        """The words that tokens are, with spaces between.

        Raises:
            KernelError: there is no such token, or the model has no vocabulary.
        """
        model, vocabulary = self._model, self._model.vocabulary
        if not model.has_vocabulary or model.is_suffix is None:
            raise KernelError("the model has no vocabulary: its support_detokenization is not set")
        words: list[list[str]] = []
        for id in ids:
            if not 0 <= id < min(len(vocabulary), model.is_suffix.size):
                raise KernelError(f"token {id} of {len(vocabulary)}")
            is_suffix = bool(model.is_suffix[id])
            if not words or not is_suffix:
                words.append([model.suffix_indicator] if is_suffix else [])
            words[-1].append(vocabulary[id])
        return " ".join("".join(word) for word in words).encode()


class _Walk:
    """One text on its way through the trie of a model.

    Args:
        found: the tokens so far; of those before `done` the words are over.
        word: the first byte of the word.
        at: how many bytes of the word the tokens have.
    """

    def __init__(self, owner: FastWordpiece, text: bytes) -> None:
        self._owner, self._text = owner, text
        self.found: list[Token] = []
        self.done = self.word = self.at = 0
        self.node = ROOT
        # A link leads to fewer bytes than there were before.
        self._most_links = (len(text) + 1) * (len(owner._indicator) + 2)

    def of_word(self) -> list[Token]:
        """The tokens of a text that is a word."""
        size, trie = len(self._text), self._owner._trie
        if not size:
            return []
        if size > self._owner._model.max_bytes_per_token:
            self._unknown(size)
            return self.found
        for byte in self._text:
            while (node := trie.child(self.node, byte)) < 0:
                if not self._fail():
                    self._unknown(size)
                    return self.found
            self.node = node
        self._close(size)
        return self.found

    def of_text(self) -> list[Token]:
        """The tokens of a text of words."""
        characters = list(decoded(self._text))
        codes = [code for code, _ in characters]
        starts = [*(start for _, start in characters), len(self._text)]
        place, last, previous, current = 0, -1, -1, -1
        while place < len(codes):
            if last == place:
                raise KernelError("the model of the tokenizer does not get on with the text")
            last, self.word, self.at, self.node = place, starts[place], 0, ROOT
            while place < len(codes):
                previous, current = current, codes[place]
                if not self._takes(starts[place], starts[place + 1]):
                    break
                place += 1
            else:
                self._close(len(self._text) - self.word)
                break
            space = current in WHITE_SPACE
            alone = stands_alone(current) or (place and stands_alone(previous))
            if space or alone:
                size = starts[place] - self.word
                self._close(size)
                if space:
                    place += 1
                elif not size:
                    place += 1
                    self._unknown(starts[place] - self.word)
                continue
            place += 1
            end = place
            while place < len(codes) and codes[place] not in WHITE_SPACE:
                if stands_alone(codes[place]):
                    break
                place = end = place + 1
            else:
                place += 1  # the space
            self._unknown(starts[end] - self.word)
        return self.found

    def _takes(self, start: int, end: int) -> bool:
        """Go on with a character, if the word may have it and the trie does."""
        if end - self.word > self._owner._model.max_bytes_per_token:
            return False
        character, trie = self._text[start:end], self._owner._trie
        while (node := trie.after(self.node, character)) < 0:
            if not self._fail():
                return False
        self.node = node
        return True

    def _fail(self) -> bool:
        """Follow the link of a node, and take the tokens that were passed; False where there is
        none."""
        owner, node = self._owner, self.node
        value = owner._trie.value(node)
        if node >= owner._links.size or self._most_links == 0:
            raise KernelError("a link in the model of the tokenizer leads nowhere")
        self._most_links -= 1
        link = int(owner._links[node])
        if value >= 0:
            self._append(value)
        elif link == _NOWHERE:
            return False
        else:
            passed = int(owner._passed[node])
            first = passed >> 8
            for token in owner._pool[first : first + (passed & 0xFF) + 1].tolist():
                self._append(token)
        self.node = link
        return True

    def _append(self, token: int) -> None:
        owner, size = self._owner, (token & _LENGTH) + 1
        id = (token & (_SUFFIX - 1)) >> _ID_SHIFT
        if not self.at and token & _SUFFIX:  # the word begins with the suffix indicator
            size += len(owner._indicator)
        start = self.word + self.at
        end = start + size
        if end > len(self._text) or len(self.found) > len(self._text):
            raise KernelError("the tokens of the model are longer than the text")
        piece = owner._unknown if id == owner._model.unknown_id else self._text[start:end]
        piece = owner._indicator + piece if self.at else piece
        self.found.append(Token(piece, id, start, end))
        self.at += size

    def _close(self, size: int) -> None:
        """The end of a word of `size` bytes: take the tokens that are left in the trie."""
        model = self._owner._model
        if self.node == ROOT:
            return
        if self.node == model.suffix_root and len(self.found) == self.done:
            tokens = model.suffix_indicator_tokens
            if len(tokens) == 1 and (tokens[0] & (_SUFFIX - 1)) >> _ID_SHIFT == model.unknown_id:
                self._unknown(size)
            else:
                for token in tokens:
                    self._append(token)
                self.done = len(self.found)
            return
        while self.node not in (model.suffix_root, model.punctuation_root):
            if not self._fail():
                self._unknown(size)
                return
        self.done = len(self.found)

    def _unknown(self, size: int) -> None:
        """The unknown token in the place of those of the word."""
        model = self._owner._model
        unknown = Token(self._owner._unknown, model.unknown_id, self.word, self.word + size)
        self.found[self.done :] = [unknown]
        self.done += 1


def _numbers(content: Array | None, dtype: type[np.generic]) -> Array:
    return np.empty(0, dtype) if content is None else content.astype(dtype)
