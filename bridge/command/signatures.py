"""The signatures of a model on the command line: each as a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import typer

from tflite_ort.base.files import made_folder
from tflite_ort.command.terminal import complain
from tflite_ort.export.signatures import signature_files, write_each
from tflite_ort.schema import ExportError, Model


def write_signatures(model: Model, folder: Path, write: Callable[[str, Path], None]) -> None:
    """Write a file for each signature that can be exported.

    Raises:
        Exit: with code 1 where one cannot be; which, and why, is said.
        BridgeError: as of `write_each`.
    """
    files = signature_files(model, folder)
    made_folder(folder)
    refused = write_each(files, write)
    for key, error in refused.items():
        complain(ExportError(f"signature {key!r} is not written: {error}"))
    if refused:
        raise typer.Exit(1)
