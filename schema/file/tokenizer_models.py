"""The models of tf.text's tokenizers: FlatBuffers that a model has as constants of bytes."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from tflite_ort.schema.file.declare import boolean, child, scalar, string, strings, vector, view
from tflite_ort.schema.file.errors import MalformedModel
from tflite_ort.schema.file.fields import FLOAT32, INT8, INT32, UINT8, UINT32, UINT64
from tflite_ort.schema.file.file_bytes import Corrupt, File
from tflite_ort.schema.file.tables import Array, Table
from tflite_ort.schema.file.verify import read_table

T = TypeVar("T", bound=Table)


class FastWordpieceModel(Table):
    """A vocabulary as a trie.

    Args:
        failures: by node, where matching goes on, and which tokens were passed: two numbers of 32
            bits, of which the second is a place and a number in `passed`.
        suffix_root: the node of the suffix indicator.
        suffix_indicator_tokens: what the suffix indicator alone is split into.
        punctuation_root: the node where matching goes on after punctuation.
        end_to_end: texts are split into words, else they are words.
        is_suffix: whether each text of the vocabulary is in the middle of a word.
    """

    trie: Array | None = view(0, UINT32)
    failures: Array | None = view(1, UINT64)
    passed: Array | None = view(2, INT32)
    suffix_root: int = scalar(3, UINT32)
    max_bytes_per_token: int = scalar(4, INT32)
    suffix_indicator: str = string(5)
    unknown: str = string(6)
    unknown_id: int = scalar(7, INT32)
    suffix_indicator_tokens: tuple[int, ...] = vector(8, INT32, default=())
    punctuation_root: int = scalar(9, UINT32)
    end_to_end: bool = boolean(10)
    has_vocabulary: bool = boolean(11)
    vocabulary: tuple[str, ...] = strings(12)
    is_suffix: Array | None = view(13, UINT8)


class FastBertNormalizerModel(Table):
    """What each character becomes: a trie of places in a pool of texts."""

    strips_accents: bool = boolean(0)
    trie: Array | None = view(1, UINT32)
    of_zero: int = scalar(2, INT32)
    pool: Array | None = view(3, UINT8)


class Trie(Table):
    """A trie as an array."""

    nodes: Array | None = view(0, UINT32)


class SentencepieceEncoder(Table):
    """The pieces of a SentencePiece model, with their scores, and what is replaced before."""

    version: int = scalar(0, INT8)
    start_code: int = scalar(1, INT32)
    end_code: int = scalar(2, INT32)
    unknown_code: int = scalar(3, INT32, default=-1)
    unknown_penalty: float = scalar(4, FLOAT32)
    encoding_offset: int = scalar(5, INT32)
    pieces: Trie | None = child(6, Trie)
    scores: Array | None = view(7, FLOAT32)
    remove_extra_whitespaces: bool = boolean(8)
    add_dummy_prefix: bool = boolean(9)
    escape_whitespaces: bool = boolean(10)
    replaced: Trie | None = child(11, Trie)
    replacements: Array | None = view(12, UINT8)


class SentencepieceDecoder(Table):
    """The texts of the pieces of a SentencePiece model."""

    version: int = scalar(0, INT8)
    encoding_offset: int = scalar(1, INT32)
    pieces: tuple[str, ...] = strings(2)
    remove_dummy_prefix: bool = boolean(5)


def read_tokenizer(content: Array, kind: type[T]) -> T:
    """The model of a tokenizer that stands in bytes.

    Raises:
        MalformedModel: it is damaged.
    """
    file = File(np.ascontiguousarray(content))
    try:
        return read_table(file, file.follow(0), kind)
    except Corrupt as corrupt:
        path = f"{kind.__name__}.{corrupt.path}"
        raise MalformedModel(corrupt.reason, path, corrupt.offset) from None
