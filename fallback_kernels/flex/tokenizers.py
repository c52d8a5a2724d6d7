"""tf.text's operators that split texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels import tokenizers
from tflite_ort.fallback_kernels.flex.rest import refuse_rest
from tflite_ort.fallback_kernels.idioms.regular_expressions import expression_of
from tflite_ort.fallback_kernels.idioms.row_splits import check_splits
from tflite_ort.fallback_kernels.idioms.sentence_fragments import Fragmenter
from tflite_ort.fallback_kernels.idioms.texts import WHITE_SPACE, decoded
from tflite_ort.fallback_kernels.idioms.unicode_properties import script_of
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, flex_kernel
from tflite_ort.fallback_kernels.tokenizers import as_bytes, in_rows, scalar_text, texts_of
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]
Piece = tuple[bytes, int, int]  # with its first byte and its end

_MOST_STEPS = 1e9
# Bytes of a character by the upper half of its first one.
_SIZES = (1,) * 12 + (2, 2, 3, 4)

# Custom operators of TFLite too.
flex_kernel("TFText>WhitespaceTokenizeWithOffsetsV2")(tokenizers.whitespace_tokenize)
flex_kernel("FastWordpieceTokenizeWithOffsets")(tokenizers.fast_wordpiece)
flex_kernel("TFText>FastWordpieceDetokenize")(tokenizers.fast_wordpiece_detokenize)
flex_kernel("TFText>ByteSplitWithOffsets")(tokenizers.byte_split)
flex_kernel("TFText>ByteSplitByOffsets")(tokenizers.byte_split_by_offsets)
flex_kernel("TFText>Utf8Binarize")(tokenizers.utf8_binarize)
flex_kernel("TFText>FastSentencepieceTokenize")(tokenizers.fast_sentencepiece)
flex_kernel("TFText>FastSentencepieceDetokenize")(tokenizers.fast_sentencepiece_detokenize)


# Characters -------------------------------------------------------------------------------------


@flex_kernel("WhitespaceTokenizeWithOffsets")
def whitespace_tokenize_with_offsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """Splits texts of characters into words.

    Returns:
        the characters of words, the splits of words, the first character and the end of every word
        in its text, and the splits of texts into words.
    """
    return _split(op, inputs, _words)


@flex_kernel("UnicodeScriptTokenizeWithOffsets")
def unicode_script_tokenize_with_offsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """As `whitespace_tokenize_with_offsets`; a word ends too where the script changes."""
    keeps_spaces = node_of(op)["keep_whitespace"]
    return _split(op, inputs, lambda text: _of_one_script(text, keeps_spaces))


Words = Iterator[tuple[list[int], int, int]]  # characters, the first place and the end


def _split(op: View, inputs: Inputs, words_of: Callable[[list[int]], Words]) -> Outputs:
    characters, splits = inputs
    check_splits(splits, characters)
    rows = [list(words_of(characters[a:b].tolist())) for a, b in pairwise(splits.tolist())]
    words = [word for row in rows for word in row]
    outputs = (
        [code for word, _, _ in words for code in word],
        np.cumsum([0, *(len(word) for word, _, _ in words)]),
        [start for _, start, _ in words],
        [end for _, _, end in words],
        np.cumsum([0, *map(len, rows)]),
    )
    return tuple(
        np.asarray(values, tensor.dtype) for values, tensor in zip(outputs, op.outputs, strict=True)
    )


def _words(text: list[int]) -> Words:
    """All runs of characters that are not white space."""
    start = None
    for at, character in enumerate([*text, 0x20]):
        if character not in WHITE_SPACE:
            start = at if start is None else start
        elif start is not None:
            yield text[start:at], start, at
            start = None


def _of_one_script(text: list[int], keeps_spaces: bool) -> Words:
    """All runs of characters of one script. Spaces are no part of a run, but do not end one of
    common characters; or they are runs of their own."""
    run: list[int] = []
    start, end, script, was_space = 0, 0, " ", False
    for at, code in enumerate(text):
        space, found = code in WHITE_SPACE, script_of(code)
        if found != script or (keeps_spaces and space != was_space):
            if run:
                yield run, start, end
            run, script = [], found
        if keeps_spaces or not space:
            start = at if not run else start
            run.append(code)
            end = at + 1
        was_space = space
    if run:
        yield run, start, end


# Words ------------------------------------------------------------------------------------------


@flex_kernel("WordpieceTokenizeWithOffsets", state=lambda op: _Vocabulary(op))
def wordpiece_tokenize_with_offsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pieces of words: from the start on the longest that the table of a vocabulary has.

    Returns:
        the pieces, the lengths or the splits of rows, the first byte and the end of each piece.
    """
    table, words = inputs
    state.take(table[()])
    rows = texts_of(words, state.pieces)
    pieces, splits, starts, ends = in_rows(op, rows, 3, 1)
    lengths = node_of(op)["output_row_partition_type"] == "row_lengths"
    return pieces, np.diff(splits) if lengths else splits, starts, ends


