"""Rows looked up by key: EMBEDDING_LOOKUP, EMBEDDING_LOOKUP_SPARSE, HASHTABLE_LOOKUP; and keys
made, LSH_PROJECTION, SKIP_GRAM."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.fallback_kernels.idioms.fingerprint import fingerprint
from tflite_ort.fallback_kernels.idioms.scattering import combine_at
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, kernel
from tflite_ort.schema import (
    CombinerType,
    EmbeddingLookupSparseOptions,
    KernelError,
    LSHProjectionOptions,
    LSHProjectionType,
    Op,
    OperatorView,
    SkipGramOptions,
)
from tflite_ort.schema.shapes.lookup import combined_shape, lsh_sizes

# LSH_PROJECTION makes so many bytes of seeds and items at once, or as many as a few items have. A
# hash is computed 64 bytes at a time: longer items, or more of them, would take minutes.
_HASHED_BYTES = 1 << 20
_FEWEST = 128
_MOST_ITEM_BYTES = 1 << 20
_MOST_BYTES = 1 << 28


@kernel(Op.EMBEDDING_LOOKUP, versions=(1, 5))
def embedding_lookup(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """Rows of the table; of integer codes for a float output, code * scale (of the row, or of the
    block in it).

    TFLite reads uint8 codes as int8 ones.
    """
    ids, table = inputs
    rows = table[_checked(ids, len(table))]
    if rows.dtype == op.output.dtype:
        return (rows,)
    blocks = op["table"].blocks
    if blocks is not None:
        scale = np.repeat(blocks.scale[ids].astype(np.float32), blocks.size, axis=1)
        return ((rows.astype(np.float32) * scale).astype(op.output.dtype),)
    quantization = op["table"].quantization
    if quantization is None or table.itemsize != 1 or op.output.dtype.kind != "f":
        raise KernelError(f"no {op.output.dtype} rows from a table of {table.dtype}")
    if quantization.zero_point[0]:
        raise KernelError(f"table has zero point {quantization.zero_point[0]}, expected 0")
    scale = np.broadcast_to(quantization.scale, len(table))[ids]
    scale = scale.reshape(-1, *(1,) * (table.ndim - 1))
    return ((rows.view(np.int8).astype(np.float32) * scale).astype(op.output.dtype),)


def _checked(ids: Array, rows: int) -> Array:
    if ((ids < 0) | (ids >= rows)).any():
        raise KernelError(f"index out of bounds: {ids.min()}..{ids.max()} of {rows} rows")
    return ids


@kernel(
    Op.EMBEDDING_LOOKUP_SPARSE,
    versions=(1, 1),
)
def embedding_lookup_sparse(
    op: OperatorView[EmbeddingLookupSparseOptions], inputs: Inputs, state: State
) -> Outputs:
    """Weighted rows summed by bucket (all but the last index), divided by the sum of the weights
    (MEAN) or the root of the sum of their squares (SQRTN); 0 in a bucket without rows.

    A bucket ends where another begins: one that comes again is divided again.
    """
    ids, indices, dense_shape, weights, params = inputs
    shape = combined_shape(dense_shape, params.shape)
    rows = params[_checked(ids, len(params))] * weights.reshape(-1, *(1,) * (params.ndim - 1))
    buckets = _buckets(indices[:, :-1], shape)
    result = np.zeros((int(np.prod(shape[: indices.shape[1] - 1])), *params.shape[1:]), np.float32)
    starts = np.flatnonzero(np.diff(buckets, prepend=-1))
    for first, last in zip(starts, np.append(starts, len(ids))[1:], strict=True):
        bucket, part = buckets[first], slice(first, last)
        combine_at(np.add, result, buckets[part], rows[part])
        result[bucket] /= _divisor(op.options.combiner, weights[part])
    return (result.reshape(shape),)


def _buckets(indices: Array, shape: tuple[int, ...]) -> Array:
    for axis, size in enumerate(shape[: indices.shape[1]]):
        _checked(indices[:, axis], size)
    if not indices.shape[1]:
        return np.zeros(len(indices), np.int64)
    return np.asarray(np.ravel_multi_index(tuple(indices.T), shape[: indices.shape[1]]))


def _divisor(combiner: CombinerType, weights: npt.NDArray[np.float32]) -> np.float32:
    if combiner == CombinerType.SUM:
        return np.float32(1)
    if combiner == CombinerType.MEAN:
        return np.float32(weights.sum(dtype=np.float32))
    return np.float32(np.sqrt((weights * weights).sum(dtype=np.float32)))


@kernel(Op.HASHTABLE_LOOKUP, versions=(1, 1))
def hashtable_lookup(op: OperatorView[Any], inputs: Inputs, state: State) -> Outputs:
    """The rows of `values` at the keys looked up, zeros or an empty string for one that is not
    there; and 1 or 0 for found or not."""
    lookup, keys, values = inputs
    places = _binary_search(lookup, keys)
    found = places >= 0
    rows = values[places]
    rows[~found] = b"" if values.dtype.hasobject else 0
    return rows, found.astype(np.uint8)


def _binary_search(wanted: Array, keys: Array) -> npt.NDArray[np.int64]:
    """Where in `keys` the values are, -1 for those not met. Of equal keys, and where they are not
    ascending, C's bsearch finds the same."""
    low, high = np.zeros(len(wanted), np.int64), np.full(len(wanted), len(keys))
    places = np.full(len(wanted), -1)
    for _ in range(len(keys).bit_length()):
        middle = (low + high) // 2
        step = wanted - keys[np.minimum(middle, len(keys) - 1)]
        open_ = (low < high) & (places < 0)
        places = np.where(open_ & (step == 0), middle, places)
        high = np.where(open_ & (step < 0), middle, high)
        low = np.where(open_ & (step > 0), middle + 1, low)
    return places


