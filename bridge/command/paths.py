"""Which parameters of the verbs name files, so that no verb writes over what it reads."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any

import typer

from tflite_ort.base import guard

# What a verb reads, by the name of the parameter, and what it is called in errors.
READ = {
    **dict.fromkeys(("model", "models"), "the model itself"),
    **dict.fromkeys(("inputs", "files", "camera", "data", "labels", "tokenizer"), "an input too"),
    **dict.fromkeys(("bundle", "onnx", "value_map", "suite", "external_root"), "read too"),
}
# What a verb writes: files, or a folder of them.
WRITTEN = frozenset(
    {*("out", "output", "json_file", "html", "overlay", "extract", "fix", "repository", "draw")}
)
# Folders of the cache, which deletes and replaces nothing but its own files.
CACHE = frozenset({"folder", "cache"})
_NAMED = "[NAME=]"
_STDOUT = "-"


@contextmanager
def guarding(context: typer.Context) -> Iterator[None]:
    """While the block runs, nothing that the verb reads is written over, nothing is written
    through a link, and no two results go to one file.

    Raises:
        BadParameter: the command line asks for that.
        OSError: a file to be written is a link.
    """
    with guard.guarding() as found:
        for parameter in context.command.params:
            if parameter.name in READ:
                for path in _read(parameter, context.params[parameter.name]):
                    found.reads(path, READ[parameter.name])
        _check_written(found, context)
        yield


def _check_written(found: guard.Guard, context: typer.Context) -> None:
    options: dict[Hashable, str] = {}
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name not in WRITTEN or source is None or source.name != "COMMANDLINE":
            continue
        option = _option(parameter)
        for path in _written(parameter, context.params[parameter.name]):
            if said := found.read_as(path):
                raise typer.BadParameter(f"it is {said}, which would be lost", param_hint=option)
            guard.check_no_link(path)
            if os.path.isdir(path):  # which takes several files
                continue
            if other := options.get(guard.place_of(path)):
                raise typer.BadParameter(f"{path} is written by {other} too", param_hint=option)
            options[guard.place_of(path)] = option


def _option(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(parameter.opts[0])


def _read(parameter: Any, value: Any) -> Iterator[str]:
    """The files that a parameter may stand for."""
    for text in _texts(value):
        yield text
        if _is_named(parameter):
            yield text.partition("=")[2]


def _written(parameter: Any, value: Any) -> Iterator[str]:
    """The files that a parameter stands for, as its verb reads it."""
    for text in _texts(value):
        if text != _STDOUT:
            yield text.rpartition("=")[2] if _is_named(parameter) else text


def _is_named(parameter: Any) -> bool:
    return str(parameter.metavar).startswith(_NAMED)


def _texts(value: Any) -> list[str]:
    listed = value if isinstance(value, (list, tuple)) else [value]
    return [os.fspath(each) for each in listed if each is not None]
