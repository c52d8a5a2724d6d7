"""Arrays in numpy's files, in the dtype and the shape of an input."""

from __future__ import annotations

import io
import os
import re
import struct
import tokenize
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from tflite_ort.schema import BridgeError, UnreadableModel
from tflite_ort.schema.file import plain_files

Array = npt.NDArray[Any]
# What get_input_details and get_output_details say of one tensor.
Details = Mapping[str, Any]

# What numpy and its libraries raise for a file that is not theirs, or is damaged.
DAMAGED = (
    *(ValueError, EOFError, KeyError, IndexError, OverflowError, TypeError, SyntaxError),
    *(MemoryError, RecursionError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, struct.error, tokenize.TokenError),
)
_LONGEST_NAME = 200
# What an archive may unpack to: so much, or so many times its own size.
_MOST_UNPACKED, _MOST_TIMES = 1 << 30, 100
# How numpy compresses.
_COMPRESSED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_EXTENDED_FLOATS = (np.dtype(ml_dtypes.bfloat16),)


class InputError(BridgeError, ValueError):
    """What is given as an input cannot be one of this model's."""


class TooLargeNumber(InputError):
    """A number would become infinite."""


def open_plain(path: str | os.PathLike[str]) -> io.BufferedReader:
    """A plain file, opened to be read: a pipe would block, and a device might have no end.

    Raises:
        InputError: it is no plain file.
        OSError: it cannot be opened.
    """
    try:
        return plain_files.open_plain(path)
    except UnreadableModel as error:
        raise InputError(str(error)) from error


def check_plain(path: str | os.PathLike[str]) -> None:
    """As `open_plain`, for who opens the file itself."""
    open_plain(path).close()


def loaded_array(path: Path, *, mapped: bool = False) -> Array:
    """The array of an ``.npy`` file.

    Args:
        mapped: its data are read where they are looked at, so that those of a shape that does not
            fit are not read at all.

    Raises:
        InputError: it is no such file.
    """
    array = _loaded(path, "r" if mapped else None)
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path} is an .npz archive")
    return array


def read_npz(path: Path) -> dict[str, Array]:
    """The arrays of an ``.npz`` file by name.

    Raises:
        InputError: it is no such file.
    """
    archive = _loaded(path)
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"{path} is not an .npz archive")
    try:
        with archive:
            _check_size(path, archive)
            return {name: np.asarray(archive[name]) for name in archive.files}
    except DAMAGED as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _check_size(path: Path, archive: Any) -> None:
    """Refuses what unpacks to very much more than it is."""
    entries = archive.zip.infolist()
    if any(each.compress_type not in _COMPRESSED for each in entries):
        raise InputError(f"{path} is compressed in a way that numpy does not write")
    unpacked = sum(entry.file_size for entry in entries)
    if unpacked > max(_MOST_UNPACKED, _MOST_TIMES * path.stat().st_size):
        raise InputError(f"{path} unpacks to {unpacked} bytes: give its arrays as .npy files")


def _loaded(path: Path, mode: Any = None) -> Any:
    check_plain(path)
    try:
        return np.load(path, mmap_mode=mode, allow_pickle=False)
    except DAMAGED as error:
        raise InputError(f"{path} is not a numpy file, or holds Python objects") from error


def array_of(value: Any, origin: object, dtype: Any = None) -> Array:
    """What `numpy.asarray` makes of a value.

    Raises:
        InputError: it is nested lists of different lengths, or has an integer beyond floats among
            floats.
    """
    try:
        return np.asarray(value, dtype)
    except OverflowError as error:
        raise TooLargeNumber(f"{origin} holds an integer that no float can be") from error
    except ValueError as error:
        raise InputError(f"{origin} holds lists of different lengths") from error


