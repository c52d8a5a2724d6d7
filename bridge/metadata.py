"""What a model says about itself: its TFLite metadata and the files that are packed with it."""

from __future__ import annotations

import errno
import io
import json
import os
import struct
import zipfile
import zlib
from base64 import b64encode
from collections.abc import Mapping, Sequence
from enum import IntEnum
from typing import Any

import numpy as np

from tflite_ort.base.json_text import written
from tflite_ort.base.records import field, record
from tflite_ort.schema import BudgetExceeded, MalformedModel, Model, Table
from tflite_ort.schema.file.budgets import DEFAULT, Budgets, Meter
from tflite_ort.schema.file.metadata import metadata_text
from tflite_ort.schema.file.model_metadata import (
    AssociatedFile,
    AssociatedFileType,
    ModelMetadata,
    NormalizationOptions,
    SubGraphMetadata,
    TensorMetadata,
    read_metadata,
)
from tflite_ort.schema.file.tables import fields_of

Source = str | os.PathLike[str] | bytes | bytearray | memoryview

# What zipfile raises of archives that are none: ValueError of positions before the file.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
)

_LABELS = (AssociatedFileType.TENSOR_AXIS_LABELS, AssociatedFileType.TENSOR_VALUE_LABELS)
# What a line of a label file takes in memory, whatever its length.
_LINE_BYTES = 64
# Of labels: a character may take four bytes, where it has one in the file.
_WIDEST = 4
# A file of the archive counts as many bytes more, for what it takes to open it.
_FILE_BYTES = 4096


@record
class TensorDescription:
    """An input or output.

    Args:
        mean, std: real values are (value - mean) / std, one or one per channel; empty: as they are.
        labels: of the values or along the last axis; empty without.
        table: everything that is said of it.
    """

    name: str = ""
    description: str = ""
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    table: TensorMetadata = field(default_factory=TensorMetadata)


@record
class Metadata:
    """A model's own description.

    Args:
        inputs: of the primary subgraph, in its order; empty without metadata.
        outputs: likewise.
        files: by name, the content of the associated files.
        table: everything that is said; None for a model without TFLite metadata.
    """

    name: str = ""
    description: str = ""
    version: str = ""
    author: str = ""
    license: str = ""
    inputs: tuple[TensorDescription, ...] = ()
    outputs: tuple[TensorDescription, ...] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    table: ModelMetadata | None = None

    def text(self, file: str) -> str:
        """An associated file as text."""
        return self.files[file].decode("utf-8", "replace")


def model_metadata(model: Model, source: Source | None) -> Metadata:
    """The metadata of `model`, which was read from `source`; without a source no files.

    Raises:
        BudgetExceeded: its files are larger than their budget.
        MalformedModel: it is damaged.
    """
    files = {} if source is None else associated_files(source, model.budgets)
    table = read_metadata(model)
    if table is None:
        return Metadata(description=model.description, files=files)
    graph = table.subgraph_metadata[0] if table.subgraph_metadata else SubGraphMetadata()
    label_files = _LabelFiles(files, model.budgets)
    return Metadata(
        table.name,
        table.description or model.description,
        table.version,
        table.author,
        table.license,
        tuple(_tensor(each, label_files) for each in graph.input_tensor_metadata),
        tuple(_tensor(each, label_files) for each in graph.output_tensor_metadata),
        files,
        table,
    )


def associated_files(source: Source, budgets: Budgets = DEFAULT) -> dict[str, bytes]:
    """The files in the zip archive that follows a model; none where there is no archive.

    Raises:
        BudgetExceeded: unpacked they have more bytes than the budget.
        MalformedModel: the archive is damaged.
    """
    stream = source if isinstance(source, (str, os.PathLike)) else io.BytesIO(source)
    if not zipfile.is_zipfile(stream):
        return {}
    try:
        with zipfile.ZipFile(stream) as archive:
            size = sum(entry.file_size + _FILE_BYTES for entry in archive.infolist())
            budgets.check("metadata_bytes", size, "the archive of files")
            return {name: archive.read(name) for name in archive.namelist()}
    except BudgetExceeded:
        raise
    except _DAMAGED as error:
        raise MalformedModel(f"associated files cannot be read: {error}") from error
    except OSError as error:
        if error.errno != errno.EINVAL:  # of a position before the file
            raise
        raise MalformedModel(f"associated files cannot be read: {error}") from error


def _tensor(table: TensorMetadata, files: _LabelFiles) -> TensorDescription:
    normalization = next(
        (
            unit.options
            for unit in table.process_units
            if isinstance(unit.options, NormalizationOptions)
        ),
        NormalizationOptions(),
    )
    return TensorDescription(
        table.name,
        table.description,
        normalization.mean,
        normalization.std,
        files.labels(table.associated_files),
        table,
    )


class _LabelFiles:
    """Label files as lines; each is split once, however many tensors name it."""

    def __init__(self, files: Mapping[str, bytes], budgets: Budgets) -> None:
        self._files, self._meter = files, Meter(budgets)
        self._lines: dict[str, tuple[str, ...]] = {}

    def labels(self, described: Sequence[AssociatedFile]) -> tuple[str, ...]:
        """The lines of the first label file without a locale, or of the first one.

        Raises:
            BudgetExceeded: they count more than ``metadata_bytes``: 64 for each line, and four
                times their bytes.
        """
        candidates = [
            each for each in described if each.type in _LABELS and each.name in self._files
        ]
        for each in sorted(candidates, key=lambda file: bool(file.locale)):
            if each.name not in self._lines:
                self._lines[each.name] = self._split(self._files[each.name])
            return self._lines[each.name]
        return ()

    def _split(self, content: bytes) -> tuple[str, ...]:
        most = content.count(b"\n") + content.count(b"\r") + 1
        needed = _LINE_BYTES * most + _WIDEST * len(content)
        self._meter.spend("metadata_bytes", needed, "a label file")
        return tuple(line.decode("utf-8", "replace") for line in content.splitlines())


def properties(model: Model, source: Source | None) -> dict[str, str]:
    """What the exported form of `model` carries as ``metadata_props``.

    Returns:
        Where the model has them ``tflite.operator_versions`` (JSON) of those beyond version 1,
        ``tflite.min_runtime_version``, ``tflite.metadata`` (JSON) and, of each associated file
        that is text, ``tflite.file.<name>``. Damaged or too large metadata is
        ``tflite.metadata_error``. The description of the model is the ``doc_string``.
    """
    codes = model.operator_codes
    versions = {code.custom_code or code.builtin_code.name: code.version for code in codes}
    later = {name: version for name, version in versions.items() if version != 1}
    found = {
        "tflite.operator_versions": json.dumps(later, sort_keys=True) if later else None,
        "tflite.min_runtime_version": metadata_text(model, "min_runtime_version"),
    }
    try:
        metadata = model_metadata(model, source)
    except (MalformedModel, BudgetExceeded) as error:
        found["tflite.metadata_error"] = str(error)
    else:
        found |= {f"tflite.file.{name}": _text(file) for name, file in metadata.files.items()}
        if metadata.table is not None:
            found["tflite.metadata"] = written(_plain(metadata.table))
    return {key: value for key, value in found.items() if value}


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None


def _plain(value: Any) -> Any:
    """Tables as dictionaries without what is empty, enums as their names, bytes in base 64."""
    if isinstance(value, Table):
        items = {name: _plain(getattr(value, name)) for name in fields_of(type(value))}
        return {name: item for name, item in items.items() if item not in (None, "", [])}
    if isinstance(value, IntEnum):
        return value.name
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return b64encode(value.tobytes()).decode() if isinstance(value, np.ndarray) else value
