"""Stands in for the modules from which other code imports the TFLite interpreter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType, TracebackType
from typing import Any, Self

from tflite_ort.custom_interpreter import InterpreterWithCustomOps
from tflite_ort.interpreter import Interpreter
from tflite_ort.providers.delegates import Delegate, OpResolverType, load_delegate
from tflite_ort.signatures import SignatureRunner

_INTERPRETER: Mapping[str, Any] = {
    "Delegate": Delegate,
    "Interpreter": Interpreter,
    "InterpreterWithCustomOps": InterpreterWithCustomOps,
    "OpResolverType": OpResolverType,
    "SignatureRunner": SignatureRunner,
    "load_delegate": load_delegate,
}
_EXPERIMENTAL: Mapping[str, Any] = {
    name: _INTERPRETER[name] for name in ("OpResolverType", "load_delegate")
}
# What is installed by name: modules, the package first, and what they hold.
_LAYOUTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "tflite_runtime": {"tflite_runtime": {}, "tflite_runtime.interpreter": _INTERPRETER},
    "ai_edge_litert": {"ai_edge_litert": {}, "ai_edge_litert.interpreter": _INTERPRETER},
    "tensorflow.lite": {
        "tensorflow.lite": {"Interpreter": Interpreter},
        "tensorflow.lite.experimental": _EXPERIMENTAL,
        "tensorflow.lite.python": {},
        "tensorflow.lite.python.interpreter": _INTERPRETER,
    },
}


class Installed:
    """Modules that stand in `sys.modules` until `undo`; as a context manager, for a block."""

    def __init__(self, name: str, layout: Mapping[str, Mapping[str, Any]]) -> None:
        self._hidden = {
            key: module
            for key, module in sys.modules.items()
            if key == name or key.startswith(f"{name}.")
        }
        for key in self._hidden:
            del sys.modules[key]
        parent = name.rpartition(".")[0]
        modules = {key: _module(key, names) for key, names in layout.items()}
        if parent and parent not in sys.modules:
            modules = {parent: _module(parent, {}), **modules}
        self._modules = modules
        sys.modules.update(modules)
        self._attached = [
            _attach(sys.modules[package], attribute, module)
            for key, module in modules.items()
            for package, _, attribute in [key.rpartition(".")]
            if package
        ]

    def undo(self) -> None:
        """Put back what was there before; what was imported meanwhile keeps what it imported."""
        for key, module in self._modules.items():
            if sys.modules.get(key) is module:
                del sys.modules[key]
        for package, attribute, previous in reversed(self._attached):
            if previous is None:
                delattr(package, attribute)
            else:
                setattr(package, attribute, previous)
        sys.modules.update(self._hidden)
        self._modules, self._attached, self._hidden = {}, [], {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.undo()


def install_as(name: str) -> Installed:
    """Let ``import <name>`` find this library's interpreter, for code that cannot be changed.

    Call it before that code is imported: what has been imported keeps the class it found.

    Args:
        name: ``"tflite_runtime"``, ``"ai_edge_litert"`` or ``"tensorflow.lite"``. A package of
            that name that is installed is hidden, with all its other modules, until `undo`.

    Raises:
        ValueError: another name.

    Example:
        >>> with install_as("tflite_runtime"):
        ...     from tflite_runtime.interpreter import Interpreter as Found
        >>> Found is Interpreter
        True
    """
    if name not in _LAYOUTS:
        raise ValueError(f"cannot be installed as {name!r}, only as one of {sorted(_LAYOUTS)}")
    return Installed(name, _LAYOUTS[name])


def _module(name: str, names: Mapping[str, Any]) -> ModuleType:
    module = ModuleType(name, "Stands in for the module of this name: tflite_ort.install_as.")
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__path__ = []
    vars(module).update(names)
    return module


def _attach(package: ModuleType, attribute: str, module: ModuleType) -> tuple[ModuleType, str, Any]:
    """Make `module` an attribute of its package; returns both names and what was there before."""
    previous = vars(package).get(attribute)
    setattr(package, attribute, module)
    return package, attribute, previous
