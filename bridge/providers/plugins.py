"""Where an execution provider comes from: onnxruntime itself, a package, or a library's path."""

from __future__ import annotations

import os
import re
from functools import lru_cache

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.providers.names import (
    TO_BE_HAD,
    brought_by,
    known_short_names,
    named_provider,
    short_name,
)
from tflite_ort.providers.packages import package_library, package_providers, plugin_packages
from tflite_ort.providers.session import available_providers, devices, register_library
from tflite_ort.schema import DelegateError, MissingDelegate

with late:
    from tflite_ort.base import suggestions

_LIBRARY = (".so", ".dll", ".dylib")
# The name of any shared library, also with a version behind it.
_SHARED = re.compile(r"\.(so|dll|dylib)(\.\d+)*$", re.IGNORECASE)
_NO_DELEGATE = (
    ". Delegates of TFLite cannot be used here. Leave this one out, and the CPU runs the model; "
    "providers=[...] names an execution provider of ONNX Runtime for another device. A file that "
    "was compiled for a device does not run: use the file from before that"
)


@record
class Source:
    """An execution provider and where it comes from.

    Args:
        library: the plug-in's path; empty for one that is compiled into onnxruntime.
    """

    provider: str
    library: str = ""


def find_provider(name: str, library: str = "") -> Source:
    """The provider that is meant by its name, in full or in short (``"cuda"``), by a plug-in's
    package or by the path of its library.

    Args:
        library: the path of the plug-in that `name` has to come from.

    Raises:
        MissingDelegate: there is none; the message says which there are.
    """
    if not library and (found := _compiled_in(name)):
        return Source(found)
    try:
        return _of_library(library, name) if library else _plugin(name)
    except DelegateError as error:
        hint = "" if library or not _SHARED.search(name) else _NO_DELEGATE
        raise MissingDelegate(f"Failed to load delegate from {name}: {error}{hint}") from error


@lru_cache(maxsize=64)
def _compiled_in(name: str) -> str | None:
    """The provider of onnxruntime itself that a name means."""
    return named_provider(name, available_providers())


def load_library(library: str) -> list[str]:
    """The providers of a plug-in's library that have a device on this machine.

    Raises:
        DelegateError: ONNX Runtime could not load it.
    """
    if library not in {each.library for each in devices()}:
        register_library(library)
    return list(dict.fromkeys(each.provider for each in devices() if each.library == library))


def _plugin(name: str) -> Source:
    for each in devices():
        if each.library and named_provider(name, [each.provider]):
            return Source(each.provider, each.library)
    package = re.sub(r"[-.]", "_", name)
    if package in plugin_packages():
        return _of_library(package_library(package))
    if name.endswith(_LIBRARY) or os.path.isfile(name):
        return _of_library(os.path.realpath(name))
    known = available_providers()
    for package in plugin_packages():
        if found := named_provider(name, package_providers(package)):
            return _of_library(package_library(package), found)
        known += package_providers(package)
    packages = ", ".join(plugin_packages()) or "none"
    names = {*map(short_name, known), *known_short_names()}
    hint = brought_by(name)
    # A misspelt whole name, such as CUDAExecutonProvider, is near to a whole name alone.
    hint = hint or suggestions.suggestion(short_name(name), sorted({*names, *known, *TO_BE_HAD}))
    raise DelegateError(
        f"no provider {name!r} in this onnxruntime, which has {available_providers()}; "
        f"installed packages of plug-in providers: {packages}{hint}"
    )


def _of_library(library: str, provider: str = "") -> Source:
    names = load_library(library)
    if provider in names or (names and not provider):
        return Source(provider or names[0], library)
    hardware = ", ".join(dict.fromkeys(f"{each.kind} {each.vendor}" for each in devices()))
    wanted = provider or "its providers"
    raise DelegateError(f"{library} has no device for {wanted} here, where there is {hardware}")
