"""Columns of a caller as rows of a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from tflite_ort.base.suggestions import suggestion
from tflite_ort.decode.picture_input import PictureInput
from tflite_ort.prediction.array_files import Array, InputError, array_of, cast
from tflite_ort.prediction.images import (
    Normalization,
    image_of_pixels,
    image_size,
    takes_images,
)
from tflite_ort.prediction.pictures import plain_picture, told_picture
from tflite_ort.prediction.sound import Ear
from tflite_ort.prediction.tensors import InputColumn, ragged

# What a caller gives for an input: an array [n, ...], or n arrays.
Column = Array | Sequence[Any]
Named = TypeVar("Named")


def columns_of(
    batch: Mapping[str, Column], inputs: Sequence[InputColumn], named: Mapping[str, str]
) -> dict[str, str]:
    """The column of `batch` that each input reads.

    Args:
        named: columns by input, where the caller has named them.

    Raises:
        InputError: an input has none.
    """
    found = {each.name: named.get(each.name, each.name) for each in inputs}
    if len(inputs) == len(batch) == 1 and not named:
        return {inputs[0].name: next(iter(batch))}
    missing = [name for name, column in found.items() if column not in batch]
    if missing:
        raise InputError(
            f"no column for the inputs {', '.join(map(repr, missing))}; "
            f"there are {', '.join(map(repr, batch)) or 'none'}: "
            "columns= (--column) says which is which"
        )
    return found


def column_of(values: Column) -> Array:
    """What is no input as an array of n rows; of objects, where they have different shapes."""
    try:
        return np.asarray(values)
    except ValueError:
        return ragged(list(values))


def checked_columns(
    columns: Mapping[str, Named], inputs: Sequence[InputColumn]
) -> dict[str, Named]:
    """`columns` by input.

    Raises:
        InputError: the model has no such input.
    """
    names = [each.name for each in inputs]
    for unknown in sorted(set(columns) - set(names)):
        there, near = ", ".join(map(repr, names)), suggestion(unknown, names)
        raise InputError(f"columns: no input {unknown!r}; there are {there}{near}")
    return dict(columns)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What values become before a model takes them.

    Args:
        media: uint8 arrays are images, and arrays of samples are sound; False: they are values.
        normalization: of pixels, in the place of what the model says.
        rate: samples a second of sound, in the place of the metadata's.
    """

    media: bool = False
    normalization: Normalization | None = None
    rate: int | None = None

    def picture_of(self, column: InputColumn) -> PictureInput | None:
        """What a picture becomes for an input; None where it takes none."""
        how, said = plain_picture(column.details, column.picture), self.normalization
        if how is None or said is None:
            return how
        return told_picture(how, said.mean, said.std, column.details)

    def ear_of(self, column: InputColumn) -> Ear:
        """How an input takes sound.

        Raises:
            InputError: it takes none.
        """
        told = column.sound
        rate = self.rate or (None if told is None else told.sample_rate or None)
        return Ear.of(column.details, rate, None if told is None else told.channels or None)

    def hears(self, column: InputColumn) -> bool:
        """Whether an input takes sound."""
        try:
            self.ear_of(column)
        except InputError:
            return False
        return True

    def rows(self, values: Column, column: InputColumn) -> Array | list[Array]:
        """The rows [n, ...] of an input, or n arrays where the model takes any sizes.

        Raises:
            InputError: they do not fit the input.
        """
        if self.media and (takes_images(column.details) or column.sound is not None):
            _check_not_one_image(values, column)
            rows = [self._medium(value, column) for value in values]
            return _stacked(rows) if rows else rows
        if isinstance(values, np.ndarray) and values.dtype != np.object_:
            return _fitted(values, column)
        if np.dtype(column.details["dtype"]).kind in "SO":
            return _fitted(np.asarray(values, np.object_), column)
        origin = f"the column for {column.name!r}"
        rows = [array_of(each, origin)[np.newaxis] for each in values]
        return _stacked([_fitted(each, column)[0] for each in rows])

    def _medium(self, value: Any, column: InputColumn) -> Array:
        """An image or a stretch of sound as a row."""
        array = array_of(value, f"the column for {column.name!r}")
        if column.sound is None:
            how = self.picture_of(column)
            image = image_of_pixels(array, column.details, how, f"the image for {column.name!r}")
            return row_of(image, column)
        samples = array[:, np.newaxis] if array.ndim == 1 else array
        if samples.ndim != 2 or samples.dtype.kind not in "fi":
            raise InputError(f"sound is [n] or [n, channels], not {array.dtype} {array.shape}")
        if samples.dtype.kind == "i":
            samples = samples.astype(np.float32) / (np.iinfo(samples.dtype).max + 1)
        heard = self.ear_of(column).input_of(samples.astype(np.float32))
        return row_of(heard, column)


def _check_not_one_image(values: Column, column: InputColumn) -> None:
    """Refuses an image [h, w, c] where rows of them are expected: its lines would be images."""
    if column.sound is not None or not isinstance(values, np.ndarray):
        return
    sizes = image_size(column.details)[:2]
    if values.ndim == 3 and values.shape[2] in (1, 3, 4) and values.shape[1:] != sizes:
        raise InputError(
            f"the column for {column.name!r} has shape {values.shape}, as one image [h, w, c] has: "
            "give image[np.newaxis], or a list of images"
        )


def row_of(value: Array, column: InputColumn) -> Array:
    """An input of one sample as a row.

    Raises:
        InputError: the first axis, along which there are rows, is one of the sample's own.
    """
    if not column.leads:
        return value
    if len(value) != 1:
        raise InputError(
            f"input {column.name!r} has an open first size, which counts rows, and no axis for a "
            f"sample {value.shape}: arrays are given without preprocessing"
        )
    row: Array = value[0]
    return row


def _fitted(values: Array, column: InputColumn) -> Array:
    """`values` [n, *row] in the dtype of the input."""
    row = column.row
    fits = values.ndim == len(row) + 1 and all(
        declared in (-1, size) for declared, size in zip(row, values.shape[1:], strict=True)
    )
    if not fits:
        if values.dtype.kind == "U":
            raise InputError(
                f"texts are no rows of input {column.name!r}: quick.run(model, file) reads a file, "
                "and tflite-ort predict many; or give arrays"
            )
        wanted = ("n", *("any" if size < 0 else str(size) for size in row))
        raise InputError(
            f"rows {values.shape} do not fit input {column.name!r}, which takes "
            f"({', '.join(wanted)})"
        )
    return cast(values, column.details, f"the column for {column.name!r}")


def _stacked(rows: list[Array]) -> Array | list[Array]:
    """Rows of one shape as one array."""
    if len({row.shape for row in rows}) == 1:
        return np.stack(rows)
    return rows
