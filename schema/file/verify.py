"""The verified walk over a file: makes functions that read a table from its declared fields."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
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
from tflite_ort.schema.file.tables import Array, Table, fields_of

T = TypeVar("T", bound=Table)


# More kinds of tables, which only a file made for that has, are looked at one by one.
_LAYOUTS_KEPT = 512

_INT8, _UINT8 = struct.Struct("<b"), struct.Struct("<B")
_INT32, _UINT64 = struct.Struct("<i"), struct.Struct("<Q")

Read = Callable[[File, int, Offsets], Any]
Put = Callable[[Any, Any], None]  # sets a field of a table that is being made
Layout = tuple[list[tuple[Put, Any]], list[tuple[Put, Read, str]]]

# Of tables of other files too: one converter writes the same ones again and again.
_LAYOUTS: dict[tuple[type[Table], Offsets], Layout] = {}


def read_table(file: File, position: int, cls: type[T]) -> T:
    """The table at `position`."""
    offsets = file.table(position)
    layout = file.layouts.get((id(offsets), cls))
    if layout is None:
        layout = _LAYOUTS.get((cls, offsets)) or _layout(cls, offsets)
        if len(_LAYOUTS) < _LAYOUTS_KEPT:
            _LAYOUTS[cls, offsets] = layout
        if len(file.layouts) < _LAYOUTS_KEPT:
            file.layouts[id(offsets), cls] = layout  # `file.vtables` holds the offsets
    absent, present = layout
    made, name = object.__new__(cls), ""
    for put, value in absent:
        put(made, value)
    try:
        for put, read, name in present:  # noqa: B007  # the error says it
            put(made, read(file, position, offsets))
    except Corrupt as corrupt:
        corrupt.steps.append(f".{name}")
        raise
    file.positions[id(made)] = position
    return made


def _layout(cls: type[Table], offsets: Offsets) -> Layout:
    """Of tables with these offsets the values of fields that are absent, and how to read the
    others."""
    absent: list[tuple[Put, Any]] = []
    present: list[tuple[Put, Read, str]] = []
    for put, (name, field, read) in zip(cls._setters, _plan(cls), strict=True):
        if type(field) is OperatorCodeNumber or any(offsets[slot] for slot in _slots(field)):
            present.append((put, read, name))
        else:
            absent.append((put, field.default))
    return absent, present


def _slots(field: Any) -> Sequence[int]:
    """Where a field is looked for; one that is nowhere has its default."""
    if isinstance(field, OneOf):
        return [slot - 1 for slot, _ in field.choices]  # of the numbers of members
    if isinstance(field, View) and field.outside:
        return field.slot, field.outside[0]
    return () if isinstance(field, Local) else (field.slot,)


_plans: dict[type[Table], tuple[tuple[str, Any, Read], ...]] = {}


def _plan(cls: type[Table]) -> tuple[tuple[str, Any, Read], ...]:
    """Each field and how to read it, in the order of the dataclass; made on first use."""
    plan = _plans.get(cls)
    if plan is None:
        plan = tuple((name, f, _READERS[type(f)](f)) for name, f in fields_of(cls).items())
        _plans[cls] = plan
    return plan


def _scalar(field: Scalar) -> Read:
    slot, default, size = field.slot, field.default, field.number.size
    unpack = struct.Struct(f"<{field.number.code}").unpack_from
    enum = field.enum
    members = {int(member): member for member in enum} if enum else {}

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        if not offset:
            return default
        at = position + offset
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


def _operator_code(field: OperatorCodeNumber) -> Read:
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
    number: int = form.unpack_from(file.data, position + offset)[0]
    return number


def _string(field: String) -> Read:
    slot, default = field.slot, field.default

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        return _text(file, position + offset) if offset else default

    return read


def _text(file: File, at: int) -> str:
    start, length = file.vector(at, 1, 2)
    end = start + length
    if end >= file.size or file.data[end]:
        raise Corrupt(f"string of {length} bytes without a NUL after it", start - 4)
    try:
        return str(file.data[start:end], "utf-8")
    except UnicodeDecodeError as error:
        raise Corrupt(f"string is not UTF-8 ({error.reason})", start + error.start) from None


def _strings(field: Strings) -> Read:
    slot, default = field.slot, field.default

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        if not offset:
            return default
        start, length = file.vector(position + offset, 4, 8)
        return tuple(_text(file, at) for at in range(start, start + 4 * length, 4))

    return read


def _vector(field: Vector) -> Read:
    slot, default, size, code = field.slot, field.default, field.number.size, field.number.code
    convert = _converter(field)

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        if not offset:
            return default
        start, length = file.vector(position + offset, size, 2 * size)
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


def _view(field: View) -> Read:
    slot, dtype, outside = field.slot, field.number.dtype, field.outside

    def read(file: File, position: int, offsets: Offsets) -> Any:
        array = None
        if offsets[slot]:
            start, length = file.vector(position + offsets[slot], dtype.itemsize)
            array = file.content[start : start + length * dtype.itemsize].view(dtype)
            if length:
                return array
        if outside and offsets[outside[0]]:  # else the position is 0
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
    slot, cls = field.slot, field.table

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        return read_table(file, file.follow(position + offset), cls) if offset else None

    return read


def _children(field: Children) -> Read:
    slot, cls = field.slot, field.table

    def read(file: File, position: int, offsets: Offsets) -> Any:
        offset = offsets[slot]
        if not offset:
            return field.default
        start, length = file.vector(position + offset, 4, 8)
        tables: list[Table] = []
        try:
            for at in range(start, start + 4 * length, 4):
                tables.append(read_table(file, file.follow(at), cls))
        except Corrupt as corrupt:
            corrupt.steps.append(f"[{len(tables)}]")
            raise
        return tuple(tables)

    return read


def _one_of(field: OneOf) -> Read:
    def read(file: File, position: int, offsets: Offsets) -> Any:
        for slot, union in field.choices:
            if offsets[slot - 1]:
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
    Strings: _strings,
    Vector: _vector,
    View: _view,
    Child: _child,
    Children: _children,
    OneOf: _one_of,
    Local: lambda field: lambda file, position, offsets: field.default,
}
