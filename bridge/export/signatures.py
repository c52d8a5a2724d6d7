"""All signatures of a model as ONNX, a file each."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tflite_ort.base.files import made_folder, portable_names
from tflite_ort.base.warned import warn_caller
from tflite_ort.bundles.bundle import Source
from tflite_ort.export.check import ExportMismatch
from tflite_ort.export.exporting import export_onnx
from tflite_ort.model.opening import model_source
from tflite_ort.schema import (
    BridgeError,
    Budgets,
    ExportError,
    ExportWarning,
    InsufficientMemory,
    Model,
    read_model,
)


def export_signatures(
    model: Source,
    folder: str | os.PathLike[str],
    *,
    external_roots: Sequence[str | os.PathLike[str]] = (),
    budgets: Budgets | None = None,
    **options: Any,
) -> dict[str, Path]:
    """Write each signature of a model as a file of its name, see `export_onnx`.

    What one signature sets and another reads has one name in all files. An ExportWarning lists the
    signatures that cannot be exported, with the reasons.

    Args:
        folder: made if it is not there.
        options: of `export_onnx`.

    Returns:
        The files that were written, by signature.

    Raises:
        ExportError: there are no signatures, or none can be exported.
        ExportMismatch, ModelError, VersionError, OSError: as of `export_onnx`.
    """
    source = model_source(model, budgets=budgets)
    read = read_model(source, external_roots=external_roots, budgets=budgets)
    files = signature_files(read, folder)
    made_folder(folder)
    refused = write_each(files, lambda key, path: export_onnx(read, path, signature=key, **options))
    if refused:
        warn_caller(_listed("signatures are not written", refused), ExportWarning)
    return {key: path for key, path in files.items() if key not in refused}


def write_each(
    files: Mapping[str, Path], write: Callable[[str, Path], object]
) -> dict[str, BridgeError]:
    """Write the signatures that can be; returns why the others cannot.

    Raises:
        BridgeError: none can be, or a file is off.
    """
    refused: dict[str, BridgeError] = {}
    for key, path in files.items():
        try:
            write(key, path)
        except (ExportMismatch, InsufficientMemory):
            raise
        except BridgeError as error:
            refused[key] = error
    if len(refused) < len(files):
        return refused
    if len(refused) == 1:
        raise refused.popitem()[1]
    raise ExportError(_listed("no signature can be exported", refused))


def _listed(said: str, refused: Mapping[str, BridgeError]) -> str:
    return "\n".join([f"{said}:", *(f"  {key!r}: {error}" for key, error in refused.items())])


def signature_files(model: Model, folder: str | os.PathLike[str]) -> dict[str, Path]:
    """The file of each signature.

    Raises:
        ExportError: there are no signatures.
    """
    keys = [each.signature_key for each in model.signature_defs]
    if not keys:
        raise ExportError("The model has no signatures. Export it as a whole, without them.")
    names = portable_names(keys)
    return {key: Path(folder) / f"{name}.onnx" for key, name in zip(keys, names, strict=True)}
