"""Reads a .tflite file into a :class:`Model`; nothing is followed before it has been verified.

Depth is bounded by the declarations, in which no table contains itself; the number and size of
what is read are bounded by the size of the file (see `tflite_ort.schema.file`).
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence

from tflite_ort.schema.file.budgets import Budgets, chosen_budgets
from tflite_ort.schema.file.check import problems
from tflite_ort.schema.file.errors import MalformedModel, UnknownOperator, UnsupportedSchema
from tflite_ort.schema.file.file_bytes import Corrupt, File
from tflite_ort.schema.file.model import Model
from tflite_ort.schema.file.other_formats import HEAD, other_format
from tflite_ort.schema.file.plain_files import IDENTIFIER, bytes_content, file_content
from tflite_ort.schema.file.tables import Array
from tflite_ort.schema.file.verify import read_table

SCHEMA_VERSION = 3

Source = str | os.PathLike[str] | bytes | bytearray | memoryview


def read_model(
    source: Source,
    *,
    external_roots: Sequence[str | os.PathLike[str]] = (),
    budgets: Budgets | None = None,
) -> Model:
    """Reads a model; constants are read-only views of the file's content or of the given bytes.

    A file up to 256 MiB is read whole: who changes it later changes nothing here. A larger one is
    mapped, and must not be changed while the model is in use: cut short, it ends the process.

    Args:
        source: the path of a plain file, or the content of a file.
        external_roots: folders in which external buffers may be, besides the model's own.
        budgets: limits of what is made of the model, now and later.

    Raises:
        BudgetExceeded: the file has more tables than its budget.
        MalformedModel: the content is not a valid TFLite file; names the place and the offset.
        UnsupportedSchema: it is one of another schema version.
        UnknownOperator: it has operators that the schema known here does not number.
        UnreadableModel: the path is that of a folder, a pipe or a device.
        OSError: the path cannot be read.
    """
    if isinstance(source, (bytes, bytearray, memoryview)):
        content, folder = bytes_content(source), None
    else:
        content, folder = file_content(source), os.path.dirname(os.path.abspath(source))
    return read_content(content, folder, external_roots=external_roots, budgets=budgets)


def read_content(
    content: Array,
    folder: str | None,
    *,
    external_roots: Sequence[str | os.PathLike[str]] = (),
    budgets: Budgets | None = None,
) -> Model:
    """As `read_model`, of what `file_content` or `bytes_content` gave.

    Args:
        folder: where the file is; None for bytes.
    """
    if isinstance(external_roots, (str, os.PathLike)):
        raise TypeError("external_roots is a list of folders, not one folder")
    roots = tuple(os.path.abspath(root) for root in external_roots)
    budgets = chosen_budgets(budgets)
    model = _read(content, budgets)
    facts = {"folder": folder, "external_roots": roots, "budgets": budgets}
    for name, value in facts.items():
        object.__setattr__(model, name, value)  # nobody else has the model yet
    return model


def _read(content: Array, budgets: Budgets) -> Model:
    identifier = content[4:8].tobytes()
    if identifier != IDENTIFIER:
        raise MalformedModel(
            f"{content.size} bytes with identifier {identifier!r}, not {IDENTIFIER!r}"
            f"{other_format(content[:HEAD].tobytes())}",
            offset=4,
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
    return model


def _check_version(file: File, root: int) -> None:
    """Another version's tables would not mean what the declarations say, so this comes first."""
    offset = file.table(root).offsets[0]
    version = 0
    if offset:
        at = root + offset
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