@kernel(Op.LSH_PROJECTION, versions=(1, 1))
def lsh_projection(op: OperatorView[LSHProjectionOptions], inputs: Inputs, state: State) -> Outputs:
    """Locality-sensitive hashing: for each seed in hash [H, bits], whether the weighted sum of the
    fingerprints of (seed, item) is positive. DENSE: a bit each; SPARSE: bucket numbers [H]."""
    seeds, items = inputs[0], np.ascontiguousarray(inputs[1])
    weights = inputs[2] if len(inputs) > 2 and inputs[2] is not None else np.ones(len(items))
    item_bytes = items.reshape(len(items), -1).view(np.uint8)
    bits = _are_positive(seeds.reshape(-1), item_bytes, weights)
    if op.options.type == LSHProjectionType.DENSE:
        return (bits.astype(np.int32),)
    hashes, count = lsh_sizes(op.options, seeds.shape)
    numbers = bits.reshape(hashes, count) @ (1 << np.arange(count, dtype=np.int64)[::-1])
    starts = np.arange(hashes, dtype=np.int64) << count % 32  # a machine shifts 32 bits by none
    return ((numbers + starts).astype(np.int32),)


def _are_positive(seeds: Array, items: Array, weights: Array) -> npt.NDArray[np.bool_]:
    """For each seed; summed over the items in order, in float64."""
    if len(seeds) * items.size > _MOST_BYTES:
        raise KernelError(
            f"{len(seeds)} hashes of {items.size} bytes, expected at most {_MOST_BYTES}"
        )
    total = np.zeros(len(seeds))
    at_once = max(_FEWEST, _HASHED_BYTES // max(1, items.shape[1]))
    for place in range(0, len(seeds), at_once):
        some = slice(place, place + at_once)
        rows = max(1, at_once // len(seeds[some]))
        for start in range(0, len(items), rows):
            part = slice(start, start + rows)
            hashes = _hashes(seeds[some], items[part]) * np.asarray(weights[part], np.float64)
            terms = np.concatenate([total[some, np.newaxis], hashes], axis=1)
            total[some] = np.cumsum(terms, axis=1)[:, -1]
    return np.asarray(total > 0)


def _hashes(seeds: Array, items: Array) -> npt.NDArray[np.int64]:
    """The fingerprints of every seed before every item, [seeds, items]."""
    count, length = items.shape
    if length > _MOST_ITEM_BYTES:
        raise KernelError(f"items of {length} bytes, expected at most {_MOST_ITEM_BYTES}")
    strings = np.empty((len(seeds), count, 4 + length), np.uint8)
    strings[:, :, :4] = seeds.astype("<f4").view(np.uint8).reshape(-1, 1, 4)
    strings[:, :, 4:] = items
    return fingerprint(strings.reshape(-1, 4 + length)).view(np.int64).reshape(-1, count)


@kernel(Op.SKIP_GRAM, versions=(1, 1))
def skip_gram(op: OperatorView[SkipGramOptions], inputs: Inputs, state: State) -> Outputs:
    """The runs of `ngram_size` words (or of up to as many) of the first string, between which up
    to `max_skip_size` words are left out: strings [N]."""
    if not inputs[0].size:
        raise KernelError(f"input has shape {inputs[0].shape}, expected a string")
    words, size = _words(inputs[0].reshape(-1)[0]), op.options.ngram_size
    places = range(len(words) if 0 < size <= len(words) else 0)
    grams = [
        b" ".join(words[place] for place in gram)
        for first in places
        for gram in _grams((first,), len(words), op.options)
        if len(gram) == size or op.options.include_all_ngrams
    ]
    return (np.array(grams, np.object_),)


def _words(sentence: bytes) -> list[bytes]:
    """As TFLite splits: a first space swallows the word after it, unless that is the last."""
    *others, last = re.split(rb"[ \t-\r]", sentence[1:])
    if others:
        others[0] = sentence[:1] + others[0]
    else:
        last = sentence[:1] + last
    words = [word for word in others if word and not word[:1].isspace()]
    return [*words, last] if last else words


def _grams(
    gram: tuple[int, ...], count: int, options: SkipGramOptions
) -> Iterator[tuple[int, ...]]:
    """Those that begin with `gram`, the longer ones first."""
    if len(gram) < options.ngram_size:
        for place in range(gram[-1] + 1, min(gram[-1] + options.max_skip_size + 2, count)):
            yield from _grams((*gram, place), count, options)
    yield gram
