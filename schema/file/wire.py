"""Messages of protocol buffers as they are stored, read without their declarations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.errors import MalformedBundle, ModelError

_T = TypeVar("_T")
Field = int | bytes
# Makes the error of a reason.
Malformed = Callable[[str], ModelError]

_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
_LONGEST_VARINT = 10
_SIGN, _BITS = 1 << 63, 1 << 64


def varint(value: int) -> bytes:
    """A whole number of any size from 0 on, seven bits in a byte."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(number: int, value: int | bytes) -> bytes:
    """A field of a message: a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | _BYTES) + varint(len(value)) + value


class _Fixed(bytes):
    """The 4 or 8 bytes of a number."""


class Message:
    """The fields of a message by number; of one that stands several times the last counts.

    Args:
        content: its bytes.
        malformed: makes the error where they are no message, or not the one that is read.
    """

    def __init__(self, content: bytes, malformed: Malformed = MalformedBundle) -> None:
        self._fields: dict[int, list[Field]] = {}
        self._malformed = malformed
        at = 0
        while at < len(content):
            key, at = self._varint(content, at)
            number, kind = key >> 3, key & 7
            if number == 0:
                raise malformed(f"a message has a field 0 (byte {at})")
            value, at = self._value(content, at, kind)
            self._fields.setdefault(number, []).append(value)

    def __contains__(self, number: int) -> bool:
        return number in self._fields

    @property
    def numbers(self) -> tuple[int, ...]:
        """The fields that it has."""
        return tuple(self._fields)

    def integer(self, number: int) -> int:
        """A whole number; 0 where there is none."""
        value = self._last(number, 0)
        if not isinstance(value, int):
            raise self._malformed(f"field {number} of a message is no number")
        return _signed(value)

    def float(self, number: int) -> float:
        """A number of 32 bits; 0 where there is none."""
        return float(struct.unpack("<f", self._word(number))[0])

    def fixed(self, number: int) -> int:
        """A whole number of 32 bits without a sign; 0 where there is none."""
        return int.from_bytes(self._word(number), "little")

    def _word(self, number: int) -> _Fixed:
        value = self._last(number, _Fixed(4))
        if not isinstance(value, _Fixed) or len(value) != 4:
            raise self._malformed(f"field {number} of a message is no 32-bit number")
        return value

    def text(self, number: int) -> str:
        """A text; empty where there is none."""
        return self._text(self._last(number, b""), number)

    def texts(self, number: int) -> tuple[str, ...]:
        """The texts of a repeated field."""
        return tuple(self._text(value, number) for value in self._fields.get(number, ()))

    def blob(self, number: int) -> bytes:
        """Bytes; none where there is no such field."""
        return self._bytes(self._last(number, b""), number)

    def blobs(self, number: int) -> tuple[bytes, ...]:
        """The bytes of each of a repeated field."""
        return tuple(self._bytes(value, number) for value in self._fields.get(number, ()))

    def integers(self, number: int) -> tuple[int, ...]:
        """The whole numbers of a repeated field, packed or not."""
        return tuple(self._integers(number))

    def floats(self, number: int) -> npt.NDArray[np.float32]:
        """The 32-bit numbers of a repeated field, packed or not."""
        return self._numbers(number, np.dtype("<f4")).astype(np.float32)

    def doubles(self, number: int) -> npt.NDArray[np.float64]:
        """The 64-bit numbers of a repeated field, packed or not."""
        return self._numbers(number, np.dtype("<f8")).astype(np.float64)

    def _numbers(self, number: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        size = dtype.itemsize
        packed = [
            value
            if isinstance(value, _Fixed) and len(value) == size
            else self._bytes(value, number)
            for value in self._fields.get(number, ())
        ]
        if any(len(value) % size for value in packed):
            raise self._malformed(f"field {number} of a message has no {8 * size}-bit numbers")
        return np.frombuffer(b"".join(packed), dtype)

    def message(self, number: int) -> Message:
        """A message; one without fields where there is none."""
        return Message(self.blob(number), self._malformed)

    def messages(self, number: int, read: Callable[[Message], _T]) -> tuple[_T, ...]:
        """What `read` makes of each message of a repeated field."""
        return tuple(read(Message(each, self._malformed)) for each in self.blobs(number))

    def _integers(self, number: int) -> Iterator[int]:
        for value in self._fields.get(number, ()):
            if isinstance(value, int):
                yield value
                continue
            packed, at = self._bytes(value, number), 0
            while at < len(packed):
                each, at = self._varint(packed, at)
                yield each

    def _last(self, number: int, default: Field) -> Field:
        return self._fields.get(number, [default])[-1]

    def _value(self, content: bytes, at: int, kind: int) -> tuple[Field, int]:
        if kind == _VARINT:
            return self._varint(content, at)
        if kind == _BYTES:
            size, at = self._varint(content, at)
        elif kind in _FIXED:
            size = _FIXED[kind]
        else:
            raise self._malformed(f"a message has a field of type {kind} (byte {at})")
        if size > len(content) - at:
            raise self._malformed(f"a field leaves its message (byte {at})")
        value = content[at : at + size]
        return _Fixed(value) if kind in _FIXED else value, at + size

    def _varint(self, content: bytes, at: int) -> tuple[int, int]:
        value = 0
        for position in range(_LONGEST_VARINT):
            if at + position >= len(content):
                break
            byte = content[at + position]
            value |= (byte & 127) << (7 * position)
            if byte < 128:
                return value % _BITS, at + position + 1
        raise self._malformed(f"a number of a message does not end (byte {at})")

    def _bytes(self, value: Field, number: int) -> bytes:
        if not isinstance(value, bytes) or isinstance(value, _Fixed):
            raise self._malformed(f"field {number} of a message is one number")
        return value

    def _text(self, value: Field, number: int) -> str:
        try:
            return self._bytes(value, number).decode()
        except UnicodeDecodeError as error:
            raise self._malformed(f"field {number} of a message is no UTF-8: {error}") from error


def _signed(value: int) -> int:
    return value - _BITS if value >= _SIGN else value
