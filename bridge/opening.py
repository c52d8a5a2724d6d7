"""The model and the number of threads, checked as ``tf.lite.Interpreter`` does."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tflite_ort.schema import Budgets, Model, UnreadableModel, read_model


def check_threads(num_threads: int | None) -> None:
    """Refuse a number of threads that LiteRT refuses.

    Raises:
        ValueError: it is no integer above 0.
    """
    if num_threads is None:
        return
    if not isinstance(num_threads, int):
        raise ValueError("type of num_threads should be int")
    if num_threads < 1:
        raise ValueError("num_threads should >= 1")


def opened_model(
    path: str | os.PathLike[str] | None,
    content: bytes | bytearray | memoryview | None,
    budgets: Budgets | None = None,
    external_roots: Sequence[str | os.PathLike[str]] = (),
) -> Model:
    """The model in a file, or in the bytes of one.

    Args:
        external_roots: folders of external constants, besides the model's own.

    Raises:
        BudgetExceeded: it asks for more than `budgets`, by default `Budgets`.
        ValueError: both are given, or none; TypeError where the content is text.
        ModelError: it is no model; UnreadableModel where the file cannot be opened.
    """
    if path and content:
        raise ValueError("Can't both provide `model_path` and `model_content`")
    if isinstance(content, str):
        raise TypeError("model_content must be bytes, got str")
    if path:
        return _model_at(path, budgets, external_roots)
    if content is None:
        raise ValueError("`model_path` or `model_content` must be specified.")
    return read_model(content, external_roots=external_roots, budgets=budgets)


def _model_at(
    path: str | os.PathLike[str],
    budgets: Budgets | None,
    external_roots: Sequence[str | os.PathLike[str]],
) -> Model:
    try:
        return read_model(os.fsdecode(path), external_roots=external_roots, budgets=budgets)
    except OSError as error:
        raise UnreadableModel(f"Could not open '{path}': {error.strerror or error}") from error
