"""What a worker does: read units, run the model, and give the rows of results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import numpy as np

from tflite_ort.prediction.array_files import Array, InputError
from tflite_ort.prediction.cells import ROW_ERRORS
from tflite_ort.prediction.preparation import Preparation, checked_columns
from tflite_ort.prediction.reading import (
    Columns,
    Row,
    Table,
    Tables,
    read_columns,
    rows_of,
)
from tflite_ort.prediction.record_files import RECORD_FILES
from tflite_ort.prediction.results import Block, no_values, result_columns, result_values
from tflite_ort.prediction.row_model import LARGEST_BATCH, ModelSource, RowModel
from tflite_ort.prediction.tensors import InputColumn, ragged
from tflite_ort.prediction.units import Unit, suffix_of
from tflite_ort.prediction.wanted import Drawer, Wanted, kept_cells
from tflite_ort.schema import BridgeError

Loaded = Table | Exception | None

# Rows are run at the latest when those that are read have so many bytes.
_AHEAD_BYTES = 24 << 20

# Of how many columns the names are said, and after how many rows that do not fit none will.
_FEW, _MANY = 4, 16
# What a row, or the model over it, can fail with.
_FAILURES = (BridgeError, *ROW_ERRORS)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a worker is made from, in any process.

    Args:
        model, batch_size: as of `RowModel`.
        arguments: of each `Interpreter`.
        preparation: what images and sound become.
        columns: of tables, by input: those whose numbers make a row, or one.
        wanted: what results have besides the outputs.
    """

    model: ModelSource
    batch_size: int | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    preparation: Preparation = field(default_factory=Preparation)
    columns: Columns = field(default_factory=dict)
    wanted: Wanted = field(default_factory=Wanted)