class _Vocabulary:
    """A table that has a number for each piece, and what a node says of unknown ones."""

    def __init__(self, op: View) -> None:
        node = node_of(op)
        self._table: dict[Any, int] | None = None
        self._longest = 0
        self._indicator = as_bytes(node["suffix_indicator"])
        self._unknown = as_bytes(node["unknown_token"]) if node["use_unknown_token"] else None
        self._most_bytes, self._most = node["max_bytes_per_word"], node["max_chars_per_token"]
        self._splits_unknown = node["split_unknown_characters"]

    def take(self, table: dict[Any, int] | None) -> None:
        """Look pieces up in a table.

        Raises:
            KernelError: there is nothing in it, or it is of other keys.
        """
        if table is None:
            raise KernelError("nothing has been imported into the table")
        if table is self._table:
            return
        if not all(isinstance(key, bytes) for key in table):
            raise KernelError("the table has no texts for keys")
        self._table, self._longest = table, max(map(len, table), default=0)

    def pieces(self, word: bytes) -> list[Piece]:
        """The pieces of a word; the unknown token, or the word, where it has others."""
        if len(word) > self._most_bytes:
            whole = word if self._unknown is None else self._unknown
            return [(whole, 0, len(whole))]
        if len(word) * min(len(word), self._longest) ** 2 > _MOST_STEPS:
            raise KernelError(f"a word of {len(word)} bytes")
        ends = [*(at for _, at in decoded(word)), len(word)][1:]
        found: list[Piece] = []
        first = start = 0
        while start < len(word):
            last = self._longest_piece(word, start, ends, first)
            if last is None:
                return [(word if self._unknown is None else self._unknown, 0, len(word))]
            end, is_known = last
            piece = word[start:end] if is_known or self._unknown is None else self._unknown
            found.append((self._indicator + piece if start else piece, start, end))
            start = end
            while first < len(ends) and ends[first] <= start:
                first += 1
        return found

    def _longest_piece(
        self, word: bytes, start: int, ends: Sequence[int], first: int
    ) -> tuple[int, bool] | None:
        """The end of the longest known piece from `start` on, whose ends are those from `first` on;
        or of one unknown character."""
        lead = self._indicator if start else b""
        most = self._most if self._most > 0 else len(ends)
        last = min(first + most, len(ends))
        for end in reversed(ends[first:last]):
            if end - start + len(lead) > self._longest:
                continue
            if self._table is not None and self._table.get(lead + word[start:end], -1) != -1:
                return end, True
        return (ends[first], False) if self._splits_unknown else None


@flex_kernel("RegexSplitWithOffsets")
def regex_split_with_offsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """(pieces, first byte, end, splits): what is between the matches of an expression, and those
    matches that another one matches whole."""
    texts, delimiter, kept = inputs
    delimiters = expression_of(scalar_text(delimiter, "delim_regex_pattern"))
    keep = scalar_text(kept, "keep_delim_regex_pattern")
    keeps = expression_of(keep) if keep else None

    def pieces(text: bytes) -> Iterator[Piece]:
        text = text.partition(b"\0")[0]  # as tf.text reads it
        last = 0
        for match in delimiters.matches(text):
            if match.start > last:
                yield text[last : match.start], last, match.start
            if keeps is not None and keeps.is_full(text[match.start : match.stop]):
                yield text[match.start : match.stop], match.start, match.stop
            last = match.end
        if last < len(text):
            yield text[last:], last, len(text)

    return in_rows(op, texts_of(texts, lambda text: list(pieces(text))), 3, 3)


