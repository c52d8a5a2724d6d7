"""Stands in for the modules from which other code imports the TFLite interpreter."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.machinery import ModuleSpec
from inspect import signature
from types import MappingProxyType, ModuleType
from typing import Any

from tflite_ort.base.closing import Closing
from tflite_ort.base.optional import late, optional_module
from tflite_ort.base.warned import warn_caller
from tflite_ort.cache.choice import CacheChoice
from tflite_ort.compiled_model import compiled_model
from tflite_ort.compiled_model.compiled_model import CompiledModel
from tflite_ort.compiled_model.vendor_options import VENDOR_CLASSES
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.interpreter.signatures import SignatureRunner
from tflite_ort.litert.custom_interpreter import InterpreterWithCustomOps
from tflite_ort.model.opening import check_hybrid, check_threads
from tflite_ort.providers.delegates import (
    AUTO,
    Delegate,
    OpResolverType,
    ProviderChoices,
    chosen_delegates,
    load_delegate,
)
from tflite_ort.providers.precision import check_precision
from tflite_ort.providers.traits import FULL_PRECISION

with late:
    from tflite_ort.base import suggestions
    from tflite_ort.litert import mediapipe_names

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
_LITE: Mapping[str, Any] = {"Interpreter": Interpreter}
_COMPILED: Mapping[str, Any] = {
    name: getattr(compiled_model, name)
    for name in (
        *("CompiledModel", "CpuKernelMode", "CpuOptions", "Environment", "EnvironmentOptions"),
        *("GpuOptions", "HardwareAccelerator", "Options", "TensorBuffer"),
    )
} | {kind.__name__: kind for kinds in VENDOR_CLASSES.values() for kind in kinds}
# The modules of LiteRT that these come from, one by one.
_COMPILED_IN: Mapping[str, Sequence[str]] = {
    "compiled_model": list(_COMPILED),
    "cpu_kernel_mode": ["CpuKernelMode"],
    "cpu_options": ["CpuKernelMode", "CpuOptions"],
    "environment": ["Environment", "EnvironmentOptions"],
    "gpu_options": ["GpuOptions"],
    "hardware_accelerator": ["HardwareAccelerator"],
    "options": [
        *("CpuKernelMode", "CpuOptions", "GpuOptions", "HardwareAccelerator", "Options"),
        *(kind.__name__ for kinds in VENDOR_CLASSES.values() for kind in kinds),
    ],
    "tensor_buffer": ["TensorBuffer"],
    **{key: [kind.__name__ for kind in kinds] for key, kinds in VENDOR_CLASSES.items()},
}
# The release of TFLite whose interpreter has these names and methods.
TFLITE_VERSION = "2.21.0"
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
        "tensorflow.lite": _LITE,
        "tensorflow.lite.experimental": _EXPERIMENTAL,
        "tensorflow.lite.python": {},
        "tensorflow.lite.python.interpreter": _INTERPRETER,
        "tensorflow.lite.python.lite": _LITE,
        **{
            f"tensorflow.{place}": names
            for api in ("compat", "_api.v2.compat")
            for version in ("v1", "v2")
            for place, names in (
                (api, {}),
                (f"{api}.{version}", {}),
                (f"{api}.{version}.lite", _LITE),
                (f"{api}.{version}.lite.experimental", _EXPERIMENTAL),
            )
        },
        "tensorflow._api": {},
        "tensorflow._api.v2": {},
        "tensorflow._api.v2.lite": _LITE,
        "tensorflow._api.v2.lite.experimental": _EXPERIMENTAL,
    },
}
_MEDIAPIPE = "mediapipe"
NAMES = (*_LAYOUTS, _MEDIAPIPE)
# The module of an installed TensorFlow that defines the interpreter: all others take it from there.
_DEFINED = {"tensorflow.lite": "tensorflow.lite.python.interpreter"}


class Installed(Closing):
    """Modules that stand in `sys.modules` until `undo`; as a context manager, for a block."""

    def __init__(
        self,
        name: str,
        layout: Mapping[str, Mapping[str, Any]],
        anywhere: Mapping[str, Any] = MappingProxyType({}),
        undone: Callable[[], None] | None = None,
    ) -> None:
        self._package, root = name, name.partition(".")[0]
        self._undone = undone
        before, parent = set(sys.modules), name.rpartition(".")[0]
        keys = (*([parent] if parent else []), *layout)
        # Nothing of MediaPipe passes through: its import takes seconds, and it would stay loaded.
        originals = {key: None if name == _MEDIAPIPE else _original(key) for key in keys}
        self._hidden = {key: sys.modules[key] for key in layout if key in sys.modules}
        theirs = {key: module for key, module in self._hidden.items() if key in before}
        importers = _importers(root, theirs, layout)
        modules: dict[str, ModuleType] = {
            key: _StandIn(key, names, originals[key], anywhere) for key, names in layout.items()
        }
        if parent and originals[parent] is None:
            modules = {parent: _StandIn(parent, {}, None, {}), **modules}
        holders = list(_holders(root, self._hidden, layout))
        self._modules = modules
        sys.modules.update(modules)
        self._attached = [
            _attach(sys.modules[package], attribute, module)
            for key, module in modules.items()
            for package, _, attribute in [key.rpartition(".")]
            if package
        ]
        self._attached += [_attach(*holder) for holder in holders]
        if importers:
            warn_caller(
                f"{', '.join(importers)} imported {name} before install_as({name!r}) and may keep "
                "its interpreter: call install_as first",
                RuntimeWarning,
            )

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
        if self._undone is not None:
            self._undone()


def install_as(
    name: str,
    *,
    providers: ProviderChoices | None = None,
    hybrid: str | None = None,
    cache: CacheChoice | None = None,
    num_threads: int | None = None,
    precision: str | None = None,
) -> Installed:
    """Let ``import <name>`` find this library's interpreter, for code that cannot be changed.

    Call it before that code is imported: what has been imported keeps the class it found, with a
    RuntimeWarning that names it.

    Args:
        name: ``"tflite_runtime"``, ``"ai_edge_litert"`` or ``"tensorflow.lite"``. Of a package of
            that name that is installed, everything but the interpreter passes through. Or
            ``"mediapipe"``, for `tflite_ort.tasks`, which takes the place of the whole package.
        providers, hybrid, cache, num_threads, precision: of `Interpreter`, where that code gives
            none. Tasks of mediapipe take neither `hybrid` nor `cache`.

    Raises:
        ValueError: another name, or an argument that `Interpreter` refuses.
        DelegateError: the installed onnxruntime has no such provider.

    Examples:
        >>> with install_as("tflite_runtime"):
        ...     from tflite_runtime.interpreter import Interpreter as Found
        >>> Found is Interpreter
        True
    """
    given = {
        "providers": providers,
        "hybrid": hybrid,
        "cache": cache,
        "num_threads": num_threads,
        "precision": precision,
    }
    arguments = {key: value for key, value in given.items() if value is not None}
    check_installable(name, arguments)
    if name == _MEDIAPIPE:
        mediapipe_names.say(arguments)
        layout = mediapipe_names.mediapipe_layout()
        return Installed(name, layout, undone=partial(mediapipe_names.say, {}))
    layout, defined = _LAYOUTS[name], _DEFINED.get(name)
    if defined and hasattr(_original(defined), "Interpreter"):
        layout = {defined: layout[defined]}

    classes: dict[Any, Any] = {
        each: preset(each, arguments) for each in (*_INTERPRETER.values(), *_COMPILED.values())
    }

    def named(names: Mapping[str, Any]) -> dict[str, Any]:
        return {each: classes[value] for each, value in names.items()}

    modules = {key: named(names) for key, names in layout.items()}
    return Installed(name, modules, named(_INTERPRETER))


def check_installable(name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse now what `Interpreter` would refuse later.

    Raises:
        ValueError: another name, or an argument that `Interpreter` refuses.
        DelegateError: the installed onnxruntime has no such provider.
    """
    if name not in NAMES:
        near = suggestions.suggestion(name, NAMES)
        raise ValueError(f"cannot be installed as {name!r}, only as one of {sorted(NAMES)}{near}")
    check_threads(arguments.get("num_threads"))
    if "hybrid" in arguments:
        check_hybrid(arguments["hybrid"])
    precision = arguments.get("precision", FULL_PRECISION)
    check_precision(precision)
    if arguments.get("providers", AUTO) != AUTO:
        chosen_delegates(OpResolverType.AUTO, (), arguments["providers"], precision)


