"""The kinds of fields that tables have."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, dataclass_transform

import numpy as np

from tflite_ort.base.records import record


@record
class Number:
    """A scalar type: FlatBuffers' name, struct's format letter and the size in bytes."""

    name: str
    code: str
    size: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """numpy's type of it, in the byte order of a file."""
        return np.dtype("<f4" if self.code == "f" else f"<{_KIND[self.code]}{self.size}")


_KIND = {"b": "i", "h": "i", "i": "i", "q": "i", "B": "u", "H": "u", "I": "u", "Q": "u", "?": "u"}

BOOL = Number("bool", "?", 1)
INT8 = Number("byte", "b", 1)
UINT8 = Number("ubyte", "B", 1)
UINT16 = Number("ushort", "H", 2)
INT32 = Number("int", "i", 4)
UINT32 = Number("uint", "I", 4)
INT64 = Number("long", "q", 8)
UINT64 = Number("ulong", "Q", 8)
FLOAT32 = Number("float", "f", 4)

# The enums that are not one byte wide in a file.
WIDE_ENUMS = {
    "BuiltinOperator": INT32,
    "ReduceWindowFunction": INT32,
    "StablehloPrecisionConfig": UINT32,
    "StablehloComparisonDirection": UINT32,
    "StablehloComparisonType": UINT32,
}


@dataclass_transform(kw_only_default=True, eq_default=False, frozen_default=True)
class _Named:
    """Attributes given by name; those that are not given are the class's."""

    def __init__(self, **given: Any) -> None:
        vars(self).update(given)


class Field(_Named):
    """What every kind of field has.

    Args:
        slot: position in the vtable.
        default: the value of an absent field.
        since: the operator version that brought the field, None when it was there from the start.
        deprecated: the schema keeps the slot but gives it no meaning.
    """

    slot: int
    default: Any = None
    since: int | None = None
    deprecated: bool = False


class Scalar(Field):
    """A number or, with `enum`, a member of that enum."""

    number: Number
    enum: type[IntEnum] | None = None


class OperatorCodeNumber(Field):
    """An operator code: the larger of a 4-byte field and the 1-byte field of older files."""

    enum: type[IntEnum]
    narrow_slot: int


class String(Field):
    """UTF-8 text; `keep_empty` writes an empty text although it is the default."""

    keep_empty: bool = False


class Strings(Field):
    """A vector of texts, as a tuple."""


class Vector(Field):
    """Numbers (or enum members, or None for `none_as`) as a tuple.

    `keep_empty` writes an empty tuple although it is the default: TFLite tells the two apart.
    """

    number: Number
    enum: type[IntEnum] | None = None
    none_as: int | None = None
    keep_empty: bool = False


class View(Field):
    """Numbers as a read-only numpy view into the file.

    Args:
        outside: slots of the file offset and the byte count that stand in for an absent vector.
        align: byte alignment of the data in a written file.
        blank: an empty vector means no more than an absent one and is read as None.
    """

    number: Number
    outside: tuple[int, int] | None = None
    align: int = 1
    blank: bool = False


class Child(Field):
    """Another table."""

    table: type[Any]


class Children(Field):
    """A vector of tables, as a tuple."""

    table: type[Any]
    keep_empty: bool = False


@record
class Union:
    """A choice of tables; the first member has number 1."""

    name: str
    members: tuple[type[Any], ...]


class OneOf(Field):
    """A member of one of the unions; `choices` holds the slot of each union's value.

    The number of the member stands in the slot before the value's.
    """

    choices: tuple[tuple[int, Union], ...]


class Local(Field):
    """Not in the file, and no part of equality."""
