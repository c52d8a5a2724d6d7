"""What an entry depends on, as its key: another model, library or machine is another key."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late, load
from tflite_ort.cache.folder import FORMAT
from tflite_ort.providers.delegates import Delegate, ExecutionProviderDelegate, on_cpu
from tflite_ort.providers.processor import processor
from tflite_ort.providers.session import ORT_BUILD, devices
from tflite_ort.providers.traits import traits_of
from tflite_ort.schema.file.budgets import DEFAULT

with late:
    import hashlib
    from importlib import util

if TYPE_CHECKING:
    from tflite_ort.schema import Budgets

Array = npt.NDArray[Any]
Shape = tuple[int, ...]
Settings = tuple[Any, ...]  # as `short` takes them

_PACKAGE = os.path.dirname(os.path.dirname(__file__))
_DISTRIBUTION, _INFO = "tflite_ort-", ".dist-info"
_SUBPACKAGES = ("schema", "versioning", "opmap", "fallback_kernels")
_LIMITS = attrgetter(*DEFAULT.names())
# Delegates of other classes have code of their own.
_WITHOUT_CODE = frozenset({Delegate, ExecutionProviderDelegate})


# BLAKE2b of the standard library. To import `hashlib` takes 2.6 ms, since it loads OpenSSL too.
_hashes = load("_blake2") or hashlib


def digest(content: Array | bytes) -> str:
    """The BLAKE2b hash of these bytes, about 1.5 GB a second."""
    return str(_hashes.blake2b(content, digest_size=32).hexdigest())


def key_of(model: str, settings: Mapping[str, Any]) -> str:
    """The key of an entry: of a model by its digest, with these settings, here and now."""
    return short(model, _surroundings(), settings)


@lru_cache(maxsize=64)
def entry_key(model: str, settings: Settings, of: tuple[Any, ...]) -> str:
    """The key of the entry of a subgraph with inputs of some shapes.

    Args:
        model: its digest.
        settings: as `settings_of`.
        of: the subgraph and the shapes.
    """
    return short(model, _surroundings(), settings, of)


def short(*parts: Any) -> str:
    """A key of these values: texts, numbers and None, and rows and mappings of them."""
    return digest(repr(parts).encode())[:40]


def settings_of(
    delegates: Sequence[Delegate],
    resolver: str,
    budgets: Budgets,
    **choices: str | int | bool,
) -> Settings | None:
    """What an interpreter was given that its plans depend on; None where that cannot be told.

    Args:
        resolver: the name of a resolver of this library that nothing was added to.
    """
    if not _WITHOUT_CODE.issuperset(map(type, delegates)):
        return None
    rows = tuple([_row_on_cpu() if each is on_cpu() else _row(each) for each in delegates])
    return rows, resolver, _LIMITS(budgets), tuple(choices.items())


@cache
def _row_on_cpu() -> tuple[Any, ...]:
    return _row(on_cpu())


def _row(delegate: Delegate) -> tuple[Any, ...]:
    provider = delegate.provider
    options = sorted((str(key), str(value)) for key, value in provider.options.items())
    versions = sorted((int(op), limit) for op, limit in delegate.max_versions.items())
    library = getattr(delegate, "library", "")
    stamps = _stamps(library) if library else []
    made_by = []
    if not traits_of(provider.name).takes_all_nodes:
        made_by = [each.version for each in devices() if each.provider == provider.name]
    return (
        *(provider.name, tuple(options), provider.plugin, provider.device, provider.precision),
        *(tuple(versions), delegate.min_partition_size, library, tuple(stamps), tuple(made_by)),
    )


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
    """When this library was installed; of one that runs from its sources, when each file of it was
    changed last; of one in an archive or a frozen program, when that file was."""
    if not os.path.isfile(__file__):
        return short(*_library_file())
    record = _installation()
    if record is not None:
        return short(record, _stamps(record))
    places = [_PACKAGE, *_beside(_PACKAGE)]
    return short(*sorted(row for place in places for row in _sources(place)))


def _installation() -> str | None:
    """The installer's list of the files of the package, which stands beside it; None for one that
    runs from its sources. To look at all 480 files would take 4 ms."""
    folder = os.path.dirname(_PACKAGE)
    places = [name for name in os.listdir(folder) if name.startswith(_DISTRIBUTION)]
    records = [os.path.join(folder, name, "RECORD") for name in places if name.endswith(_INFO)]
    return records[0] if len(records) == 1 and os.path.isfile(records[0]) else None


def _library_file() -> list[Any]:
    """The zip archive or the program that the library is in. Where neither is a file that can be
    looked at, nothing is the same the next time."""
    path = _PACKAGE
    while not os.path.isfile(path) and path != os.path.dirname(path):
        path = os.path.dirname(path)
    programs = {os.path.realpath(each) for each in (sys.executable, sys.argv[0])}
    files = [path] if os.path.isfile(path) else sorted(filter(os.path.isfile, programs))
    return [(each, *_stamps(each)) for each in files] or [os.urandom(16)]


def _sources(folder: str) -> list[tuple[str, int, int]]:
    """Path, size and time of each file below a folder that decides what is made."""
    rows: list[tuple[str, int, int]] = []
    for each in os.scandir(folder):
        if each.is_dir(follow_symlinks=False):
            rows += [] if each.name == "__pycache__" else _sources(each.path)
        elif each.name.endswith((".py", ".json", ".tsv")):
            status = each.stat()
            rows.append((each.path, status.st_size, status.st_mtime_ns))
    return rows


def _beside(package: str) -> list[str]:
    """The folders of subpackages that are not below that of the package, as in an editable
    installation."""
    specs = (util.find_spec(f"{__package__.partition('.')[0]}.{name}") for name in _SUBPACKAGES)
    places = [place for spec in specs if spec for place in spec.submodule_search_locations or ()]
    return [place for place in places if os.path.dirname(place) != package]
