"""Reads a .tflite file into a :class:`Model`; nothing is followed before it has been verified.

Work is bounded by the file: every table, vector and string is read once however many offsets lead
to it, and what is read may not add up to more than overlapping structures could explain. Depth is
bounded by the declarations, in which no table contains itself.
"""

from __future__ import annotations

import mmap
import os
import struct
from dataclasses import replace

import numpy as np

from tflite_ort.schema.check import check_model
from tflite_ort.schema.errors import MalformedModel, UnknownOperator, UnsupportedSchema
from tflite_ort.schema.model import Model
from tflite_ort.schema.verify import Corrupt, File, read_table

IDENTIFIER = b"TFL3"
SCHEMA_VERSION = 3

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def read_model(source: Source) -> Model:
    """Reads a model; constants are read-only views into the mapped file or the given bytes.

    Args:
        source: a path, or the content of a file.

    Raises:
        MalformedModel: the content is not a valid TFLite file; names the place and the offset.
        UnsupportedSchema: it is one of another schema version.
        UnknownOperator: it has operators that the schema known here does not number.
        OSError: the path cannot be read.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _read(memoryview(source).cast("B"))
    with open(source, "rb") as stream:
        if not os.fstat(stream.fileno()).st_size:
            raise MalformedModel("the file is empty")
        mapped = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
    model = _read(memoryview(mapped))
    return replace(model, folder=os.path.dirname(os.path.abspath(source)))


def _read(data: memoryview) -> Model:
    if len(data) < 8:
        raise MalformedModel(f"{len(data)} bytes, fewer than a header")
    if data[4:8] != IDENTIFIER:
        raise MalformedModel(f"identifier {bytes(data[4:8])!r}, not {IDENTIFIER!r}", offset=4)
    content = np.frombuffer(data, np.uint8)
    content.flags.writeable = False
    file = File(data, content)
    try:
        root = file.follow(0)
        _check_version(file, root)
        model = read_table(file, root, Model)
        if file.unknown_operators:
            raise UnknownOperator(_unknown(file.unknown_operators))
        check_model(model)
    except Corrupt as corrupt:
        offset = corrupt.offset if corrupt.table is None else file.positions.get(id(corrupt.table))
        raise MalformedModel(corrupt.reason, corrupt.path, offset) from None
    return model


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
