"""The language in which the FlatBuffers tables are declared, once each.

::

    @table
    class Conv2DOptions(Table):
        padding: Padding = enum(0, Padding)
        stride_w: int = scalar(1, INT32)
        dilation_w_factor: int = scalar(4, INT32, default=1, since=2)

makes a frozen, slotted dataclass. The reader, its verification and the writer follow the fields
that :func:`fields_of` lists; the values of a table are plain attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Default = int | float | tuple[()] | str | None


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar type: FlatBuffers' name, struct's format letter and the size in bytes."""

    name: str
    code: str
    size: int

    @property
    def dtype(self) -> np.dtype[Any]:
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
_WIDE_ENUMS = {
    "BuiltinOperator": INT32,
    "ReduceWindowFunction": INT32,
    "StablehloPrecisionConfig": UINT32,
    "StablehloComparisonDirection": UINT32,
    "StablehloComparisonType": UINT32,
}


@dataclass(frozen=True, slots=True)
class Field:
    """What every kind of field has.

    Args:
        slot: position in the vtable.
        since: the operator version that brought the field, None when it was there from the start.
        default: the value of an absent field.
        deprecated: the schema keeps the slot but gives it no meaning.
    """

    slot: int
    since: int | None = None
    default: Any = None
    deprecated: bool = False


@dataclass(frozen=True, slots=True)
class Scalar(Field):
    """A number or, with `enum`, a member of that enum."""

    number: Number = INT32
    enum: type[IntEnum] | None = None


@dataclass(frozen=True, slots=True)
class OperatorCodeNumber(Field):
    """An operator code: the larger of a 4-byte field and the 1-byte field of older files."""

    enum: type[IntEnum] | None = None
    narrow_slot: int = 0


@dataclass(frozen=True, slots=True)
class String(Field):
    """UTF-8 text."""

    keep_empty: bool = False


@dataclass(frozen=True, slots=True)
class Vector(Field):
    """Numbers (or enum members, or None for `none_as`) as a tuple.

    `keep_empty` writes an empty tuple although it is the default: TFLite tells the two apart.
    """

    number: Number = INT32
    enum: type[IntEnum] | None = None
    none_as: int | None = None
    keep_empty: bool = False


@dataclass(frozen=True, slots=True)
class View(Field):
    """Numbers as a read-only numpy view into the file.

    Args:
        outside: slots of the file offset and the byte count that stand in for an absent vector.
        align: byte alignment of the data in a written file.
        blank: an empty vector means no more than an absent one and is read as None.
    """

    number: Number = UINT8
    outside: tuple[int, int] | None = None
    align: int = 1
    blank: bool = False


@dataclass(frozen=True, slots=True)
class Child(Field):
    """Another table."""

    table: type[Table] | None = None


@dataclass(frozen=True, slots=True)
class Children(Field):
    """A vector of tables, as a tuple."""

    table: type[Table] | None = None
    keep_empty: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """A choice of tables; the first member has number 1."""

    name: str
    members: tuple[type[Table], ...]


@dataclass(frozen=True, slots=True)
class OneOf(Field):
    """A table that is a member of a union; `slot` is the value's, the member's number is before it.

    `second` is a further slot and union that can hold the value instead.
    """

    union: Union | None = None
    second: tuple[int, Union] | None = None


@dataclass(frozen=True, slots=True)
class Local(Field):
    """Not in the file, and no part of equality."""


class Table:
    """Base of all tables: compares arrays by type, shape and bytes."""

    __slots__ = ()
    fields: ClassVar[Mapping[str, Field]] = MappingProxyType({})

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or all(
            _same(getattr(self, name), getattr(other, name)) for name in _compared(type(self))
        )

    def __hash__(self) -> int:
        return hash((type(self), *(_hashable(getattr(self, n)) for n in _compared(type(self)))))

    def __repr__(self) -> str:
        shown = (
            f"{name}={_shown(getattr(self, name))}"
            for name, field in fields_of(type(self)).items()
            if not _same(getattr(self, name), field.default)
        )
        return f"{type(self).__name__}({', '.join(shown)})"


def fields_of(cls: type[Table]) -> Mapping[str, Field]:
    """The declared fields of a table by name."""
    return cls.fields


