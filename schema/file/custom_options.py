"""The options of a custom operator: usually a flexbuffer map, else bytes of its own format.

`OperatorView.options` of a custom operator is what `custom_options` makes of them.

A flexbuffer has its root at the end. A vector's elements are as wide as the widest of them needs;
maps, vectors, strings and blobs stand before what refers to them, at an offset counted backwards,
with their size just before their first byte. Offsets are followed here, not by the flatbuffers
package, whose reader takes one that leaves the buffer for one from the buffer's other end.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from flatbuffers.flexbuffers import Type

from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.file.errors import BudgetExceeded, ModelError

# None, bool, int, float, str, bytes, list, and dict by str: what `flexbuffer` decodes into.
Value = Any

_SIGNED = {1: "b", 2: "h", 4: "i", 8: "q"}
_UNSIGNED = {1: "B", 2: "H", 4: "I", 8: "Q"}
_FLOAT = {4: "f", 8: "d"}
_FORMATS = {
    Type.INT: _SIGNED,
    Type.UINT: _UNSIGNED,
    Type.FLOAT: _FLOAT,
    Type.BOOL: _UNSIGNED,
    Type.INDIRECT_INT: _SIGNED,
    Type.INDIRECT_UINT: _UNSIGNED,
    Type.INDIRECT_FLOAT: _FLOAT,
}
_INLINE = frozenset({Type.INT, Type.UINT, Type.FLOAT, Type.BOOL})

_DEPTH = 64
# So many values and bytes of text for each byte are not counted. A few bytes can refer to the same
# vector many times.
_PER_BYTE = 16


def custom_options(data: bytes, meter: Meter | None = None) -> Mapping[str, Value] | bytes:
    """Options as a flexbuffer map if they are one, empty ones as an empty map, else as they are.

    Raises:
        BudgetExceeded: they hold more values than the budget that `meter` counts.

    Examples:
        >>> from flatbuffers import flexbuffers
        >>> custom_options(bytes(flexbuffers.Dumps({"axis": 1, "names": ["x", "y"]})))
        {'axis': 1, 'names': ['x', 'y']}
        >>> custom_options(bytes(4))
        b'\\x00\\x00\\x00\\x00'
    """
    if not data:
        return {}
    reader = _Reader(data, meter)
    try:
        return reader.root() if reader.root_type() is Type.MAP else data
    except BudgetExceeded:
        raise
    except ModelError:
        return data


def flexbuffer(data: bytes) -> Value:
    """The value of a flexbuffer; text that is not UTF-8 comes as bytes, as blobs do.

    Raises:
        ModelError: `data` is not a flexbuffer; says where.
    """
    return _Reader(data).root()


class _Reader:
    """Decodes one flexbuffer; every position is checked before it is read."""

    def __init__(self, data: bytes, meter: Meter | None = None) -> None:
        self._data = data
        self._left, self._meter = _PER_BYTE * len(data), meter or Meter()

    def root_type(self) -> Type:
        return _type(self._byte(len(self._data) - 2))

    def root(self) -> Value:
        end = len(self._data)
        width, packed = self._byte(end - 1), self._byte(end - 2)
        if width not in _UNSIGNED or end < 2 + width:
            raise _malformed(f"a root of {width} bytes", end - 1)
        return self._value(end - 2 - width, width, packed, 0)

    def _value(self, at: int, width: int, packed: int, depth: int) -> Value:
        """The value at `at`, in `width` bytes there: itself, or its offset."""
        kind, own_width = _type(packed), 1 << (packed & 3)
        if depth > _DEPTH:
            raise _malformed(f"values nested more than {_DEPTH} deep", at)
        self._spend(1)
        if kind is Type.NULL:
            return None
        if kind in _INLINE:
            return self._number(kind, at, width)
        start = self._target(at, width)
        if kind in _FORMATS:
            return self._number(kind, start, own_width)
        if kind is Type.KEY:
            return self._key(start)
        if kind in (Type.STRING, Type.BLOB):
            content = self._sized_bytes(start, own_width)
            return content if kind is Type.BLOB else _text(content)
        if kind is Type.MAP:
            return self._map(start, own_width, depth)
        if kind is Type.VECTOR:
            return self._vector(start, own_width, depth)
        return self._typed_vector(kind, start, own_width, depth)

    def _number(self, kind: Type, at: int, width: int) -> Value:
        number = self._unpack(_FORMATS[kind], at, width)
        return bool(number) if kind is Type.BOOL else number

    def _map(self, start: int, width: int, depth: int) -> dict[str, Value]:
        """Before a map's values stand the offset of its keys and the width of these."""
        keys_at = self._target(start - 3 * width, width)
        key_width = self._unpack(_UNSIGNED, start - 2 * width, width)
        keys = self._typed_vector(Type.VECTOR_KEY, keys_at, key_width, depth)
        values = self._vector(start, width, depth)
        if len(keys) != len(values):
            raise _malformed(f"a map of {len(keys)} keys and {len(values)} values", start)
        return dict(zip(keys, values, strict=True))

    def _vector(self, start: int, width: int, depth: int) -> list[Value]:
        """A vector's elements, then a byte of type for each."""
        size = self._size(start, width, width + 1)
        types = start + size * width
        return [
            self._value(start + i * width, width, self._byte(types + i), depth + 1)
            for i in range(size)
        ]

    def _typed_vector(self, kind: Type, start: int, width: int, depth: int) -> list[Value]:
        if Type.IsFixedTypedVector(kind):
            element, size = Type.ToFixedTypedVectorElementType(kind)
        else:
            element, size = Type.ToTypedVectorElementType(kind), self._size(start, width, width)
        if element is Type.STRING:  # deprecated: how wide their sizes are is not known
            element = Type.KEY
        packed = Type.Pack(element, 0)
        return [self._value(start + i * width, width, packed, depth + 1) for i in range(size)]

    def _key(self, start: int) -> str:
        end = self._data.find(b"\0", start)
        if end < 0:
            raise _malformed("a key without an end", start)
        self._spend(end - start)
        key = _text(self._data[start:end])
        if isinstance(key, bytes):
            raise _malformed(f"a key that is not text, {key!r}", start)
        return key

    def _sized_bytes(self, start: int, width: int) -> bytes:
        size = self._size(start, width, 1)
        self._spend(size)
        return self._data[start : start + size]

    # Positions -----------------------------------------------------------------------------------

    def _size(self, start: int, width: int, element: int) -> int:
        """How many elements of `element` bytes start there; the number stands just before."""
        size: int = self._unpack(_UNSIGNED, start - width, width)
        if size * element > len(self._data) - start:
            raise _malformed(f"{size} elements that leave the buffer", start)
        return size

    def _target(self, at: int, width: int) -> int:
        target: int = at - self._unpack(_UNSIGNED, at, width)
        if target < 0:
            raise _malformed("an offset that leaves the buffer", at)
        return target

    def _byte(self, at: int) -> int:
        return int(self._unpack(_UNSIGNED, at, 1))

    def _unpack(self, formats: Mapping[int, str], at: int, width: int) -> Any:
        if width not in formats:
            raise _malformed(f"a number of {width} bytes", at)
        if not 0 <= at <= len(self._data) - width:
            raise _malformed("an offset that leaves the buffer", at)
        return struct.unpack_from("<" + formats[width], self._data, at)[0]

    def _spend(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            self._meter.spend("option_values", -self._left, "a custom operator's options")
            self._left = 0


def _type(packed: int) -> Type:
    try:
        return Type(packed >> 2)
    except ValueError as error:
        raise _malformed(f"type {packed >> 2}", 0) from error


def _text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _malformed(what: str, at: int) -> ModelError:
    return ModelError(f"custom options are not a flexbuffer: {what} (byte {at})")
