"""All signatures of a model as ONNX, a file each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tflite_ort.bundles.bundle import Source
from tflite_ort.export import export_onnx
from tflite_ort.files import made_folder, portable_names
from tflite_ort.opening import model_source
from tflite_ort.schema import Budgets, ExportError, Model, read_model


def export_signatures(
    model: Source,
    folder: str | os.PathLike[str],
    *,
    external_roots: Sequence[str | os.PathLike[str]] = (),
    budgets: Budgets | None = None,
    **options: Any,
) -> dict[str, Path]:
    """Write each signature of a model as a file of its name, see `export_onnx`.

    Args:
        folder: made if it is not there.
        options: of `export_onnx`.

    Returns:
        The files by signature.

    Raises:
        ExportError: there are no signatures, or one cannot be exported.
        ModelError, VersionError, OSError: as of `export_onnx`.
    """
    source = model_source(model, budgets=budgets)
    read = read_model(source, external_roots=external_roots, budgets=budgets)
    files = signature_files(read, folder)
    made_folder(folder)
    for key, path in files.items():
        export_onnx(read, path, signature=key, **options)
    return files


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
