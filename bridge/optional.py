"""Packages that are used where they are installed and never required."""

from __future__ import annotations

import importlib
import importlib.util
from types import ModuleType


def optional_module(name: str) -> ModuleType | None:
    """The module `name` (dotted), or None where its package is not installed."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        return None
    # By name: an import statement would make the package a dependency of ours.
    return importlib.import_module(name)
