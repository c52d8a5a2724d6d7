"""Facts about versions from TFLite's sources. They are in a folder beside the repository."""

from __future__ import annotations

import json
import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

REFERENCE_DIR = Path(__file__).parents[3] / "shared" / "reference"


@cache
def reference(name: str) -> Any:
    """One JSON file of facts. Without it the test fails in CI and is skipped elsewhere."""
    path = REFERENCE_DIR / name
    if not path.exists():
        if os.environ.get("CI"):
            raise FileNotFoundError(f"{path} is needed under CI")
        pytest.skip(f"{path} is not here")
    return json.loads(path.read_text(encoding="utf-8"))


def known_to_tflite() -> dict[str, range]:
    """The versions that TFLite registers, by operator."""
    return {
        row["name"]: range(row["min_version"], row["max_version"] + 1)
        for row in reference("ops.json")["ops"]
        if row["registered"]
    }
