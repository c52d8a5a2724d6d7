"""Stands in for the modules from which other code imports the TFLite interpreter."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from tflite_ort import compiled_model
from tflite_ort.closing import Closing
from tflite_ort.custom_interpreter import InterpreterWithCustomOps
from tflite_ort.interpreter import Interpreter
from tflite_ort.optional import late, optional_module
from tflite_ort.providers.delegates import Delegate, OpResolverType, load_delegate
from tflite_ort.signatures import SignatureRunner

if TYPE_CHECKING:
    from tflite_ort import suggestions
else:
    suggestions = late("tflite_ort.suggestions")

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
_COMPILED: Mapping[str, Any] = {
    name: getattr(compiled_model, name)
    for name in (
        *("CompiledModel", "CpuKernelMode", "CpuOptions", "Environment", "EnvironmentOptions"),
        *("GpuOptions", "HardwareAccelerator", "Options", "TensorBuffer"),
    )
}
# The modules of LiteRT that these come from, one by one.
_COMPILED_IN: Mapping[str, Sequence[str]] = {
    "compiled_model": list(_COMPILED),
    "cpu_kernel_mode": ["CpuKernelMode"],
    "cpu_options": ["CpuKernelMode", "CpuOptions"],
    "environment": ["Environment", "EnvironmentOptions"],
    "gpu_options": ["GpuOptions"],
    "hardware_accelerator": ["HardwareAccelerator"],
    "options": ["CpuKernelMode", "CpuOptions", "GpuOptions", "HardwareAccelerator", "Options"],
    "tensor_buffer": ["TensorBuffer"],
}
# The release of TFLite whose interpreter has these names and methods.
_VERSION = "2.21.0"
# What is installed by name: modules, the package first, and what they hold.
_LAYOUTS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "tflite_runtime": {"tflite_runtime": {}, "tflite_runtime.interpreter": _INTERPRETER},
    "ai_edge_litert": {
        "ai_edge_litert": {},
        "ai_edge_litert.interpreter": _INTERPRETER,
        **{
            f"ai_edge_litert.{module}": {name: _COMPILED[name] for name in names}
            for module, names in _COMPILED_IN.items()
        },
    },
    "tensorflow.lite": {
        "tensorflow.lite": {"Interpreter": Interpreter},
        "tensorflow.lite.experimental": _EXPERIMENTAL,
        "tensorflow.lite.python": {},
        "tensorflow.lite.python.interpreter": _INTERPRETER,
    },
}


class Installed(Closing):
    """Modules that stand in `sys.modules` until `undo`; as a context manager, for a block."""

    def __init__(self, name: str, layout: Mapping[str, Mapping[str, Any]]) -> None:
        self._package = name
        parent = name.rpartition(".")[0]
        originals = {key: _original(key) for key in (*([parent] if parent else []), *layout)}
        self._hidden = {key: sys.modules[key] for key in layout if key in sys.modules}
        modules = {key: _module(key, names, originals[key]) for key, names in layout.items()}
        if parent and originals[parent] is None:
            modules = {parent: _module(parent, {}, None), **modules}
        self._modules = modules
        sys.modules.update(modules)
        self._attached = [
            _attach(sys.modules[package], attribute, module)
            for key, module in modules.items()
            for package, _, attribute in [key.rpartition(".")]
            if package
        ]

    def close(self) -> None:
        """As `undo`, at the end of a ``with`` block."""
        self.undo()

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
        for key, module in list(sys.modules.items()):  # imported meanwhile
            package, _, attribute = key.rpartition(".")
            if self._modules and key.startswith(f"{self._package}.") and package in self._hidden:
                vars(self._hidden[package]).setdefault(attribute, module)
        self._modules, self._attached, self._hidden = {}, [], {}


def install_as(name: str) -> Installed:
    """Let ``import <name>`` find this library's interpreter, for code that cannot be changed.

    Call it before that code is imported: what has been imported keeps the class it found.

    Args:
        name: ``"tflite_runtime"``, ``"ai_edge_litert"`` or ``"tensorflow.lite"``. Of a package of
            that name that is installed, everything but the interpreter passes through.

    Raises:
        ValueError: another name.

    Examples:
        >>> with install_as("tflite_runtime"):
        ...     from tflite_runtime.interpreter import Interpreter as Found
        >>> Found is Interpreter
        True
    """
    if name not in _LAYOUTS:
        near = suggestions.suggestion(name, _LAYOUTS)
        raise ValueError(
            f"cannot be installed as {name!r}, only as one of {sorted(_LAYOUTS)}{near}"
        )
    return Installed(name, _LAYOUTS[name])


def _original(name: str) -> ModuleType | None:
    """The module that is installed under a name; None where there is none."""
    if name in sys.modules:
        return sys.modules[name]
    parent, _, attribute = name.rpartition(".")
    package = _original(parent) if parent else None
    found = getattr(package, attribute, None)  # tensorflow.lite is made when it is asked for
    if isinstance(found, ModuleType):
        return found
    try:
        return optional_module(name)
    except (ImportError, ValueError):  # ValueError: of a module that says nothing of itself
        return None


def _module(name: str, names: Mapping[str, Any], original: ModuleType | None) -> ModuleType:
    """A module with `names`, and with all else that `original` has."""
    module = ModuleType(name, "Stands in for the module of this name: tflite_ort.install_as.")
    module.__spec__ = ModuleSpec(name, None, is_package=True)
    module.__path__ = list(getattr(original, "__path__", ()))
    if original is None:
        vars(module).update(names, __version__=_VERSION)
        return module
    ours = {each: value for each, value in _INTERPRETER.items() if hasattr(original, each)}
    vars(module).update(
        {**ours, **names},
        __getattr__=partial(getattr, original),
        __dir__=lambda: sorted({*dir(original), *names}),
    )
    return module


def _attach(package: ModuleType, attribute: str, module: ModuleType) -> tuple[ModuleType, str, Any]:
    """Make `module` an attribute of its package; returns both names and what was there before."""
    previous = vars(package).get(attribute)
    setattr(package, attribute, module)
    return package, attribute, previous
