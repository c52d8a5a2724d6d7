"""What a job works on: files and stretches of rows in files, in a fixed order."""

from __future__ import annotations

import glob
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tflite_ort.prediction.array_files import InputError, loaded_array, read_npz
from tflite_ort.prediction.record_files import RECORD_FILES, open_records

IMAGES = frozenset(
    {*(".bmp", ".gif", ".jpeg", ".jpg", ".pgm"), *(".png", ".ppm", ".tif", ".tiff", ".webp")}
)
SOUND, ARRAY, ARRAYS = ".wav", ".npy", ".npz"
# Files whose parts have names.
WITH_COLUMNS = (ARRAYS, *RECORD_FILES)
# What is taken of a folder. A CSV file in one often is a list of the others, or results.
_KNOWN = IMAGES | {SOUND, ARRAY, ARRAYS, ".parquet"}

# Of a file with many rows, those of a unit.
MOST_ROWS = 256
# What a file may say that it has for each of its bytes: rows that are the same take few.
_MOST_ROWS_A_BYTE = 1 << 16
# Of a file that does not tell how many rows it has until it is read.
ANY = -1


@dataclass(frozen=True, slots=True)
class Unit:
    """Rows that are worked on together.

    Args:
        path: the file.
        first, count: of its rows; a `count` of `ANY` stands for those that come.
        table: the file is a table of rows.
    """

    path: str
    first: int = 0
    count: int = ANY
    table: bool = False

    def stored(self) -> list[Any]:
        """As JSON."""
        return [self.path, self.first, self.count, self.table]


def units_of(
    inputs: Sequence[str],
    *,
    rows: bool,
    names: Collection[str] = (),
    out: Path | None = None,
) -> Iterator[Unit]:
    """What the inputs of a command stand for: files, folders (with all below), and patterns.

    Args:
        rows: the first axis of arrays is rows.
        names: of the arrays that are read of an archive, if it has them.
        out: the file of results, which is none of those that a folder or a pattern stands for.

    Raises:
        InputError: nothing is found; OSError: a file that is named is missing.
    """
    found, own = False, out if out is not None and out.exists() else None
    for text in inputs:
        for path in _paths(text):
            if own is not None and path != text and _is_same(path, own):
                continue
            found = True
            yield from _units(path, rows=rows, names=names)
    if not found:
        raise InputError(f"no inputs: there is no file with a known suffix in {', '.join(inputs)}")


def suffix_of(path: str) -> str:
    """The suffix of a file in small letters."""
    return os.path.splitext(path)[1].lower()


def _is_same(path: str, out: Path) -> bool:
    try:
        return out.samefile(path)
    except OSError:  # one of them is not there
        return False


def _paths(text: str) -> Iterator[str]:
    if os.path.isdir(text):
        for folder, folders, names in os.walk(text):
            folders.sort()
            yield from (
                os.path.join(folder, name) for name in sorted(names) if suffix_of(name) in _KNOWN
            )
    elif glob.has_magic(text) and not os.path.exists(text):
        yield from (
            path for path in sorted(glob.iglob(text, recursive=True)) if os.path.isfile(path)
        )
    else:
        os.stat(text)
        yield text


def _units(path: str, *, rows: bool, names: Collection[str]) -> Iterator[Unit]:
    table = suffix_of(path) in RECORD_FILES or (rows and suffix_of(path) in (ARRAY, ARRAYS))
    if not table:
        yield Unit(path)
        return
    try:
        total = row_count(path, names)
    except (InputError, OSError):
        yield Unit(path, 0, ANY, True)  # who reads it says what is wrong with it
        return
    for first in range(0, total, MOST_ROWS):
        yield Unit(path, first, min(MOST_ROWS, total - first), True)


def row_count(path: str, names: Collection[str] = ()) -> int:
    """How many rows a table has.

    Args:
        names: as of `units_of`; otherwise all arrays of an archive count.

    Raises:
        InputError, OSError: it cannot be read, says that it has very many, or the arrays of an
            archive do not agree.
    """
    total = _told_rows(path, names)
    if total > _MOST_ROWS_A_BYTE * os.path.getsize(path):
        raise InputError(f"{path} cannot have {total} rows: it is too small")
    return total


def _told_rows(path: str, names: Collection[str]) -> int:
    if suffix_of(path) == ARRAY:
        array = loaded_array(Path(path), mapped=True)
        if not array.ndim:
            raise InputError(f"{path} holds one number, no rows")
        return len(array)
    if suffix_of(path) == ARRAYS:
        return _rows_of_archive(path, names)
    return open_records(path).rows


def _rows_of_archive(path: str, names: Collection[str]) -> int:
    counts = {name: len(array) for name, array in read_npz(Path(path)).items() if array.ndim}
    read = {name: count for name, count in counts.items() if name in names} or counts
    if len(set(read.values())) > 1:
        told = ", ".join(f"{name!r} {count}" for name, count in read.items())
        raise InputError(f"the arrays of {path} have different numbers of rows: {told}")
    return max(read.values(), default=0)
