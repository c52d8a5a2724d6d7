"""tf.text's operators that split texts, by the names that TFLite's custom operators have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from math import prod
from typing import Any, TypeVar

import numpy as np

from tflite_ort.fallback_kernels.idioms.fast_sentencepiece import (
    FastDetokenizer,
    FastSentencepiece,
)
from tflite_ort.fallback_kernels.idioms.fast_wordpiece import FastWordpiece
from tflite_ort.fallback_kernels.idioms.ragged_rows import dense, levels_of, places_of
from tflite_ort.fallback_kernels.idioms.row_splits import check_splits
from tflite_ort.fallback_kernels.idioms.texts import decoded, text_array
from tflite_ort.fallback_kernels.idioms.tries import ROOT, Trie
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, custom_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.file.tokenizer_models import FastBertNormalizerModel, read_tokenizer
from tflite_ort.schema.shapes.tokenizers import custom_partition_kinds
from tflite_ort.schema.values.well_known_options import (
    BertNormalizeOptions,
    BinarizeOptions,
    NgramsOptions,
    map_options,
)

View = OperatorView[Any]
Row = Sequence[tuple[Any, ...]]
T = TypeVar("T")

_MODELS = 4  # that are remembered
_CHANGED, _LENGTH = 0x40000000, 0x3F
_MOST_TEXT, _MOST_CELLS = 1 << 28, 1 << 26


def in_rows(op: View, rows: Sequence[Row], columns: int, splits_at: int) -> Outputs:
    """The columns of all rows one after the other, and as output `splits_at` the rows' bounds."""
    flat = [each for row in rows for each in row]
    outputs: list[Array] = []
    for column, tensor in enumerate(op.outputs[:splits_at] + op.outputs[splits_at + 1 :]):
        values = [each[column] for each in flat]
        outputs.append(
            text_array(values) if tensor.dtype.hasobject else np.array(values, tensor.dtype)
        )
    if len(outputs) != columns:
        raise KernelError(f"{len(op.outputs)} outputs, expected {columns + 1}")
    bounds = np.cumsum([0, *map(len, rows)], dtype=op.outputs[splits_at].dtype)
    return (*outputs[:splits_at], bounds, *outputs[splits_at:])


def scalar_text(array: Array, what: str) -> bytes:
    """The one text that an input is.

    Raises:
        KernelError: it is of another shape.
    """
    if array.ndim:
        raise KernelError(f"{what} has shape {list(array.shape)}, expected a scalar")
    return bytes(array[()])


@custom_kernel("TFText>WhitespaceTokenizeWithOffsetsV2", versions=(1, 1))
def whitespace_tokenize(op: View, inputs: Inputs, state: State) -> Outputs:
    """(words, splits, first byte, end) of texts; a bit for each character says what is space."""
    texts, config = inputs[0], scalar_text(inputs[1], "the configuration")
    spaces = np.unpackbits(np.frombuffer(config, np.uint8), bitorder="little").tobytes()
    return in_rows(op, [list(_words(bytes(text), spaces)) for text in texts], 3, 1)


