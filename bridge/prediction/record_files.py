"""Files that hold tables, as record batches of pyarrow: parquet and CSV."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any, Protocol

from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import InputError, check_plain

_BATCH_ROWS = 256
# Of a batch, where every row may hold the longest text of a dictionary.
_BATCH_BYTES = 1 << 28
# Values of a group of rows, more of which are not read where this many are in a byte of the file.
_MANY_VALUES, _VALUES_A_BYTE = 1 << 27, 1 << 10
# Of a CSV file, what is parsed at a time: a line is shorter.
_BLOCK_BYTES = 16 << 20
_MOST_COLUMNS = 1 << 16


class Records(Protocol):
    """A table in a file."""

    @property
    def rows(self) -> int:
        """How many there are."""

    def batches(self, place: int) -> tuple[int, int, Iterator[Any]]:
        """(first, after, record batches) of the stretch of rows in which `place` would be.

        Raises:
            InputError: there is none; iterating raises it where the file is damaged.
        """


class Parquet:
    """A parquet file; a stretch is a group of rows."""

    def __init__(self, path: str) -> None:
        self._path = path
        with readable(path, "is not a parquet file that can be read"):
            self._file = parquet_module().ParquetFile(path)

    @property
    def rows(self) -> int:
        return int(self._file.metadata.num_rows)

    def batches(self, place: int) -> tuple[int, int, Iterator[Any]]:
        start = 0
        for number in range(self._file.metadata.num_row_groups):
            group = self._file.metadata.row_group(number)
            end = start + group.num_rows
            if place < end:
                rows = self._rows_at_a_time(group)
                return start, end, self._file.iter_batches(batch_size=rows, row_groups=[number])
            start = end
        raise InputError(f"{self._path} has no row {place}")

    def _rows_at_a_time(self, group: Any) -> int:
        """How many rows a batch has, so that few bytes of the file do not fill the memory."""
        most = 1
        for chunk in map(group.column, range(group.num_columns)):
            held, stored = chunk.num_values, max(chunk.total_compressed_size, 1)
            if held > max(_MANY_VALUES, _VALUES_A_BYTE * stored):
                name = chunk.path_in_schema
                raise InputError(f"{self._path} has {held} values of {name!r} in {stored} bytes")
            if chunk.physical_type == "BYTE_ARRAY" and chunk.has_dictionary_page:
                most = max(most, chunk.total_uncompressed_size)
        return min(_BATCH_ROWS, max(_BATCH_BYTES // most, 1))


class Csv:
    """A CSV file with a line of names, in UTF-8: all cells are texts, and it is one stretch."""

    def __init__(self, path: str) -> None:
        self._path = path
        text: Any = _needed("pyarrow", "CSV files").string()
        self._texts = dict.fromkeys(self._names(), text)

    @property
    def rows(self) -> int:
        with self._opened() as reader:
            return sum(batch.num_rows for batch in reader)

    def batches(self, place: int) -> tuple[int, int, Iterator[Any]]:
        return 0, sys.maxsize, self._batches()

    def _batches(self) -> Iterator[Any]:
        with self._opened() as reader:
            yield from reader

    def _names(self) -> list[str]:
        """The names of the columns. pyarrow would first look for the types of a whole block."""
        with open(self._path, encoding="utf-8-sig", errors="replace", newline="") as file:
            try:
                names = next(filter(None, csv.reader(_lines(file))), [])
            except csv.Error as error:
                raise InputError(f"{self._path} has no line of names: {error}") from error
        if len(names) > _MOST_COLUMNS:
            raise InputError(f"{self._path} has {len(names)} columns, at most {_MOST_COLUMNS}")
        return names

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        module = _needed("pyarrow.csv", "CSV files")
        options = {
            "read_options": module.ReadOptions(use_threads=False, block_size=_BLOCK_BYTES),
            "parse_options": module.ParseOptions(newlines_in_values=True),
            "convert_options": module.ConvertOptions(column_types=self._texts),
        }
        with (
            readable(self._path, "is not a CSV file that can be read"),
            module.open_csv(self._path, **options) as reader,
        ):
            yield reader


def _lines(file: IO[str]) -> Iterator[str]:
    """The lines of a CSV file.

    Raises:
        csv.Error: one is longer than those that are parsed.
    """
    while line := file.readline(_BLOCK_BYTES):
        if len(line) == _BLOCK_BYTES:
            raise csv.Error(f"a line has more than {_BLOCK_BYTES} characters")
        yield line


RECORD_FILES: dict[str, type[Parquet] | type[Csv]] = {".parquet": Parquet, ".csv": Csv}


def open_records(path: str) -> Records:
    """The table in a file whose suffix is one of `RECORD_FILES`.

    Raises:
        InputError: pyarrow is missing, or it is no such file; OSError: it cannot be opened.
    """
    check_plain(path)
    return RECORD_FILES[os.path.splitext(path)[1].lower()](path)


@contextmanager
def readable(path: str, said: str) -> Iterator[None]:
    """Raise InputError with what is `said` of a file where pyarrow cannot read it."""
    arrow: Any = _needed("pyarrow", "tables")
    try:
        yield
    except (OSError, UnicodeDecodeError, arrow.ArrowException) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(f"{path} {said}: {error}") from error


def check_records(suffix: str) -> None:
    """
    Raises:
        InputError: what reads tables with this suffix is not installed.
    """
    if suffix == ".csv":
        _needed("pyarrow", "CSV files")
    else:
        parquet_module()


def parquet_module() -> Any:
    """pyarrow.parquet.

    Raises:
        InputError: it is not installed.
    """
    return _needed("pyarrow.parquet", "parquet files")


def _needed(name: str, files: str) -> Any:
    module = optional_module(name)
    if module is None:
        raise InputError(f"{files} need pyarrow: pip install 'tflite-ort[predict]'")
    return module
