"""The buffer of a string tensor: a count, offsets, bytes."""

from __future__ import annotations

import math

import numpy as np

from tflite_ort.schema.file.errors import MalformedModel
from tflite_ort.schema.file.tables import Array


def decoded(data: Array, shape: tuple[int, ...]) -> Array:
    """The bytes objects in `data` (uint8: int32 count N, N + 1 int32 offsets from its start, text)
    as an object array of `shape`.

    Raises:
        MalformedModel: the count is not the shape's, or an offset points outside.
    """
    count, offsets = math.prod(shape), string_ends(data, shape)
    strings = np.empty(count, np.object_)
    for i in range(count):
        strings[i] = data[offsets[i] : offsets[i + 1]].tobytes()
    return strings.reshape(shape)


def string_ends(data: Array, shape: tuple[int, ...]) -> list[int]:
    """Where in `data` the texts begin, and the last one ends.

    Raises:
        MalformedModel: the count is not the shape's, or an offset points outside.
    """
    count = math.prod(shape)
    header = 4 * (count + 2)
    if data.nbytes < header or int(data[:4].view("<i4")[0]) != count:
        raise MalformedModel(f"a string tensor of shape {shape} does not have {count} strings")
    offsets: list[int] = data[4:header].view("<i4").tolist()
    if offsets != sorted(offsets) or offsets[0] < header or offsets[-1] > data.nbytes:
        raise MalformedModel(f"string offsets {offsets[:8]} leave their buffer")
    return offsets


def encoded(strings: Array) -> bytes:
    """The buffer of an object array of bytes."""
    flat = [bytes(string) for string in strings.reshape(-1)]
    header = 4 * (len(flat) + 2)
    ends = np.cumsum([0, *map(len, flat)]) + header
    return np.array([len(flat), *ends], "<i4").tobytes() + b"".join(flat)
