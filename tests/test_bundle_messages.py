"""Protocol buffers of bundles: a field of a type that it is not declared with is refused."""

from __future__ import annotations

import struct
from collections.abc import Callable

import numpy as np
import pytest

from tests.generation.models import field
from tflite_ort import MalformedBundle
from tflite_ort.schema.file.wire import Message

NUMBER = 3
_DOUBLE = bytes([NUMBER << 3 | 1]) + struct.pack("<d", 1.5)
_FLOAT = field(NUMBER, 1.5)
_INTEGER = field(NUMBER, 7)
_BYTES = field(NUMBER, b"\x01\x02\x03\x04")
_READERS: dict[str, tuple[Callable[[Message], object], set[bytes]]] = {
    "integer": (lambda m: m.integer(NUMBER), {_INTEGER}),
    "integers": (lambda m: m.integers(NUMBER), {_INTEGER, _BYTES}),
    "float": (lambda m: m.float(NUMBER), {_FLOAT}),
    "floats": (lambda m: m.floats(NUMBER), {_FLOAT, _BYTES}),
    "text": (lambda m: m.text(NUMBER), {_BYTES}),
    "texts": (lambda m: m.texts(NUMBER), {_BYTES}),
}


@pytest.mark.parametrize("reader", sorted(_READERS))
@pytest.mark.parametrize("content", [_DOUBLE, _FLOAT, _INTEGER, _BYTES], ids=bytes.hex)
def test_a_field_of_another_type_is_refused(reader: str, content: bytes) -> None:
    read, taken = _READERS[reader]
    if content in taken:
        read(Message(content))
        return
    with pytest.raises(MalformedBundle, match=f"field {NUMBER} of a message"):
        read(Message(content))


def test_numbers_packed_and_not() -> None:
    assert Message(field(NUMBER, b"\x05\x80\x01") + _INTEGER).integers(NUMBER) == (5, 128, 7)
    packed = field(NUMBER, np.array([2, 3], "<f4").tobytes())
    assert Message(packed + _FLOAT).floats(NUMBER).tolist() == [2.0, 3.0, 1.5]