def _compared(cls: type[Table]) -> list[str]:
    return [name for name, field in cls.fields.items() if not isinstance(field, Local)]


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return (
            isinstance(a, np.ndarray)
            and isinstance(b, np.ndarray)
            and a.dtype == b.dtype
            and a.shape == b.shape
            and (a is b or _bits(a) == _bits(b))
        )
    if isinstance(a, float) and a != a:  # a NaN equals a NaN: they are the same field
        return isinstance(b, float) and b != b
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and (a == b or all(map(_same, a, b)))
    return bool(a == b)


def _bits(array: Array) -> memoryview:
    return memoryview(np.ascontiguousarray(array).view(np.uint8))


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    return value


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray) and value.size > 8:
        return f"<{value.dtype} x {value.size}>"
    return f"{type(value).__name__}.{value.name}" if isinstance(value, IntEnum) else repr(value)


T = TypeVar("T", bound=Table)


@dataclass_transform(frozen_default=True)
def table(cls: type[T]) -> type[T]:
    """Makes the declared class a frozen, slotted dataclass whose defaults are the schema's."""
    fields = {name: vars(cls)[name] for name in vars(cls).get("__annotations__", {})}
    namespace = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
    if not fields:  # nothing to generate: most operators' options are empty
        return cast("type[T]", type(cls.__name__, (_Empty,), {**namespace, "__slots__": ()}))
    for name, field in fields.items():
        setattr(cls, name, field.default)
    made = dataclass(frozen=True, slots=True, eq=False, repr=False)(cls)
    made.fields = MappingProxyType(fields)
    return made


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _Empty(Table):
    """What tables without fields are made of."""


def scalar(
    slot: int,
    number: Number,
    *,
    default: float = 0,
    since: int | None = None,
    deprecated: bool = False,
) -> Any:
    """A number field; `bool` and `float` defaults are converted to the field's type."""
    typed = bool(default) if number is BOOL else float(default) if number is FLOAT32 else default
    return Scalar(slot, since, typed, deprecated, number)


def boolean(slot: int, *, default: bool = False, since: int | None = None) -> Any:
    """A bool field."""
    return scalar(slot, BOOL, default=default, since=since)


def enum(slot: int, of: type[IntEnum], *, default: int = 0, since: int | None = None) -> Any:
    """An enum field."""
    return Scalar(slot, since, of(default), False, enum_number(of), of)


def enum_number(of: type[IntEnum]) -> Number:
    """The scalar type that carries an enum."""
    return _WIDE_ENUMS.get(of.__name__, INT8)


def operator_code(slot: int, of: type[IntEnum], *, narrow_slot: int) -> Any:
    """The operator code, the larger of the fields in two slots."""
    return OperatorCodeNumber(slot, default=of(0), enum=of, narrow_slot=narrow_slot)


def string(
    slot: int, *, default: str | None = "", keep_empty: bool = False, deprecated: bool = False
) -> Any:
    """A text field; absent text is empty unless `default` says None."""
    return String(slot, None, default, deprecated, keep_empty)


def vector(
    slot: int,
    item: Number | type[IntEnum],
    *,
    default: tuple[()] | None = None,
    none_as: int | None = None,
    keep_empty: bool = False,
) -> Any:
    """A tuple of numbers or enum members."""
    if isinstance(item, Number):
        return Vector(slot, None, default, False, item, None, none_as, keep_empty)
    return Vector(slot, None, default, False, enum_number(item), item, none_as, keep_empty)


def view(
    slot: int,
    number: Number = UINT8,
    *,
    outside: tuple[int, int] | None = None,
    align: int = 1,
    blank: bool = False,
) -> Any:
    """A numpy view into the file, or None."""
    return View(slot, None, None, False, number, outside, align, blank)


def child(slot: int, of: type[Table]) -> Any:
    """A table, or None."""
    return Child(slot, table=of)


def children(slot: int, of: type[Table], *, keep_empty: bool = False) -> Any:
    """A tuple of tables."""
    return Children(slot, default=(), table=of, keep_empty=keep_empty)


def one_of(slot: int, union: Union, second: tuple[int, Union] | None = None) -> Any:
    """A member of a union, or None."""
    return OneOf(slot, union=union, second=second)


def local() -> Any:
    """A field that is not in the file."""
    return Local(-1)