def fitted(array: Array, details: Details, origin: object) -> Array:
    """`array` in the dtype and a shape of its input: a batch of 1 may be left out.

    Args:
        origin: what it is called in errors, as a path.

    Raises:
        InputError: it has another shape, or values that the dtype cannot hold.
    """
    name, signature = details["name"], signature_of(details)
    if array.ndim + 1 == len(signature) and signature[0] in (-1, 1):
        array = array[np.newaxis]
    fits = array.ndim == len(signature) and all(
        declared in (-1, size) for declared, size in zip(signature, array.shape, strict=True)
    )
    if not fits:
        raise InputError(f"{origin} has shape {array.shape}, input {name!r} takes {signature}")
    return cast(array, details, origin)


def cast(array: Array, details: Details, origin: object) -> Array:
    """`array` in the dtype of its input, where its values keep their meaning.

    Raises:
        InputError: they do not.
    """
    name, dtype = details["name"], np.dtype(details["dtype"])
    if dtype in _EXTENDED_FLOATS and array.dtype == np.dtype((np.void, dtype.itemsize)):
        array = array.view(dtype)  # numpy stores bfloat16 as two bytes without a name
    if not _castable(array, dtype):
        raise InputError(
            f"{origin} holds {dtype_name(array.dtype)}{_extremes(array, dtype)}, input {name!r} "
            f"takes {dtype_name(dtype)}"
        )
    if array.dtype.kind == "U":
        array = np.char.encode(array, "utf-8")
    with np.errstate(over="ignore"):
        taken = array.astype(object if dtype.kind == "S" else dtype, copy=False)
    if array.dtype.kind in "iufc" and taken is not array and np.isinf(taken).any():
        finite = np.abs(array[np.isfinite(array) & np.isinf(taken)])
        if finite.size:
            raise TooLargeNumber(
                f"{origin} holds {array.dtype} {finite.max():g}, which input {name!r}, "
                f"{dtype_name(dtype)}, would take as infinite"
            )
    return taken


def _extremes(array: Array, dtype: np.dtype[Any]) -> str:
    """The least and the greatest of integers that are too many for others."""
    both = array.dtype.kind in "iu" and dtype.kind in "iu" and array.size
    return f" from {array.min()} to {array.max()}" if both else ""


def signature_of(details: Details) -> tuple[int, ...]:
    """The sizes of a tensor; -1 where the model takes any."""
    return tuple(details["shape_signature"].tolist())


def dtype_name(dtype: np.dtype[Any]) -> str:
    """What a dtype is called in messages."""
    return "strings" if dtype.kind in "OSU" else dtype.name


def _castable(array: Array, dtype: np.dtype[Any]) -> bool:
    """Whether values keep their meaning: no fractions cut, no integers wrapped."""
    if dtype.kind in "OS" or array.dtype == dtype:
        return array.dtype.kind in "OSU" or array.dtype == dtype
    if array.dtype.kind in "iu" and dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return not array.size or (array.min() >= limits.min and array.max() <= limits.max)
    if dtype.kind in "fc" or dtype in _EXTENDED_FLOATS:
        kinds = "iufc" if dtype.kind == "c" else "iuf"
        return array.dtype.kind in kinds or array.dtype in _EXTENDED_FLOATS
    return False


def entry_names(names: Iterable[str]) -> list[str]:
    """`names` as those of files in an archive: what unpacks it writes none outside its folder."""
    safe = [_entry_name(name) for name in names]
    counts = Counter(safe)
    taken, found = set(counts), list[str]()
    for place, name in enumerate(safe):
        free = f"{place}_{name}" if counts[name] > 1 else name
        while counts[name] > 1 and free in taken:
            free = f"_{free}"
        taken.add(free)
        found.append(free)
    return found


def _entry_name(name: str) -> str:
    """Relative, without ``..``, drives and control characters; other names stay as they are."""
    plain = "".join(c if c.isprintable() else "_" for c in name)[:_LONGEST_NAME]
    parts = re.sub(r"^([A-Za-z]):(?=[/\\])", r"\1_", plain).replace("\\", "/").split("/")
    return (
        "/".join("_" * max(len(part), 1) if part in ("", ".", "..") else part for part in parts)
        or "_"
    )
