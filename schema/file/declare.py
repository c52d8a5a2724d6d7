"""The language in which the FlatBuffers tables are declared, once each.

::

    @table
    class Conv2DOptions(Table):
        padding: Padding = enum(0, Padding)
        stride_w: int = scalar(1, INT32)
        dilation_w_factor: int = scalar(4, INT32, default=1, since=2)

makes a frozen, slotted dataclass. The reader, its verification and the writer follow the fields
that :func:`fields_of` lists; the values of a table are plain attributes. A table of an operator's
options is declared by `options`, with its number in the union and its operators::

    @options(1, Op.CONV_2D)
    class Conv2DOptions(Table):
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar, cast, dataclass_transform

import numpy as np
import numpy.typing as npt

from tflite_ort.schema.file.enums import Op

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
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
_WIDE_ENUMS = {
    "BuiltinOperator": INT32,
    "ReduceWindowFunction": INT32,
    "StablehloPrecisionConfig": UINT32,
    "StablehloComparisonDirection": UINT32,
    "StablehloComparisonType": UINT32,
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Field:
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Scalar(Field):
    """A number or, with `enum`, a member of that enum."""

    number: Number
    enum: type[IntEnum] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OperatorCodeNumber(Field):
    """An operator code: the larger of a 4-byte field and the 1-byte field of older files."""

    enum: type[IntEnum]
    narrow_slot: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class String(Field):
    """UTF-8 text; `keep_empty` writes an empty text although it is the default."""

    keep_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Strings(Field):
    """A vector of texts, as a tuple."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vector(Field):
    """Numbers (or enum members, or None for `none_as`) as a tuple.

    `keep_empty` writes an empty tuple although it is the default: TFLite tells the two apart.
    """

    number: Number
    enum: type[IntEnum] | None = None
    none_as: int | None = None
    keep_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Child(Field):
    """Another table."""

    table: type[Table]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Children(Field):
    """A vector of tables, as a tuple."""

    table: type[Table]
    keep_empty: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """A choice of tables; the first member has number 1."""

    name: str
    members: tuple[type[Table], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneOf(Field):
    """A member of one of the unions; `choices` holds the slot of each union's value.

    The number of the member stands in the slot before the value's.
    """

    choices: tuple[tuple[int, Union], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Local(Field):
    """Not in the file, and no part of equality."""


@dataclass(frozen=True, slots=True)
class Member:
    """A table's place in the unions of options.

    Args:
        number: in its union; the first has 1.
        second: the union is BuiltinOptions2.
        operators: those whose options these are; none for an empty table.
    """

    number: int
    second: bool
    operators: tuple[Op, ...]


class Table:
    """Base of all tables: compares arrays by type, shape and bytes."""

    __slots__ = ()
    _fields: ClassVar[Mapping[str, Field]] = MappingProxyType({})
    _member: ClassVar[Member | None] = None

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


def member_of(cls: type[Table]) -> Member | None:
    """What the declaration of an operator's options says; None for any other table."""
    return cls._member


def fields_of(cls: type[Table]) -> Mapping[str, Field]:
    """The declared fields of a table by name."""
    return cls._fields


def _compared(cls: type[Table]) -> list[str]:
    return [name for name, field in cls._fields.items() if not isinstance(field, Local)]


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
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8).data


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tobytes()
    if isinstance(value, float) and value != value:
        return "nan"
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
    made._fields = MappingProxyType(fields)
    return made


@dataclass_transform(frozen_default=True)
def options(number: int, *operators: Op, second: bool = False) -> Callable[[type[T]], type[T]]:
    """Makes the declared class a table of operators' options.

    Args:
        number: of the member in the union of options; the first has 1.
        operators: those whose options these are; none for an empty table.
        second: the member is one of BuiltinOptions2.
    """

    def make(cls: type[T]) -> type[T]:
        made = table(cls)
        made._member = Member(number, second, operators)
        return made

    return make


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
    """A number; the default takes the type of the field."""
    typed = bool(default) if number is BOOL else float(default) if number is FLOAT32 else default
    return Scalar(slot=slot, default=typed, since=since, deprecated=deprecated, number=number)


def boolean(slot: int, *, default: bool = False, since: int | None = None) -> Any:
    """True or False."""
    return scalar(slot, BOOL, default=default, since=since)


def enum(slot: int, of: type[IntEnum], *, default: int = 0, since: int | None = None) -> Any:
    """A member of an enum."""
    return Scalar(slot=slot, default=of(default), since=since, number=enum_number(of), enum=of)


def enum_number(of: type[IntEnum]) -> Number:
    """The scalar type that carries an enum."""
    return _WIDE_ENUMS.get(of.__name__, INT8)


def operator_code(slot: int, of: type[IntEnum], *, narrow_slot: int) -> Any:
    """The operator code, the larger of the fields in two slots."""
    return OperatorCodeNumber(slot=slot, default=of(0), enum=of, narrow_slot=narrow_slot)


def string(
    slot: int, *, default: str | None = "", keep_empty: bool = False, deprecated: bool = False
) -> Any:
    """A text; an absent one is empty unless `default` is None."""
    return String(slot=slot, default=default, deprecated=deprecated, keep_empty=keep_empty)


def strings(slot: int) -> Any:
    """A tuple of texts."""
    return Strings(slot=slot, default=())


def vector(
    slot: int,
    item: Number | type[IntEnum],
    *,
    default: tuple[()] | None = None,
    none_as: int | None = None,
    keep_empty: bool = False,
) -> Any:
    """A tuple of numbers or enum members."""
    number, members = (item, None) if isinstance(item, Number) else (enum_number(item), item)
    return Vector(
        slot=slot,
        default=default,
        number=number,
        enum=members,
        none_as=none_as,
        keep_empty=keep_empty,
    )


def view(
    slot: int,
    number: Number = UINT8,
    *,
    outside: tuple[int, int] | None = None,
    align: int = 1,
    blank: bool = False,
) -> Any:
    """A numpy view into the file, or None."""
    return View(slot=slot, number=number, outside=outside, align=align, blank=blank)


def child(slot: int, of: type[Table]) -> Any:
    """A table, or None."""
    return Child(slot=slot, table=of)


def children(slot: int, of: type[Table], *, keep_empty: bool = False) -> Any:
    """A tuple of tables."""
    return Children(slot=slot, default=(), table=of, keep_empty=keep_empty)


def one_of(*choices: tuple[int, Union]) -> Any:
    """A member of a union, or None; several unions can hold the same field."""
    return OneOf(slot=choices[0][0], choices=choices)


def local(default: Any = None) -> Any:
    """A field that is not in the file."""
    return Local(slot=-1, default=default)
