"""Reads a .tflite file into a :class:`Model`; nothing is followed before it has been verified.

Depth is bounded by the declarations, in which no table contains itself; the number and size of
what is read are bounded by the size of the file (see `tflite_ort.schema.file`).
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import replace

import numpy as np

from tflite_ort.schema.file.budgets import DEFAULT, Budgets
from tflite_ort.schema.file.check import problems
from tflite_ort.schema.file.declare import Array
from tflite_ort.schema.file.errors import MalformedModel, UnknownOperator, UnsupportedSchema
from tflite_ort.schema.file.file_bytes import Corrupt, File
from tflite_ort.schema.file.model import Model
from tflite_ort.schema.file.verify import read_table

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def read_model(source: Source, *, budgets: Budgets | None = None) -> Model:
    """Reads a model; constants are read-only views into the mapped file or the given bytes.

    Args:
        source: a path, or the content of a file.
        budgets: limits of what is made of the model, now and later.

    Raises:
        BudgetExceeded: the file has more tables than its budget.
        MalformedModel: the content is not a valid TFLite file; names the place and the offset.
        UnsupportedSchema: it is one of another schema version.
        UnknownOperator: it has operators that the schema known here does not number.
        OSError: the path cannot be read.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        content = np.asarray(memoryview(source).cast("B"))
        content.flags.writeable = False
        return _read(content, budgets or DEFAULT)
    model = _read(map_file(source), budgets or DEFAULT)
    return replace(model, folder=os.path.dirname(os.path.abspath(source)))


def map_file(path: str | os.PathLike[str]) -> Array:
    """The bytes of a file as a read-only view of its map."""
    with open(path, "rb") as stream:
        if not os.fstat(stream.fileno()).st_size:
            return np.empty(0, np.uint8)
        return np.frombuffer(mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def _read(content: Array, budgets: Budgets) -> Model:
    identifier = content[4:8].tobytes()
    if identifier != IDENTIFIER:
        raise MalformedModel(
            f"{content.size} bytes with identifier {identifier!r}, not {IDENTIFIER!r}", offset=4
        )
    file = File(content, budgets)
    try:
        root = file.follow(0)
        _check_version(file, root)
        model = read_table(file, root, Model)
    except Corrupt as corrupt:
        raise MalformedModel(corrupt.reason, corrupt.path, corrupt.offset) from None
    file.check_tables()
    if file.unknown_operators:
        raise UnknownOperator(_unknown(file.unknown_operators))
    for reason, path, table in problems(model):
        raise MalformedModel(reason, path, file.positions[id(table)])
    return replace(model, budgets=budgets)


def _check_version(file: File, root: int) -> None:
    """Another version's tables would not mean what the declarations say, so this comes first."""
    offsets = file.vtable(root)
    version = 0
    if offsets[0]:
        at = root + offsets[0]
        file.check_span(at, 4, 4)
        (version,) = struct.unpack_from("<I", file.data, at)
    if version != SCHEMA_VERSION:
        raise UnsupportedSchema(
            f"Model provided is schema version {version} not equal to supported version "
            f"{SCHEMA_VERSION}."
        )


def _unknown(codes: list[int]) -> str:
    numbers = ", ".join(map(str, sorted(set(codes))))
    return f"Operator codes beyond those known: {numbers}. The model may need a newer library."
