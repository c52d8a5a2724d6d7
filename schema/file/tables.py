"""What all tables have: fields that cannot be set, and equality of arrays too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, cast, dataclass_transform

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.schema.file.fields import Field, Local

with late:
    import dataclasses

if TYPE_CHECKING:
    from tflite_ort.schema.file.enums import Op

Array = npt.NDArray[Any]


@record
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


class _DataclassFields:
    """What `dataclasses` asks a table for, made when it does."""

    def __get__(self, instance: object, cls: Any) -> Mapping[str, Any]:
        fields: Mapping[str, Any] = _as_dataclass(cls).__dataclass_fields__
        return fields


@dataclass_transform(frozen_default=True)
class _Declared(type):
    """Makes of what a class declares a table with slots, whose defaults are the schema's."""

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Declared:
        if not bases:
            return super().__new__(mcs, name, bases, namespace)
        names = tuple(namespace.get("__annotations__", ()))
        fields = MappingProxyType({each: namespace.pop(each) for each in names})
        namespace.update(__slots__=names, __match_args__=names, _fields=fields)
        made: Any = super().__new__(mcs, name, bases, namespace)
        made._setters = tuple([vars(made)[each].__set__ for each in names])
        return cast("_Declared", made)


class Table(metaclass=_Declared):
    """Base of all tables: compares arrays by type, shape and bytes."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]] = ()
    __dataclass_fields__ = _DataclassFields()
    _fields: ClassVar[Mapping[str, Field]] = MappingProxyType({})
    _member: ClassVar[Member | None] = None
    # By field, how it is set in spite of `__setattr__`.
    _setters: ClassVar[tuple[Callable[[Table, Any], None], ...]] = ()

    def __init__(self, *values: Any, **named: Any) -> None:
        if named or len(values) != len(self._setters):
            values = _arguments(type(self), values, named)
        for set_field, value in zip(self._setters, values, strict=True):
            set_field(self, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __reduce__(self) -> tuple[type[Table], tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self._fields)

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


def _arguments(
    cls: type[Table], values: Sequence[Any], named: Mapping[str, Any]
) -> tuple[Any, ...]:
    """The values of all fields of a new table.

    Raises:
        TypeError: there are too many, or some are of no field or given twice.
    """
    names = list(cls._fields)
    wrong = named.keys() - set(names[len(values) :])
    if wrong or len(values) > len(names):
        what = f"{min(wrong)!r}" if wrong else f"{len(values)} values"
        raise TypeError(f"{cls.__name__} does not take {what}: its fields are {', '.join(names)}")
    rest = (named.get(name, cls._fields[name].default) for name in names[len(values) :])
    return *values, *rest


@cache
def _as_dataclass(cls: Any) -> Any:
    """A dataclass with the fields of a table."""
    fields = [(name, Any, field.default) for name, field in cls._fields.items()]
    return dataclasses.make_dataclass(cls.__name__, fields)


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
