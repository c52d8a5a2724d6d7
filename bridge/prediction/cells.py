"""The values of one input: of files that hold them alone, and of the cells of tables."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from tflite_ort.base.json_text import parsed
from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import (
    DAMAGED,
    Array,
    InputError,
    TooLargeNumber,
    array_of,
    cast,
    fitted,
    loaded_array,
)
from tflite_ort.prediction.images import decoded_image, read_image, takes_images
from tflite_ort.prediction.preparation import Preparation, row_of
from tflite_ort.prediction.record_files import RECORD_FILES
from tflite_ort.prediction.sound import open_wav
from tflite_ort.prediction.tensors import InputColumn
from tflite_ort.prediction.units import ARRAY, ARRAYS, IMAGES, SOUND, suffix_of

# What a row can be wrong with; what it says is noted in the results.
ROW_ERRORS = (InputError, OSError, MemoryError)

_LONGEST_QUOTE = 60

# Files -------------------------------------------------------------------------------------------


def rows_of_file(path: str, column: InputColumn, preparation: Preparation) -> Iterator[Array]:
    """The rows of a file that holds values of one input: sound may have several."""
    suffix = suffix_of(path)
    if suffix == SOUND:
        for stretch in preparation.ear_of(column).stretches(open_wav(Path(path))):
            yield row_of(stretch, column)
    elif suffix == ARRAY:
        yield np.array(sample(loaded_array(Path(path), mapped=True), column, path))
    else:
        yield row_of(_picture(path, column, preparation), column)


def sample(array: Array, column: InputColumn, path: str) -> Array:
    """The row of a file that holds one sample."""
    values = fitted(array, column.details, path)
    if column.leads and len(values) != 1:
        raise InputError(f"{path} holds {len(values)} samples: --rows makes a row of each")
    return row_of(values, column)


def _picture(path: str, column: InputColumn, preparation: Preparation) -> Array:
    """The picture in a file, which may have any suffix."""
    try:
        how = preparation.picture_of(column)
        return read_image(Path(path), column.details, how)
    except InputError as error:
        if suffix_of(path) in IMAGES:
            raise
        others = ", ".join((ARRAY, ARRAYS, SOUND, *RECORD_FILES))
        raise InputError(f"{error}; files of other kinds have the suffix {others}") from error


# Cells -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells of a column as values of an input.

    Args:
        origin: what the column is called in errors.
        folder: where the paths in cells are looked up.
        first: the number of the first row.
    """

    given: InputColumn
    preparation: Preparation
    origin: str
    folder: str
    first: int = 0

    def of(self, column: Any) -> Iterator[Array | Exception]:
        """The value of each cell, or why there is none."""
        values = column if isinstance(column, np.ndarray) else self.unpacked(column)
        stored = not isinstance(values, np.ndarray)
        for number, value in enumerate(values, self.first):
            try:
                yield self._value(_as_python(value, self.origin) if stored else value)
            except TooLargeNumber as error:
                yield TooLargeNumber(f"row {number}: {error}")
            except ROW_ERRORS as error:
                yield error

    def unpacked(self, column: Any) -> Any:
        """The cells of an arrow array; at once where all are numbers and have the size of a row."""
        arrow: Any = optional_module("pyarrow")
        row = self.given.row
        flat = column
        while flat.null_count == 0 and _is_list(arrow, flat.type):
            flat = flat.flatten()
        if math.prod(row) == 1 and _is_text(arrow, flat.type) and not self._takes_text:
            flat = _numbers(flat, self._dtype)
        plain = arrow.types.is_integer(flat.type) or arrow.types.is_floating(flat.type)
        size = len(column) * math.prod(row)
        whole = plain and flat.null_count == 0 and -1 not in row and len(flat) == size
        if whole and _even(arrow, column, row):
            return flat.to_numpy(zero_copy_only=False).reshape(len(column), *row)
        return column

    @property
    def _dtype(self) -> np.dtype[Any]:
        return np.dtype(self.given.details["dtype"])

    @property
    def _takes_text(self) -> bool:
        return self._dtype.kind in "SO"

    def _value(self, value: Any) -> Array:
        given = self.given
        if isinstance(value, dict):  # a file with its name, as data sets hold images
            value = value.get("bytes")
        if value is None:
            raise InputError(f"{self.origin} has no value here")
        if isinstance(value, bytes) and takes_images(given.details):
            how = self.preparation.picture_of(given)
            image = decoded_image(value, given.details, how, f"the image in {self.origin}")
            return row_of(image, given)
        if isinstance(value, str) and not self._takes_text:
            return self._of_text(value)
        return self._fitted(array_of(value, self.origin, np.object_ if self._takes_text else None))

    def _of_text(self, text: str) -> Array:
        """The number, the list in JSON, or the file that a text stands for."""
        if not text.strip():
            raise InputError(f"{self.origin} has no value here")
        if text.lstrip().startswith("["):
            return self._fitted(self._listed(text))
        if _is_beyond_floats(text):
            raise TooLargeNumber(f"{self.origin} holds {_quoted(text)}, which no float can be")
        arrow: Any = optional_module("pyarrow")
        if math.prod(self.given.row) == 1:
            number = _numbers(arrow.array([text]), self._dtype)
            if not _is_text(arrow, number.type):
                return self._fitted(number.to_numpy(zero_copy_only=False))
        path = os.path.join(self.folder, text)
        if not os.path.isfile(path):  # a device might have no end
            raise InputError(
                f"{self.origin} holds {_quoted(text)}: no value that input {self.given.name!r} "
                f"takes, and no file in {self.folder or os.curdir}"
            )
        if not _is_below(path, self.folder):
            raise InputError(
                f"{self.origin} holds {_quoted(text)}, which leads out of the folder of the table"
            )
        rows = list(islice(rows_of_file(path, self.given, self.preparation), 2))
        if len(rows) > 1:
            raise InputError(f"{path} is sound for several rows: give the file itself")
        return rows[0]

    def _listed(self, text: str) -> Array:
        """The array of a list in JSON."""
        said = f"what {self.origin} holds here"
        array = array_of(parsed(text, InputError, said), self.origin)
        if array.dtype.kind == "O" and all(isinstance(each, (int, float)) for each in array.flat):
            raise TooLargeNumber(f"{self.origin} holds an integer of more than 64 bits")
        if array.dtype.kind == "f" and np.isinf(array).any():
            try:
                parsed(text, InputError, said, _float)
            except OverflowError as error:
                raise TooLargeNumber(
                    f"{self.origin} holds {_quoted(str(error))}, which no float can be"
                ) from error
        return array

    def _fitted(self, array: Array) -> Array:
        row, name = self.given.row, self.given.name
        if array.dtype.kind == "O" and not self._takes_text:
            raise InputError(f"{self.origin} holds no numbers")
        if -1 not in row and array.size == math.prod(row) and _has_order(array.shape, row):
            array = array.reshape(row)
        fits = array.ndim == len(row) and all(
            declared in (-1, size) for declared, size in zip(row, array.shape, strict=True)
        )
        if not fits:
            raise InputError(f"{self.origin} has shape {array.shape}, input {name!r} takes {row}")
        return cast(array, self.given.details, self.origin)


