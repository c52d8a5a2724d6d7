"""Files of results: parquet, csv, jsonl and npz; their parts are joined at the end."""

from __future__ import annotations

import csv
import io
import json
import math
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from tflite_ort.base.files import writing
from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import (
    DAMAGED,
    Array,
    InputError,
    check_plain,
    entry_names,
    open_plain,
)
from tflite_ort.prediction.part_files import check, content_size, copy, write_checked
from tflite_ort.prediction.record_files import parquet_module, readable
from tflite_ort.prediction.results import (
    ERROR,
    ROW,
    SHAPE,
    SOURCE,
    TEXT,
    Block,
    ResultColumn,
    no_values,
)

_BUFFER = 1 << 20
_ROWS = 4096  # of a group in a parquet file, at most
_JOINED = 2 << 20  # bytes of it that are in memory


class Writer(Protocol):
    """A format of results."""

    def part(self, path: Path, block: Block) -> None:
        """Write some rows, whole or not at all."""

    def join(self, parts: Sequence[Path], out: Path) -> None:
        """Write all rows, those of the first part first, whole or not at all."""

    def wrote(self, out: Path) -> bool:
        """Whether a file is of this format and holds results."""


def writer_for(out: Path, columns: Sequence[ResultColumn]) -> Writer:
    """What writes a file with the suffix of `out`.

    Raises:
        InputError: there is no such format, a package is missing, or it cannot hold a column.
    """
    kind = WRITERS.get(out.suffix.lower())
    if kind is None:
        raise InputError(f"{out}: results are written as {', '.join(WRITERS)}")
    return kind(columns)


# Text --------------------------------------------------------------------------------------------


class _Lines:
    """Parts that are joined byte by byte; each ends with its checksum.

    Attributes:
        head: what a file begins with.
        begins, ends: what every file of results begins with, and has near its end.
    """

    head = begins = ends = b""

    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        self.columns = columns

    def part(self, path: Path, block: Block) -> None:
        text = io.StringIO(newline="")
        self.write(text, block)
        write_checked(path, text.getvalue().encode(), block)

    def write(self, text: io.StringIO, block: Block) -> None:
        raise NotImplementedError

    def join(self, parts: Sequence[Path], out: Path) -> None:
        copy(parts, out, self.head)

    def wrote(self, out: Path) -> bool:
        """Whether a file begins and ends as one of results; an empty one has none to lose."""
        with open_plain(out) as stream:
            size = out.stat().st_size
            told = stream.read(_BUFFER)
            stream.seek(max(len(told), size - _BUFFER))
            told += stream.read(_BUFFER)
        return not told or (told.startswith(self.begins) and self.ends in told)


class _Jsonl(_Lines):
    """An object on each line; what JSON has no number for is "NaN", "Infinity", "-Infinity"."""

    begins, ends = f'{{"{SOURCE}": "'.encode(), f', "{ERROR}": '.encode()

    def write(self, text: io.StringIO, block: Block) -> None:
        for source, number, error, values in _rows(self.columns, block):
            row: dict[str, Any] = {SOURCE: source, ROW: number}
            row |= {c.name: v for c, v in zip(self.columns, values, strict=True)}
            text.write(json.dumps({**row, ERROR: error}, allow_nan=False) + "\n")


class _Csv(_Lines):
    """A line for each row; a cell with several values is a JSON list."""

    begins, ends = f"{SOURCE},{ROW},".encode(), f",{ERROR}\r\n".encode()

    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        super().__init__(columns)
        text = io.StringIO(newline="")
        csv.writer(text).writerow([SOURCE, ROW, *(each.name for each in columns), ERROR])
        self.head = text.getvalue().encode()

    def write(self, text: io.StringIO, block: Block) -> None:
        sheet = csv.writer(text)
        for source, number, error, values in _rows(self.columns, block):
            cells = (json.dumps(each) if isinstance(each, list) else each for each in values)
            sheet.writerow([source, number, *cells, error])


