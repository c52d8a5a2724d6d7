"""What a verb works on: a model, or one whose primary subgraph is that of a signature."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tflite_ort.schema import Model, read_model
from tflite_ort.signature_model import signature_file


@contextmanager
def called_model(path: Path, signature: str | None, **limits: Any) -> Iterator[tuple[Path, Model]]:
    """The file and its model; with a signature a file of its own, which is removed afterwards.

    Args:
        limits: the external_roots and budgets of `read_model`.

    Raises:
        ModelError: the file cannot be read.
        TensorError: there is no such signature.
    """
    model = read_model(path, **limits)
    if signature is None:
        yield path, model
        return
    with signature_file(model, signature, path.name) as file:
        yield file, read_model(file.read_bytes(), budgets=model.budgets)
