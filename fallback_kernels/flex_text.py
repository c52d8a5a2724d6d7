"""TensorFlow's operators on text: hashes, characters and words, and ranges of many lengths.

A ragged tensor is its values in a row, and the splits [N + 1] between which each of N rows stands.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.idioms.fingerprint import fingerprint
from tflite_ort.fallback_kernels.registry import Array, Inputs, Outputs, State, custom_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.node_def import node_attributes

View = OperatorView[Any]

# Unicode's property White_Space.
WHITE_SPACE = frozenset(
    {
        *(*range(0x9, 0xE), 0x20, 0x85, 0xA0, 0x1680),
        *(*range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000),
    }
)
_CONTROLS = 0x20  # characters below it
_CHARACTERS, _SURROGATES = 0x110000, range(0xD800, 0xE000)


@custom_kernel("FlexStringToHashBucketFast", versions=(1, 1))
def flexstringtohashbucketfast(op: View, inputs: Inputs, state: State) -> Outputs:
    """FarmHash's fingerprint of each text, modulo the number of buckets; int64."""
    (texts,), buckets = inputs, int(node_attributes(op).get("num_buckets", 0))
    if buckets < 1:
        raise KernelError(f"num_buckets is {buckets}, expected at least 1")
    hashes = [_hash(bytes(text)) % buckets for text in texts.reshape(-1)]
    return (np.array(hashes, np.int64).reshape(texts.shape),)


def _hash(text: bytes) -> int:
    return int(fingerprint(np.frombuffer(text, np.uint8)[None])[0])


@custom_kernel("FlexUnicodeDecodeWithOffsets", versions=(1, 1))
def flexunicodedecodewithoffsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """(splits, characters int32, the byte where each begins int64) of UTF-8 texts."""
    handling = _Handling(op, "input_encoding")
    characters: list[int] = []
    starts: list[int] = []
    splits = [0]
    for text in inputs[0].reshape(-1):
        for character, start in _decoded(bytes(text)):
            kept = handling.kept(character)
            if kept is not None:
                characters.append(kept)
                starts.append(start)
        splits.append(len(characters))
    dtype = op.outputs[0].dtype
    return np.array(splits, dtype), np.array(characters, np.int32), np.array(starts, np.int64)


def _decoded(text: bytes) -> Iterator[tuple[int, int]]:
    """(character, where it begins); -1 for each longest piece of one that is broken off."""
    at = 0
    while at < len(text):
        try:
            good, rest = text[at:].decode(), len(text)
        except UnicodeDecodeError as error:
            good, rest = text[at : at + error.start].decode(), at + error.end
        for character in good:
            yield ord(character), at
            at += len(character.encode())
        if at < rest:
            yield -1, at
        at = rest


@custom_kernel("FlexUnicodeEncode", versions=(1, 1))
def flexunicodeencode(op: View, inputs: Inputs, state: State) -> Outputs:
    """The UTF-8 text of each row of characters."""
    handling, (characters, splits) = _Handling(op, "output_encoding"), inputs
    _check_splits(splits, characters)
    texts = []
    for start, end in pairwise(splits.tolist()):
        row = (handling.kept(_valid(character)) for character in characters[start:end].tolist())
        texts.append("".join(chr(character) for character in row if character is not None))
    result = np.empty(len(texts), np.object_)
    result[:] = [text.encode() for text in texts]
    return (result,)


def _valid(character: int) -> int:
    return character if 0 <= character < _CHARACTERS and character not in _SURROGATES else -1


class _Handling:
    """What the attributes of a node say of characters that are none, and of control characters."""

    def __init__(self, op: View, encoding: str) -> None:
        attributes = node_attributes(op)
        if attributes.get(encoding) != b"UTF-8":
            raise KernelError(f"{encoding} is {attributes.get(encoding)!r}, expected UTF-8")
        self._errors = attributes.get("errors", b"replace")
        self._replacement = int(attributes.get("replacement_char", 0xFFFD))
        self._controls = bool(attributes.get("replace_control_characters", False))

    def kept(self, character: int) -> int | None:
        """`character`, its replacement, or None to leave it out; -1 is no character."""
        if character >= _CONTROLS or (character >= 0 and not self._controls):
            return character
        if character < 0 and self._errors == b"strict":
            raise KernelError("a text or character is not valid")
        return None if self._errors == b"ignore" else self._replacement


@custom_kernel("FlexWhitespaceTokenizeWithOffsets", versions=(1, 1))
def flexwhitespacetokenizewithoffsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """(characters of words, splits of words, first and end of each word in its text, splits of
    texts into words)."""
    characters, splits = inputs
    _check_splits(splits, characters)
    kept, words, starts, ends, texts = [], [0], [], [], [0]
    for start, end in pairwise(splits.tolist()):
        for first, last in _words(characters[start:end].tolist()):
            kept.append(characters[start + first : start + last])
            words.append(words[-1] + last - first)
            starts.append(first)
            ends.append(last)
        texts.append(len(starts))
    outputs = (np.concatenate([np.empty(0, np.int32), *kept]), words, starts, ends, texts)
    return tuple(
        np.asarray(values, tensor.dtype) for values, tensor in zip(outputs, op.outputs, strict=True)
    )


def _words(text: list[int]) -> Iterator[tuple[int, int]]:
    """(first, end) of every run of characters that are no white space."""
    start = None
    for at, character in enumerate([*text, 0x20]):
        if character not in WHITE_SPACE:
            start = at if start is None else start
        elif start is not None:
            yield start, at
            start = None


@custom_kernel("FlexRaggedRange", versions=(1, 1))
def flexraggedrange(op: View, inputs: Inputs, state: State) -> Outputs:
    """(splits, values): the numbers from each start up to its limit; scalars are for all."""
    starts, limits, deltas = np.broadcast_arrays(*inputs)
    if (deltas == 0).any() or starts.ndim > 1:
        raise KernelError(f"ranges of shape {starts.shape} in steps of {deltas.reshape(-1)[:4]}")
    numbers = np.stack([starts, limits, deltas], axis=-1).reshape(-1, 3).tolist()
    rows = [np.arange(*row).astype(starts.dtype) for row in numbers]
    splits = np.cumsum([0, *map(len, rows)])
    values = np.concatenate([np.empty(0, starts.dtype), *rows])
    return splits.astype(op.outputs[0].dtype), values


def _check_splits(splits: Array, values: Array) -> None:
    ordered = splits.size and not np.diff(splits).min(initial=0) < 0
    if not ordered or splits[0] != 0 or splits[-1] != values.size:
        raise KernelError(f"splits {splits[:4]}... of {values.size} values")
