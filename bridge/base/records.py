"""Frozen classes with slots and the methods of a dataclass, which take no time to declare.

`dataclasses` compiles the methods of each class, which takes 0.3 ms; a process that loads a model
declares 80 classes. The methods of all records are the same functions; a class of which many
records are made gets a constructor of its own::

    @record
    class Placement:
        index: int
        provider: str = ""

Type checkers and the functions of `dataclasses` take a record for a dataclass.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import repeat
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform, overload

from tflite_ort.base.optional import late

T = TypeVar("T")


class _Factory:
    """The default of a field that is made for each record."""

    __slots__ = ("make",)

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make


def field(*, default_factory: Callable[[], T]) -> T:
    """A field with a default that is made for each record."""
    return cast("T", _Factory(default_factory))


with late:
    import dataclasses

if TYPE_CHECKING:
    from dataclasses import replace
else:

    def replace(instance: T, **changes: Any) -> T:
        """A copy of a record, or of a dataclass, with other values of some fields."""
        cls: Any = type(instance)
        if not hasattr(cls, "_content"):
            return dataclasses.replace(instance, **changes)
        values = list(cls._content(instance))
        try:
            for name, value in changes.items():
                values[cls._places[name]] = value
        except KeyError as error:
            raise TypeError(f"{cls.__name__} does not take {error}") from None
        return cls(*values)


__all__ = ["field", "record", "replace"]


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]: ...
@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(*, eq: bool = True, frozen: bool = True) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def record(cls: Any = None, *, eq: bool = True, frozen: bool = True) -> Any:
    """Makes the declared class one with slots, whose fields are its annotated names.

    A field may have a default, or a default factory by `field`. `__post_init__` is called as that
    of a dataclass. A record of a record has the fields of its base first; dataclasses may have a
    record for a base too.

    Args:
        eq: records with equal fields are equal; False: a record equals itself alone.
        frozen: fields cannot be set; then records that can be compared have a hash.
    """

    def make(declared: type[T]) -> type[T]:
        compared = (_COMPARED if frozen else _UNHASHED) if eq else {}
        return _slotted(declared, {**_METHODS, **compared, **(_FROZEN if frozen else {})})

    return make if cls is None else make(cls)


def _slotted(declared: type[T], methods: Mapping[str, Any]) -> type[T]:
    written = vars(declared)
    names = tuple(written.get("__annotations__", ()))
    left_out = {"__dict__", "__weakref__", *names}
    init = _init_and_check if "__post_init__" in written else _init
    own = {name: value for name, value in written.items() if name not in left_out}
    base: Any = next((each for each in declared.__mro__[1:] if "_setters" in vars(each)), _NO_BASE)
    new = tuple(name for name in names if name not in base.__match_args__)
    fields = (*base.__match_args__, *new)
    namespace = {"__init__": init, **methods, **own}
    namespace.update(
        __slots__=new,
        __match_args__=fields,
        __signature__=_SIGNATURE,
        __dataclass_fields__=_DATACLASS_FIELDS,
        __dataclass_params__=_DATACLASS_PARAMS,
        _defaults=base._defaults | {name: written[name] for name in names if name in written},
        _places={name: place for place, name in enumerate(fields)},
        _first=repeat(None, _OFTEN),
    )
    kind: Any = type(declared)
    made = kind(declared.__name__, declared.__bases__, namespace)
    made._setters = (*base._setters, *(vars(made)[name].__set__ for name in new))
    made._content = attrgetter(*fields) if len(fields) > 1 else _values
    return made  # type: ignore[no-any-return]


class _NO_BASE:  # noqa: N801  # what a record without a base has of one
    __match_args__ = ()
    _setters = ()
    _defaults: Mapping[str, Any] = {}


# Records of a class of which as many were made get a constructor that is compiled for them.
_OFTEN = 64


def _init(self: Any, *values: Any, **named: Any) -> None:
    cls = type(self)
    if next(cls._first, cls) is cls and vars(cls).get("__init__") in _CONSTRUCTORS:
        cls.__init__ = _compiled(cls)
    if named or len(values) != len(cls._setters):
        values = _arguments(cls, values, named)
    for put, value in zip(cls._setters, values):  # noqa: B905  # as many: strict takes longer
        put(self, value)


def _init_and_check(self: Any, *values: Any, **named: Any) -> None:
    _init(self, *values, **named)
    self.__post_init__()


def _compiled(cls: Any) -> Any:
    """What does the same as the present `__init__` in a fifth of the time: plain assignments, while
    the record is of a class like its own that allows them. What is compiled is made of the names of
    fields alone, as by `dataclasses`."""
    names, defaults = cls.__match_args__, cls._defaults
    known: dict[str, Any] = {f"__{name}": default for name, default in defaults.items()}
    turn = vars(object)["__class__"].__set__
    known |= {"__cls__": cls, "__type__": type, "__any__": cls.__init__, "__turn__": turn}
    lines = ["if __type__(self) is not __cls__:", f"  return __any__(self, {', '.join(names)})"]
    frozen = cls.__setattr__ is _setattr
    if frozen:
        known["__open__"] = _open(cls)
        lines.append("__turn__(self, __open__)")
    for name in names:
        is_made = type(defaults.get(name)) is _Factory
        value = f"__{name}.make() if {name} is __{name} else {name}" if is_made else name
        lines.append(f"self.{name} = {value}")
    lines += ["self.__class__ = __cls__"] * frozen
    lines += ["self.__post_init__()"] * hasattr(cls, "__post_init__")
    given = ", ".join(f"{name}=__{name}" if name in defaults else name for name in names)
    exec("\n  ".join([f"def __init__(self, {given}):", *lines]), known)
    return known["__init__"]


def _open(cls: Any) -> Any:
    """A class with the slots of a frozen one, whose fields can be set."""
    methods = {"__slots__": cls.__slots__, "__setattr__": object.__setattr__}
    methods["__orig_bases__"] = ()  # else `Generic` refuses to be a base without parameters
    return type(cls)(cls.__name__, cls.__bases__, methods)


def _arguments(cls: Any, values: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    """The values of all fields, by default where they are not given.

    Raises:
        TypeError: one is missing, of no field or given twice.
    """
    names, defaults = cls.__match_args__[len(values) :], cls._defaults
    try:
        rest = [named.pop(name) if name in named else defaults[name] for name in names]
    except KeyError as error:
        raise TypeError(f"{cls.__name__} needs {error}") from None
    if named or len(values) > len(cls._setters):
        what = f"{min(named)!r}" if named else f"{len(values)} values"
        raise TypeError(f"{cls.__name__} does not take {what}")
    if _Factory in map(type, rest):
        rest = [value.make() if type(value) is _Factory else value for value in rest]
    return (*values, *rest)


def _values(self: Any) -> list[Any]:
    return [getattr(self, name) for name in self.__match_args__]


def _repr(self: Any) -> str:
    shown = (f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _eq(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    content = type(self)._content
    return content(self) == content(other)


def _hash(self: Any) -> int:
    return hash(tuple(_values(self)))


def _getstate(self: Any) -> Any:
    """The values of the fields; with what else a subclass without slots has."""
    more = getattr(self, "__dict__", None)
    return (_values(self), more) if more else _values(self)


def _setstate(self: Any, state: Any) -> None:
    values, more = state if isinstance(state, tuple) else (state, {})
    for name, value in zip(self.__match_args__, values, strict=True):
        object.__setattr__(self, name, value)
    if more:
        self.__dict__.update(more)


def _setattr(self: Any, name: str, value: Any) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


class _Signature:
    """What `inspect` asks a record for, made when it does."""

    def __get__(self, instance: object, cls: Any) -> inspect.Signature:
        return inspect.signature(_as_dataclass(cls))


class _DataclassFields:
    """What `dataclasses` asks a record for, made when it does."""

    def __get__(self, instance: object, cls: Any) -> Mapping[str, Any]:
        fields: Mapping[str, Any] = _as_dataclass(cls).__dataclass_fields__
        return fields


class _DataclassParams:
    """What `dataclasses` asks the base of a dataclass for, made when it does."""

    def __get__(self, instance: object, cls: Any) -> Any:
        return _as_dataclass(cls).__dataclass_params__


@cache
def _as_dataclass(cls: Any) -> Any:
    """A dataclass with the fields of a record."""
    frozen = cls.__setattr__ is _setattr
    return dataclasses.make_dataclass(cls.__name__, _fields(cls), frozen=frozen)


def _fields(cls: Any) -> list[tuple[str, Any, Any]]:
    """Name, type and field of each."""
    types: dict[str, Any] = {}
    for each in reversed(cls.__mro__):
        types |= vars(each).get("__annotations__", {})
    defaults = cls._defaults
    return [(name, types[name], _field(defaults, name)) for name in cls.__match_args__]


def _field(defaults: Mapping[str, Any], name: str) -> Any:
    """The field as `dataclasses` declares it."""
    if name not in defaults:
        return dataclasses.field()
    default = defaults[name]
    if isinstance(default, _Factory):
        return dataclasses.field(default_factory=default.make)
    return dataclasses.field(default=default)


_CONSTRUCTORS = (_init, _init_and_check)  # a subclass may have one of its own
_METHODS = {
    "__repr__": _repr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
}
_COMPARED = {"__eq__": _eq, "__hash__": _hash}
_UNHASHED = {"__eq__": _eq, "__hash__": None}
_FROZEN = {"__setattr__": _setattr, "__delattr__": _delattr}
_SIGNATURE, _DATACLASS_FIELDS = _Signature(), _DataclassFields()
_DATACLASS_PARAMS = _DataclassParams()