# Labels -----------------------------------------------------------------------------------------


@flex_kernel("SplitMergeTokenizeWithOffsets")
def split_merge_tokenize_with_offsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """(words, splits, first byte, end): a label 0 says that a character begins a word."""
    texts, labels, splits = inputs
    check_splits(splits, labels)
    if len(splits) != texts.size + 1:
        raise KernelError(f"labels of {len(splits) - 1} rows for {texts.size} texts")
    begins = labels == 0
    rows = [begins[a:b] for a, b in pairwise(splits.tolist())]
    return _labelled(op, texts, rows, node_of(op)["force_split_at_break_character"])


@flex_kernel("TokenizerFromLogits")
def tokenizer_from_logits(op: View, inputs: Inputs, state: State) -> Outputs:
    """As `split_merge_tokenize_with_offsets`: a character begins a word if the first of its two
    numbers is the greater one."""
    texts, logits, forces = inputs
    if logits.ndim != 3 or logits.shape[2] != 2 or len(logits) != texts.size or forces.ndim:
        raise KernelError(f"logits {list(logits.shape)} for {texts.size} texts")
    return _labelled(op, texts, logits[..., 0] > logits[..., 1], bool(forces))


def _labelled(op: View, texts: Array, rows: Sequence[Array] | Array, forces: bool) -> Outputs:
    pairs = zip(texts.reshape(-1), rows, strict=True)
    found = [_by_labels(bytes(text), begins.tolist(), forces) for text, begins in pairs]
    return in_rows(op, found, 3, 1)


def _by_labels(text: bytes, begins: Sequence[bool], forces: bool) -> list[Piece]:
    """The words of a text; `forces` lets one begin after white space too."""
    found: list[Piece] = []
    at = count = 0
    after_space = False
    while at < len(text):
        character = text[at : at + _SIZES[text[at] >> 4]]
        end = at + _SIZES[text[at] >> 4]
        if end > len(text):
            raise KernelError(f"a text ends inside a character: {text[-20:]!r}")
        if count == len(begins):
            raise KernelError(f"{len(begins)} labels for a text of more characters")
        space = next(decoded(character))[0] in WHITE_SPACE
        if not space:
            if begins[count] or not found or (after_space and forces):
                found.append((character, at, end))
            else:
                word, start, _ = found[-1]
                found[-1] = word + character, start, end
        at, count, after_space = end, count + 1, space
    return found


@flex_kernel("SentenceFragments")
def sentence_fragments(op: View, inputs: Inputs, state: State) -> Outputs:
    """(first token, end, properties, the mark that ends it) of all fragments of sentences, and how
    many there are in each row of tokens."""
    lengths, starts, ends, words, properties = inputs
    if node_of(op)["input_encoding"].upper() not in ("UTF-8", "UTF8"):
        raise KernelError(f"input_encoding is {node_of(op)['input_encoding']!r}, expected UTF-8")
    sizes = {starts.size, ends.size, words.size, properties.size, int(lengths.sum())}
    if len(sizes) != 1 or (lengths < 0).any() or any(each.ndim != 1 for each in inputs):
        raise KernelError(f"rows of {lengths.sum()} tokens, expected lists of {words.size}")
    bounds = np.cumsum([0, *lengths.tolist()]).tolist()
    texts, bits = texts_of(words, bytes), properties.tolist()
    rows = [Fragmenter(texts[a:b], bits[a:b]).fragments() for a, b in pairwise(bounds)]
    *columns, splits = in_rows(op, rows, 4, 4)
    return (*columns, np.diff(splits))


refuse_rest("tokenizers")