class _StandIn(ModuleType):
    """A module with `names`, and with all else that `original` has.

    Args:
        anywhere: names that stand for what `original` has under them.
    """

    def __init__(
        self,
        key: str,
        names: Mapping[str, Any],
        original: ModuleType | None,
        anywhere: Mapping[str, Any],
    ) -> None:
        super().__init__(key, "Stands in for the module of this name: tflite_ort.install_as.")
        self.__spec__ = ModuleSpec(key, None, is_package=True)
        self.__path__ = list(getattr(original, "__path__", ()))
        if original is None:
            vars(self).update({"__version__": TFLITE_VERSION, **names})
            return
        ours = {each: value for each, value in anywhere.items() if hasattr(original, each)}
        vars(self).update(
            {**ours, **names},
            __getattr__=partial(getattr, original),
            __dir__=lambda: sorted({*dir(original), *names}),
        )


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


def _loaded(root: str, *, inside: bool) -> Iterator[tuple[str, ModuleType, dict[str, Any]]]:
    """The imported modules inside or outside a package, with what each has."""
    for key, module in list(sys.modules.items()):
        if isinstance(module, ModuleType) and (f"{key}.".startswith(f"{root}.") is inside):
            # A module that is loaded when it is first used is not asked for anything.
            yield key, module, dict(object.__getattribute__(module, "__dict__"))


