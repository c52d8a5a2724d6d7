"""Modules imported by name: what may be absent, what a command line names, what is imported late.

Modules that few processes need are imported in a block. A type checker reads it as any other::

    with late:
        import json

        from tflite_ort.plan import partition
"""

from __future__ import annotations

import builtins
import importlib
import os
import sys
from _thread import allocate_lock  # to import `threading` takes 0.4 ms
from collections.abc import Callable, Mapping, Sequence
from functools import partial
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


class LateModule:
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


class _Package:
    """What ``from package import module`` of a block takes modules from."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, module: str) -> LateModule:
        return LateModule(f"{self._name}.{module}")


class _Late:
    """In its blocks, import statements give a `LateModule` for each module that they name.

    Python calls `builtins.__import__` for such a statement, and tells the global names of the
    module that it stands in. Statements elsewhere, also of other threads, import as usual.
    """

    def __init__(self) -> None:
        self.lock = allocate_lock()
        self._blocks: list[int] = []  # the global names of the modules that are in a block
        self._usual: Callable[..., Any] = builtins.__import__
        self._own: Callable[..., Any] = self._usual

    def __enter__(self) -> None:
        with self.lock:
            if not self._blocks:
                self._usual = builtins.__import__
                self._own = partial(self._import, self._usual)
                vars(builtins)["__import__"] = self._own
            self._blocks.append(id(sys._getframe(1).f_globals))

    def __exit__(self, *raised: Any) -> None:
        with self.lock:
            self._blocks.remove(id(sys._getframe(1).f_globals))
            if not self._blocks and builtins.__import__ is self._own:  # else somebody has set it
                vars(builtins)["__import__"] = self._usual

    def _import(
        self,
        usual: Callable[..., Any],
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        """What `__import__` gives, which has these parameters."""
        if id(globals) not in self._blocks:
            return usual(name, globals, locals, fromlist, level)
        return _Package(name) if fromlist else LateModule(name)


late = _Late()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=late.lock.acquire,
        after_in_parent=late.lock.release,
        after_in_child=late.lock.release,
    )

_util = LateModule("importlib.util")


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
