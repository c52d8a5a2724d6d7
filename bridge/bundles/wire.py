"""Messages of protocol buffers as they are stored, read without their declarations."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tflite_ort.schema import MalformedBundle

_T = TypeVar("_T")
Field = int | bytes

_VARINT, _BYTES = 0, 2
_FIXED = {1: 8, 5: 4}
_LONGEST_VARINT = 10
_SIGN, _BITS = 1 << 63, 1 << 64


class _Fixed(bytes):
    """The 4 or 8 bytes of a number."""


class Message:
    """The fields of a message by number; of one that stands several times the last counts.

    Args:
        content: its bytes.

    Raises:
        MalformedBundle: they are no message.
    """

    def __init__(self, content: bytes) -> None:
        self._fields: dict[int, list[Field]] = {}
        at = 0
        while at < len(content):
            key, at = _varint(content, at)
            number, kind = key >> 3, key & 7
            if number == 0:
                raise MalformedBundle("a message has a field 0", at)
            value, at = _value(content, at, kind)
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
            raise MalformedBundle(f"field {number} of a message is no number")
        return value - _BITS if value >= _SIGN else value

    def float(self, number: int) -> float:
        """A number of 32 bits; 0 where there is none."""
        value = self._last(number, _Fixed(4))
        if not isinstance(value, _Fixed) or len(value) != 4:
            raise MalformedBundle(f"field {number} of a message is no 32-bit number")
        return float(struct.unpack("<f", value)[0])

    def text(self, number: int) -> str:
        """A text; empty where there is none."""
        return _text(self._last(number, b""), number)

    def texts(self, number: int) -> tuple[str, ...]:
        """The texts of a repeated field."""
        return tuple(_text(value, number) for value in self._fields.get(number, ()))

    def integers(self, number: int) -> tuple[int, ...]:
        """The whole numbers of a repeated field, packed or not."""
        return tuple(self._integers(number))

    def floats(self, number: int) -> npt.NDArray[np.float32]:
        """The 32-bit numbers of a repeated field, packed or not."""
        values = self._fields.get(number, ())
        packed = [v if isinstance(v, _Fixed) and len(v) == 4 else _bytes(v, number) for v in values]
        if any(len(value) % 4 for value in packed):
            raise MalformedBundle(f"field {number} of a message has no 32-bit numbers")
        return np.frombuffer(b"".join(packed), "<f4").astype(np.float32)

    def message(self, number: int) -> Message:
        """A message; one without fields where there is none."""
        return Message(_bytes(self._last(number, b""), number))

    def messages(self, number: int, read: Callable[[Message], _T]) -> tuple[_T, ...]:
        """What `read` makes of each message of a repeated field."""
        return tuple(read(Message(_bytes(v, number))) for v in self._fields.get(number, ()))

    def _integers(self, number: int) -> Iterator[int]:
        for value in self._fields.get(number, ()):
            if isinstance(value, int):
                yield value
                continue
            packed, at = _bytes(value, number), 0
            while at < len(packed):
                each, at = _varint(packed, at)
                yield each

    def _last(self, number: int, default: Field) -> Field:
        return self._fields.get(number, [default])[-1]


def _value(content: bytes, at: int, kind: int) -> tuple[Field, int]:
    if kind == _VARINT:
        return _varint(content, at)
    if kind == _BYTES:
        size, at = _varint(content, at)
    elif kind in _FIXED:
        size = _FIXED[kind]
    else:
        raise MalformedBundle(f"a message has a field of type {kind}", at)
    if size > len(content) - at:
        raise MalformedBundle("a field leaves its message", at)
    value = content[at : at + size]
    return _Fixed(value) if kind in _FIXED else value, at + size


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = 0
    for position in range(_LONGEST_VARINT):
        if at + position >= len(content):
            break
        byte = content[at + position]
        value |= (byte & 127) << (7 * position)
        if byte < 128:
            return value % _BITS, at + position + 1
    raise MalformedBundle("a number of a message does not end", at)


def _bytes(value: Field, number: int) -> bytes:
    if not isinstance(value, bytes) or isinstance(value, _Fixed):
        raise MalformedBundle(f"field {number} of a message is one number")
    return value


def _text(value: Field, number: int) -> str:
    try:
        return _bytes(value, number).decode()
    except UnicodeDecodeError as error:
        raise MalformedBundle(f"field {number} of a message is no UTF-8: {error}") from error