def joined_cells(cells: Sequence[Cells], columns: Sequence[Any]) -> Iterator[Array | Exception]:
    """The rows of an input whose numbers stand in a column each.

    Args:
        cells: of one input, each with the origin of its column.
    """
    given = cells[0].given
    row = given.row
    if math.prod(row) != len(columns) and row != (-1,):
        raise InputError(
            f"input {given.name!r} takes {math.prod(row)} values of shape {row}, and "
            f"{len(columns)} columns are named for it"
        )
    one = replace(given, details={**given.details, "shape_signature": np.ones(1, np.int32)})
    singles = [replace(each, given=one) for each in cells]
    whole = _stacked(singles, columns)
    if whole is not None:
        yield from whole.reshape(len(whole), *row)
        return
    for values in zip(*map(Cells.of, singles, columns), strict=True):
        wrong = [each for each in values if isinstance(each, Exception)]
        yield wrong[0] if wrong else np.stack(values).reshape(row)


def _stacked(cells: Sequence[Cells], columns: Sequence[Any]) -> Array | None:
    """Columns of single numbers as one array [n, columns], if each has nothing else that fits."""
    held = [
        column if isinstance(column, np.ndarray) else each.unpacked(column)
        for each, column in zip(cells, columns, strict=True)
    ]
    if any(not isinstance(values, np.ndarray) or values.ndim != 1 for values in held):
        return None
    try:
        fitting = [cast(v, e.given.details, e.origin) for e, v in zip(cells, held, strict=True)]
    except InputError:  # of some rows
        return None
    return np.stack(fitting, axis=1)


def _as_python(value: Any, origin: str) -> Any:
    """A cell of an arrow array as an object of Python."""
    arrow: Any = optional_module("pyarrow")
    try:
        return value.as_py()
    except (*DAMAGED, arrow.ArrowException) as error:
        raise InputError(f"{origin} holds what cannot be read: {error}") from error


def _numbers(texts: Any, dtype: np.dtype[Any]) -> Any:
    """An arrow array of texts as numbers for an input; as it is, if one of them is none."""
    arrow: Any = optional_module("pyarrow")
    compute: Any = optional_module("pyarrow.compute")
    kinds = {"i": arrow.int64(), "u": arrow.int64(), "b": arrow.bool_()}
    kind = arrow.uint64() if dtype == np.uint64 else kinds.get(dtype.kind, arrow.float64())
    try:
        numbers = compute.cast(compute.utf8_trim_whitespace(texts), kind)
    except arrow.ArrowException:
        return texts
    if arrow.types.is_floating(kind):
        infinite = texts.filter(compute.is_inf(numbers))
        if any(map(_is_beyond_floats, infinite.to_pylist())):
            return texts
    return numbers


def _is_beyond_floats(text: str) -> bool:
    """Whether a text is a number that would become infinite; infinity itself is none."""
    try:
        return math.isinf(float(text)) and "n" not in text.lower()
    except ValueError:
        return False


def _float(text: str) -> float:
    """A number of JSON.

    Raises:
        OverflowError: it would become infinite.
    """
    if _is_beyond_floats(text):
        raise OverflowError(text)
    return float(text)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}...")


def _is_below(path: str, folder: str) -> bool:
    """Whether a file is in a folder or below it, wherever links lead."""
    inner, outer = (PurePath(os.path.realpath(each)) for each in (path, folder or os.curdir))
    return inner.is_relative_to(outer)


def _has_order(shape: Sequence[int], row: Sequence[int]) -> bool:
    """Whether as many elements of `shape` stand in the order of a row: tables hold flat lists, and
    sizes of 1 do not matter."""
    return len(shape) == 1 or [n for n in shape if n != 1] == [n for n in row if n != 1]


def _is_list(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))


def _is_text(arrow: Any, kind: Any) -> bool:
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


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