def _hidden_names(
    hidden: Mapping[str, ModuleType], layout: Mapping[str, Mapping[str, Any]]
) -> dict[int, Any]:
    """What stands for the objects of hidden modules, by their `id`."""
    return {
        id(vars(module)[name]): value
        for key, module in hidden.items()
        for name, value in layout[key].items()
        if name in vars(module)
    }


def _holders(
    root: str, hidden: Mapping[str, ModuleType], layout: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[ModuleType, str, Any]]:
    """Other modules of the package that have an object of a hidden one, its name, and ours."""
    ours = _hidden_names(hidden, layout)
    for key, module, names in _loaded(root, inside=True):
        if key not in layout:
            for name, each in names.items():
                if id(each) in ours:
                    yield module, name, ours[id(each)]


def _importers(
    root: str, hidden: Mapping[str, ModuleType], layout: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The modules of others that have imported a module, or an object of it, that we replace."""
    theirs = {key: each for key, each in hidden.items() if not isinstance(each, _StandIn)}
    held = {id(each) for key, each in theirs.items() if layout[key]}
    held |= _hidden_names(theirs, layout).keys()
    if not held:
        return []
    ours = __name__.partition(".")[0]
    return sorted(
        key
        for key, _, names in _loaded(root, inside=False)
        if not f"{key}.".startswith(f"{ours}.") and not held.isdisjoint(map(id, names.values()))
    )


def _attach(package: ModuleType, attribute: str, value: Any) -> tuple[ModuleType, str, Any]:
    """Make `value` an attribute of a module; returns both names and what was there before."""
    previous = vars(package).get(attribute)
    setattr(package, attribute, value)
    return package, attribute, previous


def preset(kind: Any, arguments: Mapping[str, Any]) -> Any:
    """`kind` with these arguments of `Interpreter` where its caller gives none, if it is a class of
    interpreters or compiled models; else `kind` itself."""
    if not arguments or not isinstance(kind, type):
        return kind
    if issubclass(kind, CompiledModel):
        return _derived(kind, {"_preset": dict(arguments)})
    if not issubclass(kind, Interpreter):
        return kind
    parameters = signature(kind)

    def init(self: Any, *args: Any, **named: Any) -> None:
        given = dict(parameters.bind(*args, **named).arguments)
        given.update(given.pop("arguments", {}))  # those of InterpreterWithCustomOps
        missing = {name: value for name, value in arguments.items() if given.get(name) is None}
        if given.get("experimental_op_resolver_type") is OpResolverType.BUILTIN_REF:
            missing.pop("providers", None)
        kind.__init__(self, **{**given, **missing})

    def reduce(self: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        reopened, (_, known) = kind.__reduce__(self)
        return reopened, (kind, known)  # which have the arguments by now

    return _derived(kind, {"__init__": init, "__reduce__": reduce})


def _derived(kind: type, attributes: Mapping[str, Any]) -> type:
    about = {"__doc__": kind.__doc__, "__module__": kind.__module__}
    return type(kind.__name__, (kind,), {**about, **attributes})
