"""The real models that tests run: ``$TFLITE_ORT_MODELS``, else ``../shared/models``."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

MODELS_DIR = Path(
    os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)


def model_paths() -> list[Path]:
    """All of them; without the folder CI fails, and a test elsewhere is skipped."""
    paths = sorted(MODELS_DIR.glob("*.tflite"))
    if not paths:
        _missing(MODELS_DIR)
    return paths


def model_path(name: str) -> Path:
    path = MODELS_DIR / name
    if not path.exists():
        _missing(path)
    return path


def _missing(path: Path) -> None:
    if os.environ.get("CI"):
        raise FileNotFoundError(f"{path} is needed under CI")
    pytest.skip(f"{path} is not here")
