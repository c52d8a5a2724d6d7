"""Writes a :class:`Model` as a .tflite file: what read_model reads, field for field."""

from __future__ import annotations

import struct
from typing import Any, cast

import flatbuffers
import numpy as np

from tflite_ort.schema.file.fields import (
    Child,
    Children,
    Field,
    Number,
    OneOf,
    OperatorCodeNumber,
    Scalar,
    String,
    Strings,
    Vector,
    View,
)
from tflite_ort.schema.file.model import Model
from tflite_ort.schema.file.plain_files import IDENTIFIER
from tflite_ort.schema.file.tables import Array, Table, fields_of

# A FlatBuffer ends at 2 GiB; this leaves room for everything that is not data.
INLINE_LIMIT = 2_000_000_000
# The largest code that fits the one-byte field that older readers look at.
_NARROW_LIMIT = 127
_ALIGNMENT = 16

_PREPEND = {
    "?": "PrependBoolSlot",
    "b": "PrependInt8Slot",
    "B": "PrependUint8Slot",
    "H": "PrependUint16Slot",
    "i": "PrependInt32Slot",
    "I": "PrependUint32Slot",
    "q": "PrependInt64Slot",
    "Q": "PrependUint64Slot",
    "f": "PrependFloat32Slot",
}


def write_model(model: Model, *, inline_limit: int = INLINE_LIMIT) -> bytes:
    """The bytes of a .tflite file.

    Args:
        inline_limit: when buffers and custom options hold more bytes than this together, they
            follow the FlatBuffer and are referred to by position, as in files beyond 2 GB.
    """
    size = _data_size(model)
    writer = _Writer(size, inline=size <= inline_limit)
    return writer.finish(writer.table(model), IDENTIFIER)


def write_table(root: Table, identifier: bytes) -> bytes:
    """The bytes of a FlatBuffer of another kind."""
    writer = _Writer(0, inline=True)
    return writer.finish(writer.table(root), identifier)


def _data_size(model: Model) -> int:
    arrays = [buffer.data for buffer in model.buffers]
    arrays += [op.custom_options for graph in model.subgraphs for op in graph.operators]
    return sum(array.nbytes for array in arrays if array is not None)


class _Writer:
    """A FlatBuffer under construction, children before the tables that refer to them."""

    def __init__(self, data_size: int, inline: bool) -> None:
        self.inline = inline
        self.builder = flatbuffers.Builder(data_size + 4096 if inline else 4096)
        self.outside = _Outside()

    def finish(self, root: int, identifier: bytes) -> bytes:
        self.builder.Finish(root, file_identifier=identifier)
        content = self.builder.Output()
        return bytes(content) if self.inline else self.outside.join(content)

    def table(self, value: Table) -> int:
        items = [(field, getattr(value, name)) for name, field in fields_of(type(value)).items()]
        references = [self._reference(field, item) for field, item in items]
        self.builder.StartObject(_slot_count(type(value)))
        for (field, item), reference in zip(items, references, strict=True):
            self._slots(field, item, reference)
        return cast(int, self.builder.EndObject())

    def _reference(self, field: Field, item: Any) -> int:
        """Writes what a field refers to; 0 when it refers to nothing."""
        if item is None:
            return 0
        match field:
            case String() if item or item != field.default or field.keep_empty:
                return cast(int, self.builder.CreateString(item))
            case Vector() if item or item != field.default or field.keep_empty:
                numbers = [field.none_as if number is None else number for number in item]
                return self._numbers(np.array(numbers, field.number.dtype))
            case Strings() if item:
                return self._vector([self.builder.CreateString(text) for text in item])
            case Children() if item or field.keep_empty:
                return self._vector([self.table(table) for table in item])
            case View() if not self._stands_outside(field, item):
                return self._numbers(_checked(item, field.number), field.align)
            case Child() | OneOf():
                return self.table(item)
        return 0

    def _stands_outside(self, field: View, item: Array) -> bool:
        return field.outside is not None and item.size > 0 and not self.inline

    def _numbers(self, numbers: Array, align: int = 1) -> int:
        self.builder.Prep(align, numbers.nbytes)
        return cast(int, self.builder.CreateNumpyVector(numbers))

    def _vector(self, positions: list[int]) -> int:
        self.builder.StartVector(4, len(positions), 4)
        for position in reversed(positions):
            self.builder.PrependUOffsetTRelative(position)
        return cast(int, self.builder.EndVector())

    def _slots(self, field: Field, item: Any, reference: int) -> None:
        """Sets the slots of one field in the table that is open."""
        match field:
            case Scalar():
                self._number(field.number, field.slot, item, field.default)
            case OperatorCodeNumber():
                self.builder.PrependInt8Slot(field.narrow_slot, min(item, _NARROW_LIMIT), 0)
                self.builder.PrependInt32Slot(field.slot, item, 0)
            case OneOf() if item is not None:
                slot, number = _member(field, item)
                self.builder.PrependUint8Slot(slot - 1, number, 0)
                self.builder.PrependUOffsetTRelativeSlot(slot, reference, 0)
            case View() if item is not None and self._stands_outside(field, item):
                self._refer_outside(cast("tuple[int, int]", field.outside), item)
            case _ if reference:
                self.builder.PrependUOffsetTRelativeSlot(field.slot, reference, 0)

    def _number(self, number: Number, slot: int, value: Any, default: Any) -> None:
        getattr(self.builder, _PREPEND[number.code])(slot, value, default)

    def _refer_outside(self, slots: tuple[int, int], data: Array) -> None:
        start, size = slots
        self.builder.PrependUint64Slot(size, data.nbytes, 0)
        self.builder.PrependUint64Slot(start, 1, 0)  # a placeholder: see _Outside.join
        self.outside.add(self.builder.Offset(), data)


