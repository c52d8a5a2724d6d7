"""The names that a module gives to ``import *``."""

from __future__ import annotations

from typing import Any


def export_classes(namespace: dict[str, Any]) -> None:
    """Make the public classes that a module defines all that ``import *`` takes from it.

    Type checkers read no computed ``__all__``; without one they take what the module defines, and
    nothing that it imports.

    Args:
        namespace: the module's `globals()`, when all its classes are defined.
    """
    namespace["__all__"] = [
        name
        for name, value in namespace.items()
        if isinstance(value, type)
        and value.__module__ == namespace["__name__"]
        and not name.startswith("_")
    ]
