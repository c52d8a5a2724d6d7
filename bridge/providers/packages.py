"""The packages that plug-in providers come in, and what these say of themselves."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from tflite_ort.base.optional import late, optional_module
from tflite_ort.providers.traits import TRAITS, traits_of
from tflite_ort.schema import DelegateError

with late:
    import pkgutil

_PACKAGES = "onnxruntime_ep_"


def plugin_packages() -> list[str]:
    """The installed packages ``onnxruntime-ep-*``, and those that a row of `traits` names, as they
    are imported."""
    named = {row.package for row in TRAITS.values()}
    names = (each.name for each in pkgutil.iter_modules())
    return sorted(name for name in names if name.startswith(_PACKAGES) or name in named)


def package_library(package: str) -> str:
    """The path of the library in a package ``onnxruntime_ep_*``."""
    return str(_said_by(package, "get_library_path"))


def package_providers(package: str) -> list[str]:
    """The names of the providers in a package ``onnxruntime_ep_*``."""
    return list(_said_by(package, "get_ep_names"))


def told_options(provider: str, given: Container[str]) -> dict[str, str]:
    """What the package of a plug-in tells of its options, such as where its files are; nothing
    where it is not installed, or one of `given` says so."""
    row = traits_of(provider)
    if any(name in given for name in row.told_unless) or row.package not in plugin_packages():
        return {}
    return {name: str(_said_by(row.package, function)) for name, function in row.told.items()}


def _said_by(package: str, function: str) -> Any:
    """What a function of a package returns.

    Raises:
        DelegateError: the package cannot be imported, or does not say.
    """
    try:
        return getattr(optional_module(package), function)()
    except (ImportError, AttributeError, OSError, RuntimeError) as error:
        raise DelegateError(f"{package} cannot be used: {error}") from error
