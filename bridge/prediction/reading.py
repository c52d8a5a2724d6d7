"""The rows of files: images, sound, arrays and tables."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import Array, InputError, loaded_array, read_npz
from tflite_ort.prediction.cells import ROW_ERRORS, Cells, joined_cells, rows_of_file, sample
from tflite_ort.prediction.preparation import Preparation, columns_of
from tflite_ort.prediction.record_files import RECORD_FILES, Records, open_records, readable
from tflite_ort.prediction.tensors import InputColumn
from tflite_ort.prediction.units import ANY, ARRAY, ARRAYS, Unit, row_count, suffix_of

# A row by input; or why there is none.
Row = list[Array] | Exception
# The columns of a unit that is part of a table.
Table = Mapping[str, Any]
# By input, the columns of a table that it reads.
Columns = Mapping[str, Sequence[str]]

# Of the rows that are in memory at a time: an arrow array holds no more texts.
_MOST_BYTES = (1 << 31) - 1


class Tables:
    """The tables that one thread reads from, one at a time, from their beginning to their end."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._arrays: dict[str, Array] = {}
        self._file: Records | None = None
        self._after = self._stretch_end = 0
        self._batches: Iterator[Any] = iter(())

    def loaded(self, unit: Unit) -> Table | Exception | None:
        """The columns of a unit of a table, or why there are none; None of any other unit."""
        if not unit.table:
            return None
        try:
            return self._of(unit)
        except ROW_ERRORS as error:
            return error

    def _of(self, unit: Unit) -> Table:
        if unit.count == ANY:
            row_count(unit.path)  # says what is wrong with it
            raise InputError(f"{unit.path} has changed since the job began")
        if suffix_of(unit.path) in RECORD_FILES:
            return self._of_records(unit)
        if suffix_of(unit.path) == ARRAY:
            columns = {"": loaded_array(Path(unit.path), mapped=True)}
        else:
            if self._path != unit.path:
                self._arrays, self._path = read_npz(Path(unit.path)), unit.path
            columns = self._arrays
        last = unit.first + unit.count
        return {
            name: np.asarray(array[unit.first : last])
            for name, array in columns.items()
            if array.ndim
        }

    def _of_records(self, unit: Unit) -> Table:
        if self._path != unit.path:
            self._file, self._path = open_records(unit.path), unit.path
            self._after = self._stretch_end = 0
        arrow: Any = optional_module("pyarrow")
        try:
            with readable(unit.path, "cannot be read"):
                batches = list(_bounded(self._batches_of(unit), unit))
                table = arrow.Table.from_batches(batches).combine_chunks()
                names = table.column_names
        except (InputError, OSError):
            self._path = None
            raise
        if several := [name for name, n in Counter(names).items() if n > 1]:
            raise InputError(f"{unit.path} has several columns {several[0]!r}")
        return {name: table.column(name).combine_chunks() for name in names}

    def _batches_of(self, unit: Unit) -> Iterator[Any]:
        """The record batches of a unit, from where the last one has ended if that is before it."""
        place, last = unit.first, unit.first + unit.count
        assert self._file is not None
        while place < last:
            if not self._after <= place < self._stretch_end:
                self._after, self._stretch_end, self._batches = self._file.batches(place)
            batch = next(self._batches, None)
            if batch is None:
                raise InputError(f"{unit.path} has fewer rows than it says")
            begin, self._after = self._after, self._after + batch.num_rows
            if self._after > place:
                taken = batch.slice(place - begin, last - place)
                place += taken.num_rows
                if self._after > last:  # the rest is the next unit's
                    rest = batch.slice(batch.num_rows - (self._after - last))
                    self._batches, self._after = _before(rest, self._batches), last
                yield taken


def _bounded(batches: Iterator[Any], unit: Unit) -> Iterator[Any]:
    """The record batches of a unit.

    Raises:
        InputError: together they are too large.
    """
    size = 0
    for batch in batches:
        size += batch.nbytes
        if size > _MOST_BYTES:
            rows = f"rows {unit.first} to {unit.first + unit.count - 1}"
            raise InputError(f"{unit.path}: {rows} have more than {_MOST_BYTES} bytes")
        yield batch


