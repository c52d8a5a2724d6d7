"""What an entry depends on, as its key: another model, library or machine is another key."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.cache.folder import FORMAT
from tflite_ort.providers.delegates import Delegate, ExecutionProviderDelegate
from tflite_ort.providers.processor import processor
from tflite_ort.providers.session import ORT_BUILD, devices
from tflite_ort.providers.traits import traits_of

if TYPE_CHECKING:
    from tflite_ort.schema import Budgets

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

_PACKAGE = Path(__file__).parents[1]
_SUBPACKAGES = ("schema", "versioning", "opmap", "fallback_kernels")


def digest(content: Array) -> str:
    """The SHA-256 of all bytes of a model, about 2 GB a second."""
    return hashlib.sha256(content.data).hexdigest()


def key_of(model: str, settings: Mapping[str, Any]) -> str:
    """The key of an entry: of a model by its digest, with these settings, here and now."""
    return short(model, _surroundings(), settings)


def short(*parts: Any) -> str:
    """A key of these values, which JSON has."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:40]


def settings_of(
    delegates: Sequence[Delegate],
    resolver: str,
    budgets: Budgets,
    **choices: str | int | bool,
) -> dict[str, Any] | None:
    """What an interpreter was given that its plans depend on; None where that cannot be told.

    Args:
        resolver: the name of a resolver of this library that nothing was added to.
    """
    if any(type(each) not in (Delegate, ExecutionProviderDelegate) for each in delegates):
        return None  # with code of its own
    rows = [_delegate(each) for each in delegates]
    limits = [getattr(budgets, each.name) for each in fields(budgets)]
    return {"delegates": rows, "resolver": resolver, "budgets": limits, **choices}


def _delegate(delegate: Delegate) -> list[Any]:
    provider = delegate.provider
    options = sorted((str(key), str(value)) for key, value in provider.options.items())
    versions = sorted((int(op), limit) for op, limit in delegate.max_versions.items())
    library = getattr(delegate, "library", "")
    stamps = _stamps(library) if library else []
    made_by = []
    if not traits_of(provider.name).takes_all_nodes:
        made_by = [each.version for each in devices() if each.provider == provider.name]
    return [
        *(provider.name, options, provider.plugin, provider.device),
        *(versions, delegate.min_partition_size, library, stamps, made_by),
    ]


def _stamps(path: str) -> list[int]:
    try:
        status = os.stat(path)
    except OSError:
        return []
    return [status.st_size, status.st_mtime_ns]


@cache
def _surroundings() -> str:
    """This library, ONNX Runtime, numpy, and what the processor can do."""
    machine = [platform.machine(), *processor()]
    return short(FORMAT, library_stamp(), ORT_BUILD, np.__version__, machine)


@cache
def library_stamp() -> str:
    """When each file of this library was installed or changed last."""
    places = [_PACKAGE, *_beside(_PACKAGE)]
    rows = sorted(row for place in places for row in _sources(place))
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _sources(folder: Path) -> list[tuple[str, int, int]]:
    """Path, size and time of each file below a folder that decides what is made."""
    rows: list[tuple[str, int, int]] = []
    for each in os.scandir(folder):
        if each.is_dir(follow_symlinks=False):
            rows += [] if each.name == "__pycache__" else _sources(Path(each.path))
        elif each.name.endswith((".py", ".json")):
            status = each.stat()
            rows.append((each.path, status.st_size, status.st_mtime_ns))
    return rows


def _beside(package: Path) -> list[Path]:
    """The folders of subpackages that are not below that of the package, as in an editable
    installation."""
    specs = (find_spec(f"{__package__.partition('.')[0]}.{name}") for name in _SUBPACKAGES)
    places = [
        Path(place) for spec in specs if spec for place in spec.submodule_search_locations or ()
    ]
    return [place for place in places if not place.is_relative_to(package)]