def _words(text: bytes, spaces: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Words with their first bytes and ends. The end of one is the last byte of the space after it,
    which is a byte of the space where that has several."""
    characters = [*decoded(text), (-1, len(text))]
    start = -1
    for (code, at), (_, after) in pairwise(characters):
        if not 0 <= code < len(spaces) or not spaces[code]:
            start = at if start < 0 else start
        elif start >= 0:
            yield text[start : after - 1], start, after - 1
            start = -1
    if start >= 0:
        yield text[start:], start, len(text)


@lru_cache(_MODELS)
def _wordpiece(content: bytes) -> FastWordpiece:
    return FastWordpiece(np.frombuffer(content, np.uint8))


@custom_kernel("FastWordpieceTokenizeWithOffsets", versions=(1, 1))
def fast_wordpiece(op: View, inputs: Inputs, state: State) -> Outputs:
    """(pieces, their numbers, splits, first byte, end) of texts."""
    texts, model = inputs[0], _wordpiece(inputs[1].tobytes())
    return in_rows(op, [model.tokens(bytes(text)) for text in texts], 4, 2)


@custom_kernel("TFText>FastWordpieceDetokenize", versions=(1, 1))
def fast_wordpiece_detokenize(op: View, inputs: Inputs, state: State) -> Outputs:
    """The text of every row of pieces' numbers."""
    ids, splits, model = inputs[0], inputs[1], _wordpiece(inputs[2].tobytes())
    check_splits(splits, ids)
    return (text_array([model.text(ids[a:b].tolist()) for a, b in pairwise(splits.tolist())]),)


@lru_cache(_MODELS)
def _pieces(content: bytes) -> FastSentencepiece:
    return FastSentencepiece(np.frombuffer(content, np.uint8))


@custom_kernel("TFText>FastSentencepieceTokenize", versions=(1, 1))
def fast_sentencepiece(op: View, inputs: Inputs, state: State) -> Outputs:
    """(the numbers of pieces, splits) of texts. As in tf.text nothing is drawn."""
    content, texts, _, _, *flags = inputs
    if any(flag.size != 1 for flag in flags) or op.outputs[0].dtype.hasobject:
        raise KernelError("add_bos, add_eos or reverse is no scalar, or the pieces are no numbers")
    start, end, reverse = (bool(flag.reshape(-1)[0]) for flag in flags)
    model = _pieces(content.tobytes())
    rows = texts_of(texts, lambda text: model.numbers(text, start=start, end=end, reverse=reverse))
    return in_rows(op, [[(number,) for number in row] for row in rows], 1, 1)


@custom_kernel("TFText>FastSentencepieceDetokenize", versions=(1, 1))
def fast_sentencepiece_detokenize(op: View, inputs: Inputs, state: State) -> Outputs:
    """The text of every row of pieces' numbers."""
    content, numbers, splits = inputs
    check_splits(splits, numbers)
    model = FastDetokenizer(content)
    rows = [model.text(numbers[a:b].tolist()) for a, b in pairwise(splits.tolist())]
    return (text_array(rows),)


class _BertNormalizer:
    """What each character becomes."""

    def __init__(self, content: bytes) -> None:
        model = read_tokenizer(np.frombuffer(content, np.uint8), FastBertNormalizerModel)
        units = np.empty(0, np.uint32) if model.trie is None else model.trie
        self._trie = Trie(units.astype(np.uint32))
        self._pool = b"" if model.pool is None else model.pool.tobytes()
        self._of_zero = model.of_zero

    def text(self, text: bytes) -> tuple[bytes, list[int]]:
        """A text, and for each byte and its end where that was before."""
        pieces, places = list[bytes](), list[int]()
        bounds = [at for _, at in decoded(text)]
        for start, end in pairwise([*bounds, len(text)]):
            character = text[start:end]
            found = self._changed(character)
            pieces.append(character if found is None else found)
            size = len(pieces[-1])
            places += range(start, end) if found is None else [start] * size
        return b"".join(pieces), [*places, len(text)]

    def _changed(self, character: bytes) -> bytes | None:
        value = self._of_zero
        if character != b"\0":
            node = self._trie.after(ROOT, character)
            value = self._trie.value(node) if node >= 0 else 0
        if value < 0 or not value & _CHANGED:
            return None
        start, size = (value & (_CHANGED - 1)) >> 6, value & _LENGTH
        return self._pool[start : start + size] if start + size <= len(self._pool) else b""


@lru_cache(_MODELS)
def _normalizer(content: bytes) -> _BertNormalizer:
    return _BertNormalizer(content)


@custom_kernel("FastBertNormalize", versions=(1, 1))
def fast_bert_normalize(op: View, inputs: Inputs, state: State) -> Outputs:
    """(texts, where each byte and the end was before, splits); without the places no places."""
    texts, model = inputs[0], _normalizer(inputs[1].tobytes())
    found = [model.text(bytes(text)) for text in texts]
    rows = [places for _, places in found]
    if not map_options(op, BertNormalizeOptions).get_offsets:
        rows = [[] for _ in found]
    places = np.array([place for row in rows for place in row], op.outputs[1].dtype)
    splits = np.cumsum([0, *map(len, rows)], dtype=op.outputs[2].dtype)
    return text_array([text for text, _ in found]), places, splits


@custom_kernel("TFText>NgramsStringJoin", versions=(1, 1))
def ngrams(op: View, inputs: Inputs, state: State) -> Outputs:
    """Every so many texts in a row as one, in the last dimension or in the innermost rows of a
    ragged tensor, whose splits follow."""
    (texts, *splits), options = inputs, map_options(op, NgramsOptions)
    width, separator = options.width, as_bytes(options.string_separator)
    if options.axis != -1 or width < 1:
        raise KernelError(f"axis {options.axis} and width {width}, expected -1 and 1 or more")
    if len(op.outputs) != len(inputs) or not texts.ndim:
        raise KernelError(f"{len(op.outputs)} outputs for {len(inputs)} inputs")
    if splits:
        check_splits(splits[-1], texts)
        bounds = list(pairwise(splits[-1].tolist()))
    else:
        last = texts.shape[-1]
        bounds = [(at, at + last) for at in range(0, texts.size, last or 1)]
    flat = [bytes(text) for text in texts.reshape(-1)]
    counts = [max(0, end - start - width + 1) for start, end in bounds]
    size = sum(map(len, flat)) + len(flat) * len(separator)
    if sum(counts) and size * min(width, len(flat)) > _MOST_TEXT:
        raise KernelError(f"{sum(counts)} texts of {width} each")
    joined = [
        separator.join(flat[at : at + width])
        for (start, _), count in zip(bounds, counts, strict=True)
        for at in range(start, start + count)
    ]
    values = text_array(joined)
    if not splits:
        return (values.reshape(*texts.shape[:-1], max(0, texts.shape[-1] - width + 1)),)
    return values, *splits[:-1], np.cumsum([0, *counts], dtype=splits[-1].dtype)


@custom_kernel("TFText>RoundRobinTrim", versions=(1, 1))
def round_robin_trim(op: View, inputs: Inputs, state: State) -> Outputs:
    """Rows of several ragged tensors, so short that those of one number are together not longer
    than a limit: the values of each tensor, then their splits."""
    values, splits, used = _trimmed(inputs)
    rows = [
        np.concatenate(
            [every[:0], *(every[at : at + size] for at, size in zip(starts, sizes, strict=False))]
        )
        for every, starts, sizes in zip(values, splits, used, strict=True)
    ]
    bounds = (np.cumsum([0, *sizes], dtype=splits[0].dtype) for sizes in used)
    return (*rows, *bounds)


@custom_kernel("TFText>RoundRobinGenerateMasks", versions=(1, 1))
def round_robin_masks(op: View, inputs: Inputs, state: State) -> Outputs:
    """As `round_robin_trim`: for each value whether it stays."""
    values, splits, used = _trimmed(inputs)
    return tuple(
        np.arange(len(every)) - np.repeat(starts[:-1], np.diff(starts))
        < np.repeat(sizes, np.diff(starts))
        for every, starts, sizes in zip(values, splits, used, strict=True)
    )


def _trimmed(inputs: Inputs) -> tuple[Sequence[Array], Sequence[Array], list[list[int]]]:
    """The values and splits of each tensor, and how many values of each of its rows stay."""
    limit, *rest = inputs
    values, splits = rest[: len(rest) // 2], rest[len(rest) // 2 :]
    if limit.size != 1 or not values or len(values) != len(splits):
        raise KernelError(f"{len(rest)} tensors and a limit of shape {list(limit.shape)}")
    for each, starts in zip(values, splits, strict=True):
        check_splits(starts, each)
    if len({len(starts) for starts in splits}) != 1:
        raise KernelError(f"{[len(starts) - 1 for starts in splits]} rows")
    most = max(int(limit.reshape(-1)[0]), 0)
    sizes = np.stack([np.diff(starts) for starts in splits], axis=1).tolist()
    rows = [_shares(row, most) for row in sizes]
    return values, splits, [[row[at] for row in rows] for at in range(len(values))]


def _shares(sizes: Sequence[int], left: int) -> list[int]:
    """How much of each row stays: the shortest rows whole, the others alike, and what is left one
    by one from the first row on."""
    used, open_rows = [0] * len(sizes), len(sizes)
    order = sorted(range(len(sizes)), key=sizes.__getitem__)
    for at in order:
        if sizes[at] * open_rows > left:
            break
        used[at], left, open_rows = sizes[at], left - sizes[at], open_rows - 1
    if open_rows:
        share = left // open_rows
        for at in order[-open_rows:]:
            used[at], left = share, left - share
    for at, size in enumerate(sizes):
        if left and used[at] < size:
            used[at], left = used[at] + 1, left - 1
    return used


@custom_kernel("RaggedTensorToTensor", versions=(1, 1))
def ragged_tensor_to_tensor(op: View, inputs: Inputs, state: State) -> Outputs:
    """The values in rows of one length, and the default value beside shorter ones. A level of which
    all rows are empty is one value wide, unlike TensorFlow's."""
    shape, values, default, *partitions = inputs
    kinds = custom_partition_kinds(op)
    if values.ndim != 1 or default.size != 1 or default.dtype != values.dtype:
        raise KernelError(f"values {list(values.shape)} and a default {list(default.shape)}")
    levels, rows = levels_of(kinds, partitions, len(values))
    places, sizes = places_of(levels, rows)
    if kinds[0] == "ROW_SPLITS":
        widths = zip(sizes[1:], partitions, strict=True)
        sizes[1:] = [max(width, 1) if len(splits) > 1 else width for width, splits in widths]
    if shape.ndim:
        told = shape.reshape(-1).tolist()
        if len(told) != len(sizes):
            raise KernelError(f"a shape of {len(told)} sizes, expected {len(sizes)}")
        sizes = [known if size < 0 else size for size, known in zip(told, sizes, strict=True)]
    if prod(sizes) > _MOST_CELLS:
        raise KernelError(f"a tensor of {sizes}")
    return (dense(values, default.reshape(()), places, sizes),)


@custom_kernel("TFText>ByteSplitWithOffsets", versions=(1, 1))
def byte_split(op: View, inputs: Inputs, state: State) -> Outputs:
    """(bytes, splits, first byte, end) of texts."""
    rows = texts_of(inputs[0], lambda text: [(b, at, at + 1) for at, b in enumerate(text)])
    return in_rows(op, rows, 3, 1)


@custom_kernel("TFText>ByteSplitByOffsets", versions=(1, 1))
def byte_split_by_offsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """The pieces of texts between the first bytes and ends of a row each, and the splits."""
    texts, starts, ends, splits = inputs
    check_splits(splits, starts)
    if starts.shape != ends.shape or len(splits) != texts.size + 1:
        raise KernelError(f"{starts.size} starts, {ends.size} ends, {len(splits) - 1} rows")
    pieces: list[bytes] = []
    for text, (first, last) in zip(texts, pairwise(splits.tolist()), strict=True):
        pairs = zip(starts[first:last].tolist(), ends[first:last].tolist(), strict=True)
        for start, end in pairs:
            if not 0 <= start <= end <= len(text):
                raise KernelError(f"bytes {start} to {end} of a text of {len(text)}")
            pieces.append(bytes(text)[start:end])
    return text_array(pieces), splits


@custom_kernel("TFText>Utf8Binarize", versions=(1, 1))
def utf8_binarize(op: View, inputs: Inputs, state: State) -> Outputs:
    """The bits of the first characters of texts, the lowest bit first; zeros after their end."""
    (texts,), options = inputs, map_options(op, BinarizeOptions)
    length, bits = options.word_length, options.bits_per_char
    if not (length >= 0 and 0 <= bits <= 32 and texts.size * length * 32 <= _MOST_CELLS):
        raise KernelError(f"{length} characters of {bits} bits")
    codes = np.zeros((texts.size, length), np.int64)
    for row, text in zip(codes, texts.reshape(-1), strict=True):
        found = [code for code, _ in islice(decoded(bytes(text)), length)]
        row[: len(found)] = [options.replacement_char if code < 0 else code for code in found]
    whole = (codes[..., None] >> np.arange(bits)) & 1
    return (whole.reshape(*texts.shape, length * bits).astype(np.float32),)


def as_bytes(text: str | bytes) -> bytes:
    """The bytes of an attribute."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def texts_of(array: Array, function: Callable[[bytes], T]) -> list[T]:
    """What `function` makes of each text."""
    return [function(bytes(text)) for text in array.reshape(-1)]