def _told(text: str) -> str:
    """A path, or what has one in it, as text that can be written: bytes that are no UTF-8 as
    escapes."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _said(error: str | None) -> str | None:
    return None if error is None else _told(error)


def _rows(
    columns: Sequence[ResultColumn], block: Block
) -> Iterator[tuple[str, int, str | None, list[Any]]]:
    """(source, number, error, values) of each row, the values as JSON has them."""
    place = 0
    for source, number, error in zip(block.sources, block.numbers, block.errors, strict=True):
        if error is None:
            yield _told(source), number, None, [_plain(values[place]) for values in block.values]
            place += 1
        else:
            yield _told(source), number, _told(error), [None] * len(columns)


def _plain(value: Any) -> Any:
    """A value of a row as JSON has it."""
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        if array.dtype.kind == "V":
            array = array.astype(np.float32)
        if array.dtype.kind == "c":
            array = np.stack([array.real, array.imag], axis=-1)
        finite = array.dtype.kind != "f" or bool(np.isfinite(array).all())
        listed = array.tolist()
        return listed if finite and array.dtype.kind != "O" else _spelt(listed)
    return _spelt(value)


def _spelt(value: Any) -> Any:
    if isinstance(value, list):
        return [_spelt(each) for each in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


# Arrays ------------------------------------------------------------------------------------------


class _Npz:
    """An array for each column; rows with an error have NaN, or 0. Rows of different shapes stand
    one after the other, flat, and ``NAME_shape`` [n, rank] tells the shape of each."""

    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        self._columns = columns

    def part(self, path: Path, block: Block) -> None:
        made = io.BytesIO()
        self._write(made, block)
        write_checked(path, made.getbuffer(), block)

    def _write(self, stream: IO[bytes], block: Block) -> None:
        arrays = self._arrays(block)
        with zipfile.ZipFile(stream, "w") as archive:
            for name, array in zip(entry_names(arrays), arrays.values(), strict=True):
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)

    def _arrays(self, block: Block) -> dict[str, Array]:
        sources = np.array([_told(each) for each in block.sources], np.str_)
        errors = np.array([_said(each) or "" for each in block.errors], np.str_)
        arrays = {SOURCE: sources, ROW: np.array(block.numbers, np.int64), ERROR: errors}
        valid = block.valid
        for column, values in zip(self._columns, block.values, strict=True):
            if column.row is None:
                arrays |= _flat(column, values, valid)
            elif column.dtype == TEXT or column.dtype.kind == "O":
                text = np.array([_spelt(each) for each in values.ravel()] or [""], np.str_)
                text = text[: values.size].reshape(values.shape)
                arrays[column.name] = _filled(text, valid, column.row)
            else:
                arrays[column.name] = _filled(values.astype(column.stored), valid, column.row)
        return arrays

    def join(self, parts: Sequence[Path], out: Path) -> None:
        check(parts)
        with writing(out) as (stream,):
            if not parts:
                self._write(stream, Block([], [], [], no_values(self._columns)))
                return
            with zipfile.ZipFile(stream, "w") as archive:
                for name in _entries(parts[0]):
                    with archive.open(name, "w", force_zip64=True) as file:
                        _join_arrays(parts, name, file)

    def wrote(self, out: Path) -> bool:
        """Whether an archive has the arrays that all results have."""
        try:
            check_plain(out)
            return {f"{name}.npy" for name in (SOURCE, ROW, ERROR)} <= set(_entries(out))
        except (InputError, *DAMAGED):
            return False


def _entries(part: Path) -> list[str]:
    with zipfile.ZipFile(part) as archive:
        return archive.namelist()


def _filled(values: Array, valid: Array, row: tuple[int, ...]) -> Array:
    """`values` [n, *row] at the rows that are valid; NaN, 0 or empty text at the others."""
    kind = values.dtype.kind
    filled = np.full((len(valid), *row), np.nan if kind in "fc" else 0, values.dtype)
    if kind == "U":
        filled = np.zeros((len(valid), *row), values.dtype)
    filled[valid] = values
    return filled


def _flat(column: ResultColumn, values: Array, valid: Array) -> dict[str, Array]:
    """Rows of different shapes, one after the other, and their shapes."""
    ranks = {each.ndim for each in values}
    if len(ranks) > 1:
        raise _different_ranks(repr(column.name))
    shapes = np.zeros((len(valid), *ranks), np.int64)  # [n], if all rows have an error
    if len(values):
        shapes[valid] = [each.shape for each in values]
    flat = [each.ravel() for each in values]
    whole = np.concatenate(flat) if flat else np.zeros(0, column.dtype)
    if whole.dtype.kind == "O":
        whole = np.array([_spelt(each) for each in whole], np.str_)
    else:
        whole = whole.astype(column.stored)
    return {column.name: whole, f"{column.name}{SHAPE}": shapes}


def _different_ranks(name: str) -> InputError:
    return InputError(f"{name} has different ranks: write .parquet or .jsonl")


def _join_arrays(parts: Sequence[Path], name: str, file: IO[bytes]) -> None:
    """Write one array of all parts; they are read one at a time."""
    heads = [_head(part, name) for part in parts]
    dtype = max((dtype for _, dtype in heads), key=lambda dtype: dtype.itemsize)  # texts differ
    inner = max((shape[1:] for shape, _ in heads), key=len)
    rows = sum(shape[0] for shape, _ in heads)
    header = {"descr": dtype.str, "fortran_order": False, "shape": (rows, *inner)}
    np.lib.format.write_array_header_2_0(file, header)
    for part, (shape, _) in zip(parts, heads, strict=True):
        with zipfile.ZipFile(part) as archive, archive.open(name) as source:
            array = np.lib.format.read_array(source, allow_pickle=False).astype(dtype)
        if shape[1:] != inner:
            if shape[1:]:
                raise _different_ranks(name)
            array = np.zeros((shape[0], *inner), dtype)  # all rows have an error, and so no shape
        file.write(array.tobytes())


def _head(part: Path, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """(shape, dtype) of an array in a part."""
    with zipfile.ZipFile(part) as archive, archive.open(name) as source:
        first = np.lib.format.read_magic(source) == (1, 0)
        read = np.lib.format.read_array_header_1_0 if first else np.lib.format.read_array_header_2_0
        shape, _, dtype = read(source)
    return shape, dtype


# Parquet -----------------------------------------------------------------------------------------


class _Parquet:
    """Lists of values with their shape in the field's metadata; where it differs from row to row,
    the column ``NAME_shape`` tells it. A row with an error has no values."""

    def __init__(self, columns: Sequence[ResultColumn]) -> None:
        self._columns, self._parquet = columns, parquet_module()
        self._arrow: Any = optional_module("pyarrow")
        self._schema = self._schema_of(columns)
        # A dictionary of numbers is seldom smaller than they are.
        self._texts = [SOURCE, ERROR, *(each.name for each in columns if each.dtype == TEXT)]

    def part(self, path: Path, block: Block) -> None:
        table = self._arrow.Table.from_arrays(list(self._arrays(block)), schema=self._schema)
        made = self._arrow.BufferOutputStream()
        self._parquet.write_table(table, made, row_group_size=_ROWS, use_dictionary=self._texts)
        write_checked(path, memoryview(made.getvalue()), block)

    def join(self, parts: Sequence[Path], out: Path) -> None:
        if len(parts) == 1:  # it is the file
            copy(parts, out)
            return
        check(parts)
        with (
            writing(out) as (stream,),
            self._parquet.ParquetWriter(stream, self._schema, use_dictionary=self._texts) as file,
        ):
            for part in parts:
                for batch in self._batches(part):
                    # Unlike `write_batch` this keeps no group in memory until it is full.
                    rows = self._arrow.Table.from_batches([batch.cast(self._schema)])
                    file.write_table(rows, row_group_size=_ROWS)

    def wrote(self, out: Path) -> bool:
        """Whether a table has the columns that all results have."""
        try:
            check_plain(out)
            with readable(str(out), "is no parquet file"):
                return {SOURCE, ROW, ERROR} <= set(self._parquet.read_schema(out).names)
        except InputError:
            return False

    def _batches(self, part: Path) -> Iterator[Any]:
        """The rows of a part, a few MiB at a time."""
        with self._arrow.memory_map(str(part)) as mapped:
            whole = self._arrow.BufferReader(mapped.read_buffer(content_size(part)))
        with self._parquet.ParquetFile(whole, buffer_size=_BUFFER, pre_buffer=False) as source:
            told = source.metadata
            groups = (told.row_group(number) for number in range(told.num_row_groups))
            size = sum(each.total_byte_size for each in groups)
            few = told.num_rows * _JOINED // max(size, 1)
            yield from source.iter_batches(batch_size=min(max(few, 1), _ROWS), use_threads=False)

    def _schema_of(self, columns: Sequence[ResultColumn]) -> Any:
        arrow = self._arrow
        fields = [arrow.field(SOURCE, arrow.string()), arrow.field(ROW, arrow.int64())]
        for each in columns:
            kind = self._kind(each)
            listed = kind if each.row == () else arrow.list_(kind)
            fields.append(arrow.field(each.name, listed, metadata=_field_metadata(each)))
            if each.row is None:
                fields.append(arrow.field(f"{each.name}{SHAPE}", arrow.list_(arrow.int64())))
        return arrow.schema([*fields, arrow.field(ERROR, arrow.string())])

    def _kind(self, column: ResultColumn) -> Any:
        if column.dtype == TEXT:
            return self._arrow.string()
        if column.dtype.kind == "O":
            return self._arrow.binary()
        if column.dtype.kind == "c":
            raise InputError(f"{column.name!r} holds complex numbers: write .npz or .jsonl")
        return self._arrow.from_numpy_dtype(column.stored)

    def _arrays(self, block: Block) -> Iterator[Any]:
        arrow, valid = self._arrow, block.valid
        yield arrow.array([_told(each) for each in block.sources], arrow.string())
        yield arrow.array(block.numbers, arrow.int64())
        for column, values in zip(self._columns, block.values, strict=True):
            make = self._scalars if column.row == () else self._lists
            yield make(column, values, valid)
            if column.row is None:
                shapes = [list(each.shape) for each in values]
                yield arrow.array(_spaced(shapes, valid), arrow.list_(arrow.int64()))
        yield arrow.array([_said(each) for each in block.errors], arrow.string())

    def _scalars(self, column: ResultColumn, values: Array, valid: Array) -> Any:
        stored = values if values.dtype.kind == "O" else values.astype(column.stored)
        listed = _spaced(stored.tolist(), valid)
        return self._arrow.array(listed, self._kind(column))

    def _lists(self, column: ResultColumn, rows: Array, valid: Array) -> Any:
        arrow = self._arrow
        lengths = np.zeros(len(valid), np.int32)
        lengths[valid] = [each.size for each in rows]
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        if offsets[-1] > np.iinfo(np.int32).max:
            raise InputError(f"{column.name!r} has more than 2 ** 31 values in one part")
        flat = np.concatenate([np.zeros(0, column.dtype), *(each.ravel() for each in rows)])
        values = flat.tolist() if flat.dtype.kind in "OU" else flat.astype(column.stored)
        return arrow.ListArray.from_arrays(
            arrow.array(offsets, arrow.int32()),
            arrow.array(values, self._kind(column)),
            mask=arrow.array(~valid),
        )


def _spaced(values: Sequence[Any], valid: Array) -> list[Any]:
    """`values` at the rows that are valid, None at the others."""
    waiting = iter(values)
    return [next(waiting) if each else None for each in valid]


def _field_metadata(column: ResultColumn) -> dict[str, str] | None:
    found = {}
    if column.row:
        found["shape"] = json.dumps(list(column.row))
    if column.scale:
        found |= {"scale": repr(column.scale), "zero_point": str(column.zero_point)}
    return found or None


WRITERS: dict[str, type[_Lines] | type[_Npz] | type[_Parquet]] = {
    ".parquet": _Parquet,
    ".csv": _Csv,
    ".jsonl": _Jsonl,
    ".npz": _Npz,
}
