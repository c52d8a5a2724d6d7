"""The real models that tests run. They are in ``$TFLITE_ORT_MODELS`` or ``../shared/models``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MODELS_DIR = Path(
    os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)


def model_paths() -> list[Path]:
    """The paths of all models. Without the folder the test fails in CI and is skipped elsewhere."""
    paths = sorted(MODELS_DIR.glob("*.tflite"))
    if not paths:
        _missing(MODELS_DIR)
    return paths


def model_path(name: str) -> Path:
    path = MODELS_DIR / name
    if not path.exists():
        _missing(path)
    return path


def newer_model_path(name: str) -> Path:
    """A file of ``models2``, which stands beside the other models: newer models and bundles."""
    path = MODELS_DIR.parent / "models2" / name
    if not path.exists():
        _missing(path)
    return path


def _missing(path: Path) -> None:
    if os.environ.get("CI"):
        raise FileNotFoundError(f"{path} is needed under CI")
    pytest.skip(f"{path} is not here")
