"""Modules imported by name: packages that are never required, and what a command line names."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import Any


def optional_module(name: str) -> ModuleType | None:
    """The module `name` (dotted), or None where its package is not installed."""
    if importlib.util.find_spec(name.partition(".")[0]) is None:
        return None
    # By name: an import statement would make the package a dependency of ours.
    return importlib.import_module(name)


def referenced(reference: str) -> Any:
    """The object that ``module:name`` names; modules of the working directory are found too.

    Raises:
        ValueError: it names nothing.
    """
    module, _, name = reference.partition(":")
    if not module or not name.isidentifier():
        raise ValueError(f"{reference!r} is not module:name")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        return getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ValueError(f"{reference!r}: {error}") from error
