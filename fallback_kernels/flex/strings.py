"""TensorFlow's operators on texts: hashes and characters."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from tflite_ort.fallback_kernels.idioms.fingerprint import fingerprint
from tflite_ort.fallback_kernels.idioms.row_splits import check_splits
from tflite_ort.fallback_kernels.registry import Inputs, Outputs, State, flex_kernel
from tflite_ort.schema import KernelError, OperatorView
from tflite_ort.schema.values.flex import node_of

View = OperatorView[Any]

_CONTROLS = 0x20  # characters below it
_CHARACTERS, _SURROGATES = 0x110000, range(0xD800, 0xE000)


@flex_kernel("StringToHashBucketFast")
def string_to_hash_bucket_fast(op: View, inputs: Inputs, state: State) -> Outputs:
    """FarmHash's fingerprints of texts, modulo the number of buckets; int64."""
    (texts,), buckets = inputs, node_of(op)["num_buckets"]
    hashes = [_hash(bytes(text)) % buckets for text in texts.reshape(-1)]
    return (np.array(hashes, np.int64).reshape(texts.shape),)


def _hash(text: bytes) -> int:
    return int(fingerprint(np.frombuffer(text, np.uint8)[None])[0])


@flex_kernel("UnicodeDecodeWithOffsets")
def unicode_decode_with_offsets(op: View, inputs: Inputs, state: State) -> Outputs:
    """(splits, characters int32, first byte of every character int64) of UTF-8 texts."""
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
    """(character, first byte); the character is -1 for a longest piece of an incomplete one."""
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


@flex_kernel("UnicodeEncode")
def unicode_encode(op: View, inputs: Inputs, state: State) -> Outputs:
    """UTF-8 texts, one from a row of characters."""
    handling, (characters, splits) = _Handling(op, "output_encoding"), inputs
    check_splits(splits, characters)
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
    """The attributes of a node for invalid characters and for control characters."""

    def __init__(self, op: View, encoding: str) -> None:
        node = node_of(op)
        if node[encoding] != "UTF-8":
            raise KernelError(f"{encoding} is {node[encoding]!r}, expected UTF-8")
        self._errors, self._replacement = node["errors"], node["replacement_char"]
        self._controls = node.attributes.get("replace_control_characters", False)

    def kept(self, character: int) -> int | None:
        """`character`, its replacement, or None to skip it; -1 is an invalid character."""
        if character >= _CONTROLS or (character >= 0 and not self._controls):
            return character
        if character < 0 and self._errors == "strict":
            raise KernelError("a text or character is not valid")
        return None if self._errors == "ignore" else self._replacement
