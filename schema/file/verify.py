"""The verified walk over a file: makes functions that read a table from its declared fields."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from tflite_ort.schema.file.fields import (
    Child,
    Children,
    Field,
    Local,
    OneOf,
    OperatorCodeNumber,
    Scalar,
    String,
    Strings,
    Union,
    Vector,
    View,
)
from tflite_ort.schema.file.file_bytes import Corrupt, File, Offsets
from tflite_ort.schema.file.tables import Table, fields_of

T = TypeVar("T", bound=Table)


_INT8, _UINT8 = struct.Struct("<b"), struct.Struct("<B")
_INT32, _UINT64 = struct.Struct("<i"), struct.Struct("<Q")

_SHORT = 9  # longer vectors, other than shapes and the like, are few

# More classes that share a vtable, which only a file made for that has, are looked at one by one.
_LAYOUTS_KEPT = 16

Read = Callable[[File, int], Any]  # of what stands at a position
# How to read a field of tables with these offsets, and how far from their position; None where
# it is absent.
Find = Callable[[Offsets], tuple[Read, int] | None]
Put = Callable[[Any, Any], None]  # sets a field of a table that is being made
Layout = tuple[list[tuple[Put, Any]], list[tuple[Put, Read, int, str]]]


def read_table(file: File, position: int, cls: type[T]) -> T:
    """The table at `position`."""
    vtable = file.table(position)
    layouts = vtable.layouts
    layout = None if layouts is None else layouts.get(cls)
    if layout is None:
        layout = _layout(cls, vtable.offsets)
        if layouts is not None and len(layouts) < _LAYOUTS_KEPT:
            layouts[cls] = layout
    absent, present = layout
    made, name = object.__new__(cls), ""
    for put, value in absent:
        put(made, value)
    try:
        for put, read, offset, name in present:  # noqa: B007  # the error says it
            put(made, read(file, position + offset))
    except Corrupt as corrupt:
        corrupt.steps.append(f".{name}")
        raise
    file.positions[id(made)] = position
    return made


def _layout(cls: type[Table], offsets: Offsets) -> Layout:
    """Of tables with these offsets the values of fields that are absent, and how to read the
    others."""
    absent: list[tuple[Put, Any]] = []
    present: list[tuple[Put, Read, int, str]] = []
    for put, (name, field, find) in zip(cls._setters, _plan(cls), strict=True):
        found = find(offsets)
        if found is None:
            absent.append((put, field.default))
        else:
            present.append((put, *found, name))
    return absent, present


_plans: dict[type[Table], tuple[tuple[str, Any, Find], ...]] = {}


def _plan(cls: type[Table]) -> tuple[tuple[str, Any, Find], ...]:
    """Each field and how to find it, in the order of the dataclass; made on first use."""
    plan = _plans.get(cls)
    if plan is None:
        plan = tuple((name, f, _FINDERS[type(f)](f)) for name, f in fields_of(cls).items())
        _plans[cls] = plan
    return plan


def _in_slot(reader: Callable[[Any], Read]) -> Callable[[Any], Find]:
    """How to find fields that are in one slot."""

    def finder(field: Any) -> Find:
        slot, read = field.slot, reader(field)
        return lambda offsets: (read, offsets[slot]) if offsets[slot] else None

    return finder


def _scalar(field: Scalar) -> Read:
    size, enum = field.number.size, field.enum
    unpack = struct.Struct(f"<{field.number.code}").unpack_from
    members = {int(member): member for member in enum} if enum else {}

    def read(file: File, at: int) -> Any:
        if at + size > file.size or at % size:
            file.check_span(at, size, size)
        (value,) = unpack(file.data, at)
        if enum is None:
            return value
        member = members.get(value)
        if member is None:
            raise Corrupt(f"{value} is no {enum.__name__}", at)
        return member

    return read


def _operator_code(field: OperatorCodeNumber) -> Find:
    members = {int(member): member for member in field.enum}

    def read(wide: int, narrow: int, file: File, position: int) -> Any:
        code = max(_number(file, position, wide, _INT32), _number(file, position, narrow, _INT8))
        if code < 0:
            raise Corrupt(f"operator code {code}", position)
        if code not in members:
            file.unknown_operators.append(code)
        return members.get(code, field.default)

    return lambda offsets: (partial(read, offsets[field.slot], offsets[field.narrow_slot]), 0)


def _number(file: File, position: int, offset: int, form: struct.Struct) -> int:
    if not offset:
        return 0
    file.check_span(position + offset, form.size, form.size)
    number: int = form.unpack_from(file.data, position + offset)[0]
    return number


def _text(file: File, at: int) -> str:
    start, length = file.vector(at, 1, 2)
    end = start + length
    if end >= file.size or file.data[end]:
        raise Corrupt(f"string of {length} bytes without a NUL after it", start - 4)
    try:
        return str(file.data[start:end], "utf-8")
    except UnicodeDecodeError as error:
        raise Corrupt(f"string is not UTF-8 ({error.reason})", start + error.start) from None


def _texts(file: File, at: int) -> tuple[str, ...]:
    start, length = file.vector(at, 4, 8)
    return tuple(_text(file, item) for item in range(start, start + 4 * length, 4))


def _vector(field: Vector) -> Read:
    size, code, convert = field.number.size, field.number.code, _converter(field)
    short = [struct.Struct(f"<{length}{code}").unpack_from for length in range(_SHORT)]

    def read(file: File, at: int) -> Any:
        start, length = file.vector(at, size, 2 * size)
        if length < _SHORT:
            numbers = short[length](file.data, start)
        else:
            numbers = struct.unpack_from(f"<{length}{code}", file.data, start)
        return convert(numbers, start) if convert else numbers

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


def _view(field: View) -> Find:
    slot, outside, blank = field.slot, field.outside, field.blank
    dtype = field.number.dtype
    size = dtype.itemsize

    def read(file: File, at: int) -> Any:
        start, length = file.vector(at, size)
        if blank and not length:
            return None
        return file.content[start : start + length * size].view(dtype)

    def find(offsets: Offsets) -> tuple[Read, int] | None:
        if outside and offsets[outside[0]]:  # else the position is 0
            start, length = (offsets[each] for each in outside)
            return partial(_outside, read, offsets[slot], start, length), 0
        return (read, offsets[slot]) if offsets[slot] else None

    return find


def _outside(read: Read, inline: int, start: int, length: int, file: File, position: int) -> Any:
    """Bytes that stand after the FlatBuffer, unless there are some within; positions 0 and 1 mean
    there are none."""
    array = read(file, position + inline) if inline else None
    if array is not None and array.size:
        return array
    at, size = _number(file, position, start, _UINT64), _number(file, position, length, _UINT64)
    if at <= 1:
        return array
    if at + size > file.size:
        raise Corrupt(
            f"{size} bytes at {at} reach past the end of the file ({file.size})", position
        )
    return file.content[at : at + size]


def _child(field: Child) -> Read:
    cls = field.table
    return lambda file, at: read_table(file, file.follow(at), cls)


def _children(field: Children) -> Read:
    cls = field.table

    def read(file: File, at: int) -> Any:
        start, length = file.vector(at, 4, 8)
        tables: list[Table] = []
        try:
            for item in range(start, start + 4 * length, 4):
                tables.append(read_table(file, file.follow(item), cls))
        except Corrupt as corrupt:
            corrupt.steps.append(f"[{len(tables)}]")
            raise
        return tuple(tables)

    return read


def _one_of(field: OneOf) -> Find:
    def find(offsets: Offsets) -> tuple[Read, int] | None:
        choices = [
            (offsets[slot - 1], offsets[slot], union)  # the number of the member stands before it
            for slot, union in field.choices
            if offsets[slot - 1]
        ]
        return (partial(_first_member, choices), 0) if choices else None

    return find


def _first_member(choices: Sequence[tuple[int, int, Union]], file: File, position: int) -> Any:
    for number, value, union in choices:
        member = _member(file, position, number, value, union)
        if member is not None:
            return member
    return None


def _member(file: File, position: int, number: int, value: int, union: Union) -> Any:
    index = _number(file, position, number, _UINT8)
    if not index:
        return None
    if index > len(union.members):
        raise Corrupt(f"{union.name} has no member {index}", position + number)
    member = union.members[index - 1]
    if not value:
        raise Corrupt(f"{union.name} names {member.__name__} and has no value", position)
    return read_table(file, file.follow(position + value), member)


_FINDERS: dict[type[Field], Callable[[Any], Find]] = {
    Scalar: _in_slot(_scalar),
    OperatorCodeNumber: _operator_code,
    String: _in_slot(lambda field: _text),
    Strings: _in_slot(lambda field: _texts),
    Vector: _in_slot(_vector),
    View: _view,
    Child: _in_slot(_child),
    Children: _in_slot(_children),
    OneOf: _one_of,
    Local: lambda field: lambda offsets: None,
}