class _Outside:
    """Data that follows the FlatBuffer."""

    def __init__(self) -> None:
        self._arrays: list[Array] = []
        self._starts: dict[tuple[int, int], int] = {}
        self._size = 0
        self._references: list[tuple[int, int]] = []

    def add(self, reference: int, data: Array) -> None:
        """Adds `data` for the position field `reference` bytes before the FlatBuffer's end."""
        data = np.ascontiguousarray(data)
        key = (data.ctypes.data, data.nbytes)
        if key not in self._starts:
            self._starts[key] = self._size
            self._arrays.append(data)
            self._size += data.nbytes + -data.nbytes % _ALIGNMENT
        self._references.append((reference, self._starts[key]))

    def join(self, flatbuffer: bytearray) -> bytes:
        """The FlatBuffer with its positions filled in, the data, and 16 bytes to read beyond it."""
        head = bytearray(flatbuffer)
        end = len(head)
        base = end + -end % _ALIGNMENT
        for reference, start in self._references:
            struct.pack_into("<Q", head, end - reference, base + start)
        parts: list[Any] = [head, bytes(base - end)]
        for data in self._arrays:
            parts += [data.data, bytes(-data.nbytes % _ALIGNMENT)]
        return b"".join([*parts, bytes(_ALIGNMENT)])


def _slot_count(cls: type[Table]) -> int:
    return 1 + max(
        (slot for field in fields_of(cls).values() for slot in _slots_of(field)), default=-1
    )


def _slots_of(field: Field) -> tuple[int, ...]:
    match field:
        case OneOf():
            return tuple(slot for slot, _ in field.choices)
        case View(outside=(start, size)):
            return start, size
    return (field.slot,)


def _member(field: OneOf, item: Table) -> tuple[int, int]:
    """The slot of the value and the member's number."""
    for slot, union in field.choices:
        if type(item) in union.members:
            return slot, union.members.index(type(item)) + 1
    names = " or ".join(union.name for _, union in field.choices)
    raise ValueError(f"{type(item).__name__} is no member of {names}")


def _checked(array: Array, number: Number) -> Array:
    if array.dtype != number.dtype or array.ndim != 1:
        raise ValueError(f"expected {number.dtype} [n], got {array.dtype} {list(array.shape)}")
    return np.ascontiguousarray(array)