class Worker:
    """Runs groups of units; several threads may call it at a time."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self._model = RowModel(setup.model, setup.batch_size, 1, setup.arguments)
        checked_columns(setup.columns, self._model.inputs)
        wanted = setup.wanted
        self._outputs = wanted.named(self._model.outputs)
        self.columns = result_columns(self._outputs, wanted.keep, wanted.top)
        self._drawer = Drawer(*self._model.described, wanted) if wanted.draw else None

    @property
    def inputs(self) -> Sequence[InputColumn]:
        """The inputs of the model."""
        return self._model.inputs

    @property
    def rows_at_once(self) -> int:
        """How many rows the model takes at once."""
        return self._model.batch_size

    @property
    def on_cpu(self) -> bool:
        """Whether the model runs on the cores of the host."""
        return self._model.on_cpu

    def __call__(self, units: Sequence[Unit], loaded: Sequence[Loaded] | None = None) -> Block:
        """The rows of results of some units.

        Args:
            loaded: what `Tables.loaded` gives of each; None: it is read here.
        """
        tables = Tables()
        block = Block([], [], [])
        waiting: list[tuple[int, list[Array]]] = []
        parts: list[list[Array]] = []
        kept: list[list[str]] = []
        # Reading and the network take the caches from each other: they take long turns.
        ahead, size = max(LARGEST_BATCH, self._model.batch_size), 0
        for place, unit in enumerate(units):
            table = tables.loaded(unit) if loaded is None else loaded[place]
            cells = kept_cells(table, self._setup.wanted.keep, unit.path)
            for number, row in self._rows(unit, table):
                kept.append([c[number - unit.first] if c else "" for c in cells])
                if not isinstance(row, Exception):
                    waiting.append((len(block.sources), row))
                block.sources.append(unit.path)
                block.numbers.append(number)
                block.errors.append(_error_line(row) if isinstance(row, Exception) else None)
                if isinstance(row, list):
                    size += sum(array.nbytes for array in row)
                if len(waiting) >= ahead or size >= _AHEAD_BYTES:
                    parts += self._run_all(waiting, block)
                    waiting, size = [], 0
        parts += self._run_all(waiting, block)
        values = zip(*parts, strict=True)
        block.values = [np.concatenate(e) for e in values] if parts else no_values(self.columns)
        if parts and self._setup.wanted.keep:
            whole = [each for each, error in zip(kept, block.errors, strict=True) if error is None]
            block.values = [*map(ragged, zip(*whole, strict=True)), *block.values]
        return block

    def check(self, unit: Unit) -> None:
        """Read the first rows of a table, until one fits the model. A file that cannot be read, and
        a few rows that do not fit, have errors in the results.

        Raises:
            InputError: a column is not there, or none of many rows fits.
        """
        table = Tables().loaded(unit)
        if not isinstance(table, Mapping) or suffix_of(unit.path) not in RECORD_FILES:
            return
        kept_cells(table, self._setup.wanted.keep, unit.path)
        try:
            read_columns(table, self._model.inputs, self._setup.columns)
        except InputError as error:
            raise InputError(f"{unit.path}: {error}{self._line(table)}") from error
        for count, (_, row) in enumerate(self._rows(unit, table), 1):
            if not isinstance(row, Exception):
                return
            if count == _MANY:
                said = f"none of the first {_MANY} rows of {unit.path} fits: {_error_line(row)}"
                raise InputError(f"{said}{self._line(table)}")

    def _line(self, table: Any) -> str:
        """What to add to a command whose table does not fit."""
        there, inputs = list(table or ()), self._model.inputs
        if not isinstance(table, Mapping) or not there:
            return ""
        (column, *_) = inputs
        count = math.prod(column.row) if -1 not in column.row else 1
        names = there[:count] if 1 < count <= len(there) else [_nearest(column.name, there)]
        added = " ".join(f"--column {column.name}={name}" for name in names[:_FEW])
        more = f" and so on, {count} columns" if len(names) > _FEW else ""
        columns = ", ".join(map(repr, there))
        return f"; the columns are {columns}: add, for example, {added}{more}"

    def _rows(self, unit: Unit, table: Loaded) -> Iterator[tuple[int, Row]]:
        setup = self._setup
        return rows_of(unit, table, self._model.inputs, setup.preparation, setup.columns)

    def _run_all(self, waiting: list[tuple[int, list[Array]]], block: Block) -> list[list[Array]]:
        """As `_run`, of any number of rows, as many at once as the model takes. Those that it takes
        one by one it gets together."""
        step = self._model.batch_size if self._model.batch_size > 1 else max(len(waiting), 1)
        firsts = range(0, len(waiting), step)
        return [part for i in firsts for part in self._run(waiting[i : i + step], block)]

    def _run(self, waiting: list[tuple[int, list[Array]]], block: Block) -> list[list[Array]]:
        """The values of some rows, which are known by their place in `block`. If the model fails
        over them it runs each by itself, and those over which it fails then get an error."""
        if not waiting:
            return []
        try:
            made = self._made([row for _, row in waiting])
            if self._drawer is not None:
                for number, (place, _) in enumerate(waiting):
                    self._drawer(block.sources[place], self._single(made, number))
            return [result_values(self._outputs, made, self._setup.wanted.top)]
        except _FAILURES as error:
            if len(waiting) == 1:
                block.errors[waiting[0][0]] = _error_line(error)
                return []
        return [part for each in waiting for part in self._run([each], block)]

    def _single(self, made: Sequence[Array], number: int) -> list[Array]:
        """The outputs of one row, as the model gives them."""
        return [
            np.asarray(rows[number])[np.newaxis]
            if each.leads and each.row is not None
            else np.asarray(rows[number])
            for rows, each in zip(made, self._outputs, strict=True)
        ]

    def _made(self, rows: list[list[Array]]) -> list[Array]:
        one_by_one = self._model.batch_size == 1
        columns = [list(c) if one_by_one else _column(c) for c in zip(*rows, strict=True)]
        return self._model.run(columns)


def _nearest(name: str, names: Sequence[str]) -> str:
    return next(iter(get_close_matches(name, names, 1)), names[0])


def _column(rows: Sequence[Array]) -> Array | list[Array]:
    """Rows as one array, if they have one shape."""
    if len(rows) == 1:
        return rows[0][np.newaxis]
    return np.stack(rows) if len({row.shape for row in rows}) == 1 else list(rows)


def _error_line(error: Exception) -> str:
    """What an error says, in a line."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return " ".join(str(error).split()) or type(error).__name__
