"""The rows of files: images, sound, arrays and tables."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tflite_ort.optional import optional_module
from tflite_ort.prediction.array_files import (
    DAMAGED,
    Array,
    InputError,
    array_of,
    cast,
    fitted,
    loaded_array,
    read_npz,
)
from tflite_ort.prediction.images import decoded_image, read_image, takes_images
from tflite_ort.prediction.preparation import Preparation, columns_of, row_of
from tflite_ort.prediction.sound import open_wav
from tflite_ort.prediction.tensors import InputColumn
from tflite_ort.prediction.units import (
    ANY,
    ARRAY,
    ARRAYS,
    IMAGES,
    SOUND,
    TABLE,
    Unit,
    open_table,
    row_count,
    suffix_of,
)

# What a row can be wrong with; what it says is noted in the results.
ROW_ERRORS = (InputError, OSError, MemoryError)

# A row by input; or why there is none.
Row = list[Array] | Exception
# The columns of a unit that is part of a table.
Table = Mapping[str, Any]


class Tables:
    """The tables that one thread reads from, one at a time, from their beginning to their end."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._arrays: dict[str, Array] = {}
        self._file: Any = None
        self._after = self._group_end = 0
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
        if suffix_of(unit.path) == TABLE:
            return self._of_parquet(unit)
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

    def _of_parquet(self, unit: Unit) -> Table:
        if self._path != unit.path:
            self._file, self._path = open_table(unit.path), unit.path
            self._after = self._group_end = 0
        arrow: Any = optional_module("pyarrow")
        try:
            batches = list(self._batches_of(unit))
        except (OSError, arrow.ArrowException) as error:
            self._path = None
            raise InputError(f"{unit.path} cannot be read: {error}") from error
        table = arrow.Table.from_batches(batches).combine_chunks()
        if several := [name for name, n in Counter(table.column_names).items() if n > 1]:
            raise InputError(f"{unit.path} has several columns {several[0]!r}")
        return {name: table.column(name).combine_chunks() for name in table.column_names}

    def _batches_of(self, unit: Unit) -> Iterator[Any]:
        """The record batches of a unit, from where the last one has ended if that is before it."""
        place, last = unit.first, unit.first + unit.count
        while place < last:
            if not self._after <= place < self._group_end:
                self._enter(place)
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

    def _enter(self, place: int) -> None:
        """Go to the beginning of the group of rows in which `place` is.

        Raises:
            InputError: there is none.
        """
        start = 0
        for group in range(self._file.metadata.num_row_groups):
            end = start + self._file.metadata.row_group(group).num_rows
            if place < end:
                break
            start = end
        else:
            raise InputError(f"{self._path} has no row {place}")
        self._after, self._group_end = start, end
        self._batches = self._file.iter_batches(batch_size=256, row_groups=[group])


