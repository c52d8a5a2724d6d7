"""The model and the number of threads, checked as ``tf.lite.Interpreter`` does."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.schema import UnreadableModel
from tflite_ort.schema.file.plain_files import (
    IDENTIFIER,
    bytes_content,
    content_and_status,
    identity,
)

with late:
    from tflite_ort.base import hub, suggestions
    from tflite_ort.bundles import bundle
    from tflite_ort.schema.file import read

if TYPE_CHECKING:
    from tflite_ort.schema import Budgets, Model

Array = npt.NDArray[Any]

# The contents of files of some size that interpreters of this process have open.
_CONTENTS: WeakValueDictionary[tuple[int, ...], Array] = WeakValueDictionary()
# How float activations meet integer weights, see `Target`.
HYBRIDS = ("auto", "float", "dynamic", "xnnpack")
_TICK = 3 * 10**9  # nanoseconds; FAT counts in steps of two seconds

# Bytes by which a bundle is known.
_MAGIC = 8


def check_threads(num_threads: int | None) -> None:
    """Refuse a number of threads that LiteRT refuses.

    Raises:
        ValueError: it is no integer above 0.
    """
    if num_threads is None:
        return
    if not isinstance(num_threads, int):
        raise ValueError("type of num_threads should be int")
    if num_threads < 1:
        raise ValueError("num_threads should >= 1")


def check_batch(batch: int | None) -> None:
    """Refuse a name, which stands for any number of samples: only an export has that.

    Raises:
        ValueError: it is a name.
    """
    if isinstance(batch, str):
        raise ValueError(f"batch must be a number of samples, got {batch!r}")


def check_resolver(resolver: Any) -> None:
    """Refuse a class, or another table, in the place of a resolver.

    Raises:
        TypeError: it is one.
    """
    if isinstance(resolver, type):
        name = resolver.__name__
        raise TypeError(f"resolver is the class {name}, expected an object: {name}()")
    if resolver is not None and not hasattr(resolver, "has"):
        raise TypeError(f"resolver must be an OpResolver, got {type(resolver).__name__}")


def check_hybrid(hybrid: str) -> None:
    """Refuse a choice that no `Target` is made for.

    Raises:
        ValueError: `hybrid` is none of them.
    """
    if hybrid not in HYBRIDS:
        raise ValueError(f"hybrid must be {', '.join(map(repr, HYBRIDS))}, got {hybrid!r}")


@record
class ModelFile:
    """The content of a model, which is not read yet.

    Args:
        content: its bytes.
        path: of the file, absolute; None where it is none.
        status: of the file, see `content_and_status`; None where it is none.
    """

    content: Array
    path: str | None = None
    status: os.stat_result | None = None

    @property
    def folder(self) -> str | None:
        """Where the file is."""
        return None if self.path is None else os.path.dirname(os.path.abspath(self.path))


def opened_file(
    path: str | os.PathLike[str] | None,
    content: bytes | bytearray | memoryview | None,
    budgets: Budgets | None = None,
    name: str | None = None,
) -> ModelFile:
    """The content of a file, or the bytes of one.

    Args:
        name: of the model in a bundle.

    Raises:
        ValueError: both are given, or none; TypeError where the content is text.
        ModelError: it is no model; UnreadableModel where the file cannot be opened.
    """
    if path and content:
        raise ValueError("Can't both provide `model_path` and `model_content`")
    if isinstance(content, str):
        raise TypeError("model_content must be bytes, got str")
    given: Any = path
    if isinstance(given, bytes) and given[4:8] == IDENTIFIER:
        raise UnreadableModel("model_path is the content of a model: give it as model_content")
    if path and name is None:
        file = _file_at(os.fsdecode(path))
        if file.content[4:8].data == IDENTIFIER or not _is_bundle(file.content[:_MAGIC].data):
            return file
        path = file.path
    source: bundle.Source | None = os.fsdecode(path) if path else content
    if source is None:
        raise ValueError("`model_path` or `model_content` must be specified.")
    source = model_source(source, name, budgets)
    if isinstance(source, (str, os.PathLike)):
        return _file_at(os.fsdecode(source))
    return ModelFile(bytes_content(source))


def opened_model(
    path: str | os.PathLike[str] | None,
    content: bytes | bytearray | memoryview | None,
    budgets: Budgets | None = None,
    external_roots: Sequence[str | os.PathLike[str]] = (),
    name: str | None = None,
) -> Model:
    """The model in a file, or in the bytes of one.

    Args:
        name: of the model in a bundle.
        external_roots: folders of external constants, besides the model's own.

    Raises:
        BudgetExceeded: it asks for more than `budgets`, by default `Budgets`.
        ValueError: both are given, or none; TypeError where the content is text.
        ModelError: it is no model; UnreadableModel where the file cannot be opened.
    """
    file = opened_file(path, content, budgets, name)
    return read.read_content(
        file.content, file.folder, external_roots=external_roots, budgets=budgets
    )


def file_of(source: bundle.Source) -> bundle.Source:
    """`source`, or the file of a model of Hugging Face if it is a reference to one.

    Raises:
        UnreadableModel: as `hub.local_file`.
    """
    if isinstance(source, (bytes, bytearray, memoryview)) or os.path.lexists(source):
        return source
    return hub.local_file(os.fsdecode(source)) or source


def holds_bundle(source: bundle.Source) -> bool:
    """Whether a plain file, or bytes, are a ``.task`` or a ``.litertlm``."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _is_bundle(memoryview(source).cast("B"))
    if not os.path.isfile(source):
        return False
    with suppress(OSError), open(source, "rb") as stream:
        return _is_bundle(memoryview(stream.read(_MAGIC)))
    return False


