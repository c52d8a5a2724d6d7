"""Modules imported by name: what may be absent, what a command line names, what is imported late.

`late` stands for a module of ours that few processes need; type checkers see the module itself::

    if TYPE_CHECKING:
        from tflite_ort import verification
    else:
        verification = late("tflite_ort.verification")
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import Any

from tflite_ort.base.collecting import promote, seldom


def installed(name: str) -> bool:
    """Whether the package `name` is there; it is not imported."""
    return _util.find_spec(name) is not None


def optional_module(name: str) -> ModuleType | None:
    """The module `name` (dotted), or None where its package is not installed."""
    if name in sys.modules:  # to find it again takes long
        return importlib.import_module(name)  # waits for another thread that imports it
    if not installed(name.partition(".")[0]):
        return None
    # By name: an import statement would make the package a dependency of ours.
    return importlib.import_module(name)


def load(name: str) -> ModuleType | None:
    """The module `name` (dotted), or None where its package, which is there, has no such module."""
    try:
        return imported(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        return None


def imported(name: str) -> ModuleType:
    """The module `name` (dotted), imported unless it is there."""
    known = name in sys.modules
    with seldom:
        module = importlib.import_module(name)  # waits for another thread that imports it
    if not known:
        promote()
    return module


class late:  # noqa: N801  # reads as a statement
    """A module that is imported when something of it is first used."""

    __slots__ = ("__dict__", "_module", "_name")

    def __init__(self, name: str) -> None:
        self._name = name
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            self._module = imported(self._name)
            self.__dict__ = self._module.__dict__  # so that this function is not asked again
        return getattr(self._module, attribute)


_util = late("importlib.util")


def late_names(
    package: str, modules: Mapping[str, str], classes: Sequence[str] = ()
) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package whose names are imported when they are first used.

    Args:
        modules: by name, the module that has it. Submodules are found without.
        classes: modules all of whose public classes are names of the package, looked through in
            this order.
    """

    def get(name: str) -> Any:
        if name in modules:
            value = getattr(imported(modules[name]), name)
        elif name[:1].isupper() and classes:
            loaded = map(importlib.import_module, classes)
            value = next((getattr(each, name) for each in loaded if name in each.__all__), None)
            if value is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
        else:
            value = None if name.startswith("_") else load(f"{package}.{name}")
            if value is None:
                raise AttributeError(f"module {package!r} has no attribute {name!r}")
        setattr(sys.modules[package], name, value)
        return value

    return get


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
