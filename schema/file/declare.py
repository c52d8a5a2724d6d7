"""The language in which the FlatBuffers tables are declared, once each.

::

    class Conv2DOptions(Table):
        padding: Padding = enum(0, Padding)
        stride_w: int = scalar(1, INT32)
        dilation_w_factor: int = scalar(4, INT32, default=1, since=2)

makes a frozen, slotted class that `dataclasses` takes for a dataclass. It is none: to write the
methods of 150 dataclasses takes longer than to import numpy. The reader, its verification and the
writer follow the fields that :func:`fields_of` lists; the values of a table are plain attributes. A
table of an operator's options is declared by `options`, with its number in the union and its
operators::

    @options(1, Op.CONV_2D)
    class Conv2DOptions(Table):
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, TypeVar

from tflite_ort.schema.file.enums import Op
from tflite_ort.schema.file.fields import (
    BOOL,
    FLOAT32,
    INT8,
    UINT8,
    WIDE_ENUMS,
    Child,
    Children,
    Local,
    Number,
    OneOf,
    OperatorCodeNumber,
    Scalar,
    String,
    Strings,
    Union,
    Vector,
    View,
)
from tflite_ort.schema.file.tables import Member, Table

T = TypeVar("T", bound=Table)


def options(number: int, *operators: Op, second: bool = False) -> Callable[[type[T]], type[T]]:
    """Makes the declared class a table of operators' options.

    Args:
        number: of the member in the union of options; the first has 1.
        operators: those whose options these are; none for an empty table.
        second: the member is one of BuiltinOptions2.
    """

    def make(cls: type[T]) -> type[T]:
        cls._member = Member(number, second, operators)
        return cls

    return make


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
    return WIDE_ENUMS.get(of.__name__, INT8)


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