def _before(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


def rows_of(
    unit: Unit,
    table: Table | Exception | None,
    inputs: Sequence[InputColumn],
    preparation: Preparation,
    columns: Columns,
) -> Iterator[tuple[int, Row]]:
    """(number, row) of all rows of a unit; one of them stands for a file that cannot be read.

    Args:
        table: what `Tables.loaded` gives of it.
        columns: of a table, by input.
    """
    number = unit.first
    try:
        if isinstance(table, Exception):
            raise table
        if table is None:
            rows: Iterator[Row] = _rows_of_file(unit.path, inputs, preparation, columns)
        else:
            rows = _rows_of_table(unit, table, inputs, preparation, columns)
        for row in rows:
            yield number, row
            number += 1
    except ROW_ERRORS as error:
        last = number + 1 if unit.count == ANY else unit.first + unit.count
        yield from ((left, error) for left in range(number, last))


def _rows_of_file(
    path: str,
    inputs: Sequence[InputColumn],
    preparation: Preparation,
    columns: Columns,
) -> Iterator[Row]:
    if suffix_of(path) != ARRAYS:
        for row in rows_of_file(path, _only(inputs), preparation):
            yield [row]
        return
    arrays = read_npz(Path(path))
    names = read_columns(arrays, inputs, columns)
    if several := [name for name, listed in names.items() if len(listed) > 1]:
        raise InputError(f"input {several[0]!r} reads several columns: --rows makes rows of them")
    yield [sample(arrays[names[each.name][0]], each, path) for each in inputs]


def _only(inputs: Sequence[InputColumn]) -> InputColumn:
    """The input of a model that has one.

    Raises:
        InputError: it has others.
    """
    if len(inputs) != 1:
        raise InputError(f"the model has {len(inputs)} inputs: .npz files and tables name them")
    return inputs[0]


def read_columns(
    table: Table, inputs: Sequence[InputColumn], columns: Columns
) -> Mapping[str, Sequence[str]]:
    """The columns of a table that each input reads: one, or several of numbers.

    Raises:
        InputError: an input has none.
    """
    if not columns and _is_row(table, inputs):
        return {inputs[0].name: list(table)}
    for listed in columns.values():
        if missing := [name for name in listed if name not in table]:
            there = ", ".join(map(repr, table))
            raise InputError(f"no column {missing[0]!r}; there are {there}")
    single = columns_of(table, inputs, {name: listed[0] for name, listed in columns.items()})
    return {name: columns.get(name, [column]) for name, column in single.items()}


def _is_row(table: Table, inputs: Sequence[InputColumn]) -> bool:
    """Whether a table has a column for each number of the only input."""
    if len(inputs) != 1 or inputs[0].name in table or -1 in inputs[0].row:
        return False
    return 1 < len(table) == math.prod(inputs[0].row)


def _rows_of_table(
    unit: Unit,
    table: Table,
    inputs: Sequence[InputColumn],
    preparation: Preparation,
    columns: Columns,
) -> Iterator[Row]:
    unnamed = suffix_of(unit.path) == ARRAY
    names = {_only(inputs).name: [""]} if unnamed else read_columns(table, inputs, columns)
    wanted = [names[each.name] for each in inputs]
    if any(len(table[name]) != unit.count for listed in wanted for name in listed):
        raise InputError(f"{unit.path} has changed since the job began")
    folder = os.path.dirname(unit.path)
    found = []
    for each, listed in zip(inputs, wanted, strict=True):
        origins = [f"column {name!r}" if name else unit.path for name in listed]
        cells = [Cells(each, preparation, origin, folder, unit.first) for origin in origins]
        held = [table[name] for name in listed]
        found.append(joined_cells(cells, held) if len(held) > 1 else cells[0].of(held[0]))
    for row in zip(*found, strict=True):
        wrong = [cell for cell in row if isinstance(cell, Exception)]
        yield wrong[0] if wrong else [cell for cell in row if not isinstance(cell, Exception)]
