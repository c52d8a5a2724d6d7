"""What a verb works on: a model, one of a bundle, or the subgraph of a signature as a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tflite_ort.base.files import portable_names, write_bytes
from tflite_ort.model.opening import model_source
from tflite_ort.model.signature_model import signature_file
from tflite_ort.schema import Budgets, Model, read_model


@contextmanager
def called_model(
    path: Path, signature: str | None, name: str | None = None, **limits: Any
) -> Iterator[tuple[Path, Model]]:
    """The file and its model; of a bundle and of a signature a file of its own, which is removed
    afterwards.

    Args:
        name: of the model in a bundle; None for the only one.
        limits: the external_roots and budgets of `read_model`.

    Raises:
        ModelError: the file cannot be read.
        TensorError: there is no such signature.
    """
    with _unpacked(path, name, limits.get("budgets")) as file:
        model = read_model(file, **limits)
        if signature is None:
            yield file, model
            return
        with signature_file(model, signature, file.name) as called:
            yield called, read_model(called.read_bytes(), budgets=model.budgets)


@contextmanager
def _unpacked(path: Path, name: str | None, budgets: Budgets | None) -> Iterator[Path]:
    """The model's file; of a model in a bundle a copy."""
    source = model_source(path, name, budgets)
    if not isinstance(source, (bytes, bytearray, memoryview)):
        yield path
        return
    (plain,) = portable_names([Path(name or path.stem).stem])
    with TemporaryDirectory() as folder:
        file = Path(folder) / f"{plain}.tflite"
        write_bytes(file, bytes(source))
        yield file
