"""Results as columns: what a job writes of each row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tflite_ort.prediction.array_files import Array, InputError
from tflite_ort.prediction.predictor import LABEL, SCORE, labelled
from tflite_ort.prediction.tensors import OutputColumn, free_name, ragged

SOURCE, ROW, ERROR = "source", "row", "error"
# What follows the name of a column whose shapes differ in that of its shapes.
SHAPE = "_shape"
# What follows the name of an output in that of its best classes.
TOP = "_top"
# Vectors of more scores are shown by their best classes.
_LONG = 16

TEXT = np.dtype(np.str_)
BYTES = np.dtype(np.object_)


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of values.

    Args:
        name: unique, and none of `SOURCE`, `ROW` and `ERROR`.
        dtype: numbers, `TEXT`, or `BYTES`, of which each is an object.
        row: the sizes of one row; None where they differ from row to row.
        scale, zero_point: of codes, real values are scale * (code - zero_point); else 0.
    """

    name: str
    dtype: np.dtype[Any]
    row: tuple[int, ...] | None = ()
    scale: float = 0.0
    zero_point: int = 0

    @property
    def stored(self) -> np.dtype[Any]:
        """The dtype that files have: float32 for those that numpy has no name for."""
        if self.dtype.kind != "V":
            return self.dtype
        return np.dtype(np.int8 if "int" in self.dtype.name else np.float32)


@dataclass(frozen=True, slots=True)
class Done:
    """What of a job is done.

    Args:
        units, rows: how many.
        failed: rows with an error.
        error: that of the first of these; empty where there is none.
    """

    units: int
    rows: int
    failed: int
    error: str


@dataclass(slots=True)
class Block:
    """Rows of results.

    Args:
        sources, numbers: by row, its file and its number in it.
        errors: by row, why it has no values; None where it has.
        values: by column, those of the rows without error, in their order.
    """

    sources: list[str]
    numbers: list[int]
    errors: list[str | None]
    values: list[Array] = field(default_factory=list)

    @property
    def failed(self) -> int:
        """How many rows have no values."""
        return sum(error is not None for error in self.errors)

    def done(self, units: int) -> Done:
        """What is done with the rows of so many units."""
        error = next(filter(None, self.errors), "")
        return Done(units, len(self.sources), self.failed, error)

    @property
    def valid(self) -> Array:
        """Whether each row has values."""
        return np.array([error is None for error in self.errors], np.bool_)

    @property
    def size(self) -> int:
        """Bytes of the values."""
        return sum(_bytes(each) for each in self.values)


def _bytes(column: Array) -> int:
    if column.dtype.kind != "O":
        return column.nbytes
    return sum(each.nbytes if isinstance(each, np.ndarray) else len(each) for each in column.flat)


def joined(blocks: Sequence[Block]) -> Block:
    """Blocks one after the other."""
    return Block(
        [each for block in blocks for each in block.sources],
        [each for block in blocks for each in block.numbers],
        [each for block in blocks for each in block.errors],
        [np.concatenate(columns) for columns in zip(*(b.values for b in blocks), strict=True)],
    )


def result_columns(
    outputs: Sequence[OutputColumn], keep: Sequence[str] = (), top: int = 0
) -> list[ResultColumn]:
    """The columns that results of a model have, those of labels after their output.

    Args:
        keep: columns of tables that come first, as texts.
        top: so many classes stand in the place of long vectors of scores; 0: none do.

    Raises:
        InputError: a column that is kept has the name of one of ours.
    """
    taken = {SOURCE, ROW, ERROR}
    if ours := taken.intersection(keep):
        raise InputError(
            f"--keep {', '.join(sorted(ours))}: the results have such a column already"
        )
    taken |= {f"{each.name}{SHAPE}" for each in outputs if each.row is None} | {*keep}
    names = [free_name(each.name, taken) for each in outputs]
    found = [ResultColumn(name, TEXT) for name in keep]
    for each, name in zip(outputs, names, strict=True):
        short = top > 0 and is_long(each)
        if not short:
            found.append(ResultColumn(name, each.dtype, each.row, each.scale, each.zero_point))
        if each.labelled:
            score = np.dtype(np.float32)
            found.append(ResultColumn(free_name(f"{each.name}{LABEL}", taken), TEXT))
            found.append(ResultColumn(free_name(f"{each.name}{SCORE}", taken), score))
            if short:
                found.append(ResultColumn(free_name(f"{each.name}{TOP}", taken), TEXT))
        elif each.by_value and each.labels and each.row is not None:
            found.append(ResultColumn(free_name(f"{each.name}{LABEL}", taken), TEXT, each.row))
    return found


def result_values(
    outputs: Sequence[OutputColumn], made: Sequence[Array], top: int = 0
) -> list[Array]:
    """The values of `result_columns` for what the model has made, but those that are kept."""
    values = []
    for column, rows in zip(outputs, made, strict=True):
        short = top > 0 and is_long(column)
        values += [*([] if short else [rows]), *labelled(column, rows).values()]
        if short:
            values.append(_top(column, rows, top))
    return values


def is_long(column: OutputColumn) -> bool:
    """Whether an output is a vector of more scores than one reads."""
    return column.labelled and len(column.labels) > _LONG


def _top(column: OutputColumn, rows: Array, count: int) -> Array:
    """The best classes of each row with their scores, as text."""
    real = rows.astype(np.float32)
    real = (
        (real - np.float32(column.zero_point)) * np.float32(column.scale) if column.scale else real
    )
    order = np.argsort(-real, axis=-1, kind="stable")[:, :count]
    return ragged(
        [
            "; ".join(f"{column.labels[place]} {row[place]:.4g}" for place in places)
            for row, places in zip(real, order.tolist(), strict=True)
        ]
    )


def no_values(columns: Iterable[ResultColumn]) -> list[Array]:
    """The arrays of the columns for a result without rows."""
    return [
        ragged([]) if each.row is None else np.zeros((0, *each.row), _in_memory(each.dtype))
        for each in columns
    ]


def _in_memory(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return BYTES if dtype == TEXT else dtype