def _before(first: Any, others: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from others


def rows_of(
    unit: Unit,
    table: Table | Exception | None,
    inputs: Sequence[InputColumn],
    preparation: Preparation,
    columns: Mapping[str, str],
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
    columns: Mapping[str, str],
) -> Iterator[Row]:
    suffix = suffix_of(path)
    if suffix == ARRAYS:
        arrays = read_npz(Path(path))
        names = columns_of(arrays, inputs, columns)
        yield [_sample(arrays[names[each.name]], each, path) for each in inputs]
        return
    column = _only(inputs)
    if suffix == SOUND:
        for stretch in preparation.ear_of(column).stretches(open_wav(Path(path))):
            yield [row_of(stretch, column)]
    elif suffix == ARRAY:
        yield [_sample(loaded_array(Path(path)), column, path)]
    else:
        yield [row_of(_picture(path, column, preparation), column)]


def _picture(path: str, column: InputColumn, preparation: Preparation) -> Array:
    """The picture in a file, which may have any suffix."""
    try:
        how = preparation.normalization_of(column)
        return read_image(Path(path), column.details, how)
    except InputError as error:
        if suffix_of(path) in IMAGES:
            raise
        others = ", ".join((ARRAY, ARRAYS, SOUND, TABLE))
        raise InputError(f"{error}; files of other kinds have the suffix {others}") from error


def _only(inputs: Sequence[InputColumn]) -> InputColumn:
    """The input of a model that has one.

    Raises:
        InputError: it has others.
    """
    if len(inputs) != 1:
        raise InputError(f"the model has {len(inputs)} inputs: .npz and .parquet files name them")
    return inputs[0]


def _sample(array: Array, column: InputColumn, path: str) -> Array:
    """The row of a file that holds one sample."""
    values = fitted(array, column.details, path)
    if column.leads and len(values) != 1:
        raise InputError(f"{path} holds {len(values)} samples: --rows makes a row of each")
    return row_of(values, column)


def _rows_of_table(
    unit: Unit,
    table: Table,
    inputs: Sequence[InputColumn],
    preparation: Preparation,
    columns: Mapping[str, str],
) -> Iterator[Row]:
    if suffix_of(unit.path) == ARRAY:
        names = {_only(inputs).name: ""}
    else:
        names = columns_of(table, inputs, columns)
    origins = {name: f"column {name!r}" if name else unit.path for name in table}
    wanted = [names[each.name] for each in inputs]
    if any(len(table[name]) != unit.count for name in wanted):
        raise InputError(f"{unit.path} has changed since the job began")
    cells = [
        _cells(table[name], each, preparation, origins[name])
        for name, each in zip(wanted, inputs, strict=True)
    ]
    for row in zip(*cells, strict=True):
        wrong = [cell for cell in row if isinstance(cell, Exception)]
        yield wrong[0] if wrong else [cell for cell in row if not isinstance(cell, Exception)]


def _cells(
    column: Any, given: InputColumn, preparation: Preparation, origin: str
) -> Iterator[Array | Exception]:
    """The values of one input."""
    values = column if isinstance(column, np.ndarray) else _unpacked(column, given)
    stored = not isinstance(values, np.ndarray)
    for value in values:
        try:
            read = _as_python(value, origin) if stored else value
            yield _cell(read, given, preparation, origin)
        except ROW_ERRORS as error:
            yield error


def _as_python(value: Any, origin: str) -> Any:
    """A cell of an arrow array as an object of Python."""
    arrow: Any = optional_module("pyarrow")
    try:
        return value.as_py()
    except (*DAMAGED, arrow.ArrowException) as error:
        raise InputError(f"{origin} holds what cannot be read: {error}") from error


def _cell(value: Any, given: InputColumn, preparation: Preparation, origin: str) -> Array:
    if isinstance(value, dict):  # a file with its name, as data sets hold images
        value = value.get("bytes")
    if value is None:
        raise InputError(f"{origin} has no value here")
    if isinstance(value, bytes) and takes_images(given.details):
        how = preparation.normalization_of(given)
        return row_of(decoded_image(value, given.details, how, f"the image in {origin}"), given)
    strings = np.dtype(given.details["dtype"]).kind in "SO"
    array = array_of(value, origin, np.object_ if strings else None)
    row = given.row
    if array.dtype.kind == "O" and not strings:
        raise InputError(f"{origin} holds no numbers")
    if -1 not in row and array.size == math.prod(row) and _has_order(array.shape, row):
        array = array.reshape(row)
    fits = array.ndim == len(row) and all(
        declared in (-1, size) for declared, size in zip(row, array.shape, strict=True)
    )
    if not fits:
        raise InputError(f"{origin} has shape {array.shape}, input {given.name!r} takes {row}")
    return cast(array, given.details, origin)


def _unpacked(column: Any, given: InputColumn) -> Any:
    """The cells of an arrow array; at once where all are numbers and have the size of a row."""
    arrow: Any = optional_module("pyarrow")
    flat = column
    while flat.null_count == 0 and _is_list(arrow, flat.type):
        flat = flat.flatten()
    plain = arrow.types.is_integer(flat.type) or arrow.types.is_floating(flat.type)
    size = len(column) * math.prod(given.row)
    whole = plain and flat.null_count == 0 and -1 not in given.row and len(flat) == size
    if whole and _even(arrow, column, given.row):
        return flat.to_numpy(zero_copy_only=False).reshape(len(column), *given.row)
    return column


def _has_order(shape: Sequence[int], row: Sequence[int]) -> bool:
    """Whether as many elements of `shape` stand in the order of a row: tables hold flat lists, and
    sizes of 1 do not matter."""
    return len(shape) == 1 or [n for n in shape if n != 1] == [n for n in row if n != 1]


def _is_list(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _even(arrow: Any, column: Any, row: Sequence[int]) -> bool:
    """Whether all lists have the same length, and all in them, in the order of a row."""
    compute: Any = optional_module("pyarrow.compute")
    shape: list[int] = []
    while _is_list(arrow, column.type):
        lengths = compute.list_value_length(column)
        sizes = lengths.unique().to_pylist()
        if len(sizes) > 1:
            return False
        shape += sizes
        column = column.flatten()
    return _has_order(shape, row)
