"""Mutations by the declaration of the tables: any field of any table of the file."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from tests.fuzz import edges
from tests.fuzz.tree import Unfit, operator_at, pick, set_at, with_operator
from tflite_ort.schema import Model
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
    Vector,
    View,
)
from tflite_ort.schema.file.model import Buffer
from tflite_ort.schema.file.tables import Table, fields_of

Step = tuple[str, int | None]
Path = tuple[Step, ...]


def _children(table: Table) -> Iterator[tuple[Step, Table]]:
    for name in fields_of(type(table)):
        value = getattr(table, name)
        if isinstance(value, Table):
            yield (name, None), value
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, Table):
                    yield (name, i), item


def drawn_path(draw: random.Random, table: Table) -> tuple[Path, Table]:
    """A table somewhere in the tree; deep ones are as likely as high ones."""
    path: list[Step] = []
    while True:
        below = [item for item in _children(table) if not isinstance(item[1], Buffer)]
        if not below or draw.random() < 0.12:
            return tuple(path), table
        names = sorted({step[0] for step, _ in below})
        name = draw.choice(names)
        step, table = draw.choice([item for item in below if item[0][0] == name])
        path.append(step)


def replaced(root: Table, path: Path, table: Table) -> Table:
    """`root` with another table at the end of `path`."""
    if not path:
        return table
    (name, at), rest = path[0], path[1:]
    value = getattr(root, name)
    if at is None:
        return replace(root, **{name: replaced(value, rest, table)})  # type: ignore[type-var]
    below = replaced(value[at], rest, table)
    return replace(root, **{name: set_at(value, at, below)})  # type: ignore[type-var]


def any_field(draw: random.Random, model: Model) -> Model:
    """One field of one table."""
    path, table = drawn_path(draw, model)
    changed = with_field(draw, table)
    result = replaced(model, path, changed)
    assert isinstance(result, Model)
    return result


def any_option(draw: random.Random, model: Model) -> Model:
    """One option of an operator."""
    graph, number, operator = operator_at(draw, model)
    if operator.options is None:
        raise Unfit
    return with_operator(model, graph, number, options=with_field(draw, operator.options))


def with_field(draw: random.Random, table: Table) -> Table:
    """`table` with one field changed."""
    fields = {
        name: field
        for name, field in fields_of(type(table)).items()
        if not isinstance(field, Local)
    }
    name = pick(draw, list(fields))
    value = _changed(draw, fields[name], getattr(table, name))
    return replace(table, **{name: value})  # type: ignore[type-var]


def _changed(draw: random.Random, field: Field, old: Any) -> Any:
    match field:
        case Scalar(enum=None):
            return edges.near(draw, old, field.number)
        case Scalar() | OperatorCodeNumber():
            assert field.enum is not None
            return draw.choice(list(field.enum))
        case String():
            return draw.choice(edges.TEXTS)
        case Strings():
            return _resized(draw, old or (), lambda: draw.choice(edges.TEXTS))
        case Vector():
            return _vector(draw, field, old)
        case View():
            return _view(draw, field, old)
        case Child():
            return None if old is not None and draw.random() < 0.5 else field.table()
        case Children():
            return _resized(draw, old, field.table)
        case OneOf():
            _, union = draw.choice(field.choices)
            return None if draw.random() < 0.2 else draw.choice(union.members)()
    raise Unfit


def _vector(draw: random.Random, field: Vector, old: Any) -> Any:
    def one() -> Any:
        if field.enum is not None:
            return draw.choice(list(field.enum))
        return edges.value(draw, field.number)

    if draw.random() < 0.1:
        return field.default if draw.random() < 0.5 else ()
    if old and draw.random() < 0.6:
        return set_at(old, draw.randrange(len(old)), one())
    return _resized(draw, old or (), one)


def _resized(draw: random.Random, old: tuple[Any, ...], make: Any) -> tuple[Any, ...]:
    kind = draw.randrange(5)
    if kind == 0 and old:
        at = draw.randrange(len(old))
        return (*old[:at], *old[at + 1 :])
    if kind == 1 and old:
        return (*old, draw.choice(old))
    if kind == 2 and len(old) > 1:
        return tuple(draw.sample(old, len(old)))
    if kind == 3 and old:
        return set_at(old, draw.randrange(len(old)), make())
    return (*old, *(make() for _ in range(draw.choice((1, 1, 2, 5)))))


def _view(draw: random.Random, field: View, old: Any) -> Any:
    if old is None or draw.random() < 0.2:
        size = draw.choice((0, 1, 2, 3, 4, 8, 17))
        numbers = [edges.value(draw, field.number) for _ in range(size)]
        return np.array(numbers, field.number.dtype) if draw.random() < 0.8 else None
    new = np.array(old)
    if draw.random() < 0.3 or not new.size:
        return np.resize(new, max(0, new.size + draw.choice((-2, -1, 1, 2))))
    new[draw.randrange(new.size)] = edges.value(draw, field.number)
    return new