def is_model(path: str | os.PathLike[str]) -> bool:
    """Whether a plain file is a ``.tflite`` model or a bundle, by its first bytes."""
    if not os.path.isfile(path):
        return False
    with suppress(OSError), open(path, "rb") as stream:
        head = memoryview(stream.read(_MAGIC))
        return head[4:8] == IDENTIFIER or bundle.is_bundle(head)
    return False


def _is_bundle(content: memoryview) -> bool:
    return content[4:8] != IDENTIFIER and bundle.is_bundle(content)


def model_source(
    source: bundle.Source, name: str | None = None, budgets: Budgets | None = None
) -> bundle.Source:
    """What a model and the files behind it are read from: `source`, or bytes in it if it is a
    bundle.

    Args:
        name: of the model in a bundle; None for the only one.

    Raises:
        ModelError: as `open_bundle` and `Bundle.model_entry`.
    """
    source = file_of(source)
    if name is None and not holds_bundle(source):
        return source
    return bundle.open_bundle(source, budgets=budgets).model_content(name)


def _file_at(path: str) -> ModelFile:
    try:
        content, status = _shared_content(path) if _CONTENTS else content_and_status(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and (found := hub.local_file(path)) is not None:
            return _file_at(found)
        said = f"{error.strerror or error}{suggestions.unopened(error)}"
        raise UnreadableModel(f"Could not open '{path}': {said}") from error
    except ValueError as error:  # a name with a zero byte
        raise UnreadableModel(f"Could not open {path!r}: {error}") from error
    if status is not None and (settled := _settled(status)):
        _CONTENTS[settled] = content
    # The process may work in another folder when somebody asks where the file is.
    return ModelFile(content, path if path.startswith(os.sep) else os.path.abspath(path), status)


def _shared_content(path: str) -> tuple[Array, os.stat_result | None]:
    """As `content_and_status`, of a file that an interpreter has open perhaps."""
    status = os.stat(path)
    content = _CONTENTS.get(_settled(status))
    return content_and_status(path) if content is None else (content, status)


def _settled(status: os.stat_result) -> tuple[int, ...]:
    """What stands for the content of a file; nothing as long as the clock of the file system may
    give a further change the same time."""
    age = time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns)
    return identity(status) if age > _TICK else ()
