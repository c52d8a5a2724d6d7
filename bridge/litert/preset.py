"""Interpreters that take some arguments as given where their caller leaves them out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any

from tflite_ort.compiled_model.compiled_model import CompiledModel
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.providers.delegates import OpResolverType


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
