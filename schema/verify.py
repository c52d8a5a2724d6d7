"""The verified walk over a file: makes functions that read a table from its declared fields."""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar, cast

from tflite_ort.schema.declare import (
    Array,
    Child,
    Children,
    Field,
    Local,
    OneOf,
    OperatorCodeNumber,
    Scalar,
    String,
    Table,
    Union,
    Vector,
    View,
)

MAX_TABLES = 1_000_000
# Structures may overlap (identical ones are stored once), yet not grow beyond this many times the
# file: a crafted file could otherwise unfold into any amount of memory.
_UNFOLDED = 2
_SLACK = 1 << 16
_MOST_SLOTS = 32

T = TypeVar("T", bound=Table)
Offsets = tuple[int, ...]


class Corrupt(Exception):
    """Something in the file cannot be true; carries the path as it unwinds."""

    def __init__(self, reason: str, offset: int | None = None, table: Table | None = None) -> None:
        super().__init__(reason)
        self.reason, self.offset, self.table = reason, offset, table
        self.steps: list[str] = []

    @property
    def path(self) -> str:
        return "".join(reversed(self.steps)).removeprefix(".")


class File:
    """The bytes of a file with what has been read of it.

    Args:
        data: the bytes, for struct.
        content: the same bytes as a read-only uint8 array, for views.
    """

    def __init__(self, data: memoryview, content: Array) -> None:
        self.data, self.content, self.size = data, content, len(data)
        self.known: dict[tuple[int, object], Any] = {}
        self.positions: dict[int, int] = {}
        self.vtables: dict[int, Offsets] = {}
        self.unknown_operators: list[int] = []
        self._allowance = _UNFOLDED * self.size + _SLACK
        self._tables = 0

    def check_span(self, at: int, length: int, align: int) -> None:
        if at + length > self.size or at < 0:
            raise Corrupt(f"{length} bytes reach past the end of the file ({self.size})", at)
        if at % align:
            raise Corrupt(f"not aligned to {align} bytes", at)

    def spend(self, size: int, at: int) -> None:
        self._allowance -= size
        if self._allowance < 0:
            raise Corrupt("overlapping structures unfold to more than the file can hold", at)

    def follow(self, at: int) -> int:
        """The position that the offset stored at `at` leads to."""
        self.check_span(at, 4, 4)
        (offset,) = _UINT32.unpack_from(self.data, at)
        if not 0 < offset <= self.size - at - 4:
            raise Corrupt(f"offset {offset} leads out of the file ({self.size} bytes)", at)
        return at + cast(int, offset)

    def vtable(self, position: int) -> Offsets:
        """The field offsets of the table at `position`, 0 for absent ones."""
        self.check_span(position, 4, 4)
        (back,) = _INT32.unpack_from(self.data, position)
        start = position - back
        offsets = self.vtables.get(start)
        if offsets is None:
            offsets = self.vtables[start] = self._read_vtable(start, position)
        return offsets

    def _read_vtable(self, start: int, position: int) -> Offsets:
        if not 0 <= start <= self.size - 4 or start % 2:
            raise Corrupt(f"vtable at {start}, outside the file or not aligned", position)
        (size,) = _UINT16.unpack_from(self.data, start)
        if size < 4 or size % 2 or start + size > self.size:
            raise Corrupt(f"vtable of {size} bytes", start)
        count = min(size // 2 - 2, _MOST_SLOTS)
        offsets = struct.unpack_from(f"<{count}H", self.data, start + 4)
        return offsets + (0,) * (_MOST_SLOTS - count)

    def vector(self, at: int, item_size: int) -> tuple[int, int]:
        """Position of the items and number of items of the vector that `at` leads to."""
        start = self.follow(at)
        self.check_span(start, 4, 4)
        (length,) = _UINT32.unpack_from(self.data, start)
        if length * item_size > self.size - start - 4:
            raise Corrupt(f"vector of {length} items reaches past the end of the file", start)
        return start + 4, length

    def count_table(self, position: int) -> None:
        self._tables += 1
        self.spend(4, position)
        if self._tables > MAX_TABLES:
            raise Corrupt(f"more than {MAX_TABLES} tables", position)


_UINT16, _INT32, _UINT32 = struct.Struct("<H"), struct.Struct("<i"), struct.Struct("<I")
_UINT64, _INT8, _UINT8 = struct.Struct("<Q"), struct.Struct("<b"), struct.Struct("<B")

Read = Callable[[File, int, Offsets], Any]


def read_table(file: File, position: int, cls: type[T]) -> T:
    """The table at `position`, read once however often it is referred to."""
    known = file.known.get((position, cls))
    if known is not None:
        return cast(T, known)
    file.count_table(position)
    offsets = file.vtable(position)
    values = []
    name = ""
    try:
        for name, read in _plan(cls):
            values.append(read(file, position, offsets))
    except Corrupt as corrupt:
        corrupt.steps.append(f".{name}")
        raise
    made = file.known[position, cls] = cls(*values)
    file.positions[id(made)] = position
    return made


@cache
def _plan(cls: type[Table]) -> tuple[tuple[str, Read], ...]:
    return tuple((name, _READERS[type(field)](field)) for name, field in cls.fields.items())


def _scalar(field: Scalar) -> Read:
    slot, default, size = field.slot, field.default, field.number.size
    unpack = struct.Struct(f"<{field.number.code}").unpack_from
    members = None if field.enum is None else {int(member): member for member in field.enum}

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        if not offset:
            return default
        at = position + offset
        if at + size > file.size or at % size:
            file.check_span(at, size, size)
        (value,) = unpack(file.data, at)
        if members is None:
            return value
        member = members.get(value)
        if member is None:
            raise Corrupt(f"{value} is no {field.enum.__name__}", at)  # type: ignore[union-attr]
        return member

    return read


def _operator_code(field: OperatorCodeNumber) -> Read:
    assert field.enum is not None
    wide_slot, narrow_slot = field.slot, field.narrow_slot
    members = {int(member): member for member in field.enum}

    def read(file: File, position: int, offsets: Offsets) -> Any:
        code = max(
            _number(file, position, offsets[wide_slot], _INT32),
            _number(file, position, offsets[narrow_slot], _INT8),
        )
        if code < 0:
            raise Corrupt(f"operator code {code}", position)
        if code not in members:
            file.unknown_operators.append(code)
        return members.get(code, field.default)

    return read


def _number(file: File, position: int, offset: int, form: struct.Struct) -> int:
    if not offset:
        return 0
    file.check_span(position + offset, form.size, form.size)
    return cast(int, form.unpack_from(file.data, position + offset)[0])


def _string(field: String) -> Read:
    slot, default = field.slot, field.default

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        return _text(file, position + offset) if offset else default

    return read


def _text(file: File, at: int) -> str:
    start, length = file.vector(at, 1)
    known = file.known.get((start, str))
    if known is not None:
        return cast(str, known)
    file.spend(length, start)
    end = start + length
    if end >= file.size or file.data[end]:
        raise Corrupt(f"string of {length} bytes without a NUL after it", start - 4)
    try:
        text = str(file.data[start:end], "utf-8")
    except UnicodeDecodeError as error:
        raise Corrupt(f"string is not UTF-8 ({error.reason})", start + error.start) from None
    file.known[start, str] = text
    return text


def _vector(field: Vector) -> Read:
    slot, default, size, code = field.slot, field.default, field.number.size, field.number.code
    convert = _converter(field)

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        if not offset:
            return default
        start, length = file.vector(position + offset, size)
        known = file.known.get((start, field))
        if known is None:
            file.spend(length * size, start)
            numbers = struct.unpack_from(f"<{length}{code}", file.data, start)
            known = file.known[start, field] = convert(numbers, start) if convert else numbers
        return known

    return read


def _converter(field: Vector) -> Callable[[tuple[Any, ...], int], tuple[Any, ...]] | None:
    if field.none_as is not None:
        absent = field.none_as
        return lambda numbers, _: (
            tuple(None if number == absent else number for number in numbers)
            if absent in numbers
            else numbers
        )
    if field.enum is None:
        return None
    enum = field.enum
    members = {int(member): member for member in enum}

    def convert(numbers: tuple[int, ...], start: int) -> tuple[Any, ...]:
        unknown = [number for number in numbers if number not in members]
        if unknown:
            raise Corrupt(f"{unknown[0]} is no {enum.__name__}", start)
        return tuple(members[number] for number in numbers)

    return convert


def _view(field: View) -> Read:
    slot, dtype, outside = field.slot, field.number.dtype, field.outside

    def read(file: File, position: int, offsets: Offsets) -> Any:
        array = None
        if offsets[slot]:
            start, length = file.vector(position + offsets[slot], dtype.itemsize)
            array = file.content[start : start + length * dtype.itemsize].view(dtype)
            if length:
                return array
        if outside:
            array = _outside(file, position, offsets, outside, array)
        return None if field.blank else array

    return read


def _outside(
    file: File, position: int, offsets: Offsets, slots: tuple[int, int], inline: Array | None
) -> Array | None:
    """Bytes that stand after the FlatBuffer; positions 0 and 1 mean there are none."""
    start, size = (_number(file, position, offsets[slot], _UINT64) for slot in slots)
    if start <= 1:
        return inline
    if start + size > file.size:
        raise Corrupt(
            f"{size} bytes at {start} reach past the end of the file ({file.size})", position
        )
    return file.content[start : start + size]


def _child(field: Child) -> Read:
    assert field.table is not None
    slot, cls = field.slot, field.table

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        return read_table(file, file.follow(position + offset), cls) if offset else None

    return read


def _children(field: Children) -> Read:
    assert field.table is not None
    slot, cls = field.slot, field.table

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        if not offset:
            return field.default
        start, length = file.vector(position + offset, 4)
        known = file.known.get((start, field))
        if known is None:
            known = file.known[start, field] = _tables(file, start, length, cls)
        return known

    return read


def _tables(file: File, start: int, length: int, cls: type[T]) -> tuple[T, ...]:
    file.spend(4 * length, start)
    tables = []
    try:
        for at in range(start, start + 4 * length, 4):
            tables.append(read_table(file, file.follow(at), cls))
    except Corrupt as corrupt:
        corrupt.steps.append(f"[{len(tables)}]")
        raise
    return tuple(tables)


def _one_of(field: OneOf) -> Read:
    assert field.union is not None
    choices = ((field.slot, field.union), *((field.second,) if field.second else ()))

    def read(file: File, position: int, offsets: Offsets) -> Any:
        for slot, union in choices:
            value = _member(file, position, offsets, slot, union)
            if value is not None:
                return value
        return None

    return read


def _member(file: File, position: int, offsets: Offsets, slot: int, union: Union) -> Any:
    number = _number(file, position, offsets[slot - 1], _UINT8)
    if not number:
        return None
    if number > len(union.members):
        raise Corrupt(f"{union.name} has no member {number}", position + offsets[slot - 1])
    member = union.members[number - 1]
    if not offsets[slot]:
        raise Corrupt(f"{union.name} names {member.__name__} and has no value", position)
    return read_table(file, file.follow(position + offsets[slot]), member)


_READERS: dict[type[Field], Callable[[Any], Read]] = {
    Scalar: _scalar,
    OperatorCodeNumber: _operator_code,
    String: _string,
    Vector: _vector,
    View: _view,
    Child: _child,
    Children: _children,
    OneOf: _one_of,
    Local: lambda field: lambda file, position, offsets: field.default,
}
