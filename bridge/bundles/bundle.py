"""`open_bundle`: what is in a ``.task``, a ``.tflite`` with files behind it, or a ``.litertlm``."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath
from typing import Any

import numpy as np

from tflite_ort.base.optional import late
from tflite_ort.bundles.entries import BUNDLE, MODEL, Entry
from tflite_ort.bundles.litertlm import litertlm_entries, starts_litertlm
from tflite_ort.bundles.zip_archive import archive_entries, ends_archive, starts_archive
from tflite_ort.schema import (
    Budgets,
    MalformedBundle,
    MissingEntry,
    Model,
    UnreadableModel,
    read_model,
)
from tflite_ort.schema.file.budgets import Meter
from tflite_ort.schema.file.other_formats import archive_format
from tflite_ort.schema.file.plain_files import IDENTIFIER, file_content

with late:
    from tflite_ort.base import hub

Source = str | os.PathLike[str] | bytes | bytearray | memoryview

_DEEPEST = 4
_PEEK, _PEEK_STORED = 64, 4096
# Constants of 32-bit elements in a model can be viewed from such an address on.
_ALIGNMENT = 4
_LISTED = 20  # names in a message


@dataclass(frozen=True, slots=True)
class Bundle:
    """Models and what belongs to them, in one file. Nothing is extracted.

    Args:
        kind: ``task``, ``tflite`` or ``litertlm``.
        entries: everything in it, with what is in bundles that it holds.
        properties: what it says of itself.
    """

    kind: str
    entries: tuple[Entry, ...]
    properties: Mapping[str, Any]
    _places: Mapping[str, memoryview] = field(repr=False, compare=False)
    _budgets: Budgets = field(repr=False, compare=False)

    @property
    def models(self) -> tuple[Entry, ...]:
        """The models in it."""
        return tuple(entry for entry in self.entries if entry.kind == MODEL)

    def entry(self, name: str) -> Entry:
        """The entry `name`.

        Raises:
            MissingEntry: there is none.
        """
        return _chosen(name, [each for each in self.entries if each.name == name], self.entries)

    def model_entry(self, name: str | None = None) -> Entry:
        """A model by its name, whole or without folders and suffix; None for the only model.

        Raises:
            MissingEntry: there is none, or several.
        """
        if not self.models:
            names = [each.name for each in self.entries]
            listed = ", ".join(map(repr, names[:_LISTED])) or "nothing"
            raise MissingEntry(f"the bundle has no model but {listed}{archive_format(names)}")
        if name is None:
            return _chosen("", self.models, self.models)
        exact = [each for each in self.models if each.name == name]
        return _chosen(name, exact or [e for e in self.models if e.stem == name], self.models)

    def content(self, name: str) -> memoryview:
        """The bytes of an entry: a view of the file, or unpacked ones.

        Raises:
            MalformedBundle: they are damaged.
            MissingEntry: there is no such entry.
        """
        entry = self.entry(name)
        return _unpacked(entry, self._places[name])

    def text(self, name: str) -> str:
        """An entry as text; what is no UTF-8 is replaced."""
        return str(self.content(name), "utf-8", "replace")

    def model_content(self, name: str | None = None) -> memoryview:
        """The bytes of a model, as `model_entry` finds it."""
        content = self.content(self.model_entry(name).name)
        address = np.frombuffer(content, np.uint8).ctypes.data
        return content if address % _ALIGNMENT == 0 else memoryview(bytes(content))

    def model(self, name: str | None = None) -> Model:
        """A model, as `model_entry` finds it.

        Raises:
            MissingEntry: there is none, or several.
            ModelError: it is damaged.
        """
        return read_model(self.model_content(name), budgets=self._budgets)


def is_bundle(content: memoryview) -> bool:
    """Whether the bytes begin as a ``.task`` or a ``.litertlm`` does."""
    return starts_archive(content) or starts_litertlm(content)


def open_bundle(source: Source, *, budgets: Budgets | None = None) -> Bundle:
    """Read what is in a bundle: a ``.task`` (a zip archive, also one in another), a ``.tflite``
    with or without an archive behind it, or a ``.litertlm``.

    Args:
        source: a path or the bytes.
        budgets: limits; ``bundle_bytes`` holds for all that is compressed, together.

    Raises:
        MalformedBundle: it is none of these, or damaged, or has entries that overlap, lie about
            their size or have names that lead elsewhere.
        BudgetExceeded: unpacked it is larger than its budget.
        UnreadableModel: the file cannot be opened.

    Examples:
        >>> bundle = open_bundle("hand_landmarker.task")                  # doctest: +SKIP
        >>> [entry.name for entry in bundle.models]                       # doctest: +SKIP
        ['hand_detector.tflite', 'hand_landmarks_detector.tflite']
    """
    content, name = _bytes(source)
    meter = Meter(budgets)
    if starts_litertlm(content):
        sections, properties = litertlm_entries(content)
        places = {each.name: content[each.offset :][: each.stored] for each in sections}
        return Bundle("litertlm", tuple(sections), properties, places, meter.budgets)
    if _is_model(content):
        kind, found = "tflite", list(_model(name, content, meter))
    elif starts_archive(content):
        kind, found = "task", list(_archived(content, "", meter, 1))
    else:
        start = bytes(content[:8])
        raise MalformedBundle(f"{start!r} begins neither a .task, a .tflite nor a .litertlm")
    entries = tuple(entry for entry, _ in found)
    return Bundle(kind, entries, {}, {e.name: place for e, place in found}, meter.budgets)


Found = Iterator[tuple[Entry, memoryview]]


def _bytes(source: Source) -> tuple[memoryview, str]:
    """The bytes of a bundle, and what to call a model that is all of it."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return memoryview(source).cast("B").toreadonly(), "model.tflite"
    path = os.fsdecode(source)
    try:
        content = file_content(path)
    except OSError as error:
        if isinstance(error, FileNotFoundError) and (found := hub.local_file(path)) is not None:
            return _bytes(found)
        raise UnreadableModel(f"Could not open '{path}': {error.strerror or error}") from error
    return content.data, PurePath(path).name


def _is_model(content: memoryview) -> bool:
    return bytes(content[4:8]) == IDENTIFIER


def _model(name: str, content: memoryview, meter: Meter) -> Found:
    """A model that is the whole file, and the files behind it."""
    yield Entry(name, MODEL, 0, len(content), len(content)), content
    if ends_archive(content):
        yield from _archived(content, "", meter, _DEEPEST, taken=name)


def _archived(
    content: memoryview, folder: str, meter: Meter, depth: int, taken: str | None = None
) -> Found:
    """What is in an archive, and in the bundles in it.

    Args:
        folder: what stands before each name.
        depth: how many archives are around its entries.
        taken: a name that no entry may have.
    """
    for entry in archive_entries(content):
        if entry.name == taken:
            raise MalformedBundle(f"a file behind the model is called {taken!r} as well")
        if entry.packed:
            meter.spend("bundle_bytes", entry.size, "the bundle")
        place = content[entry.offset :][: entry.stored]
        named = replace(entry, name=f"{folder}{entry.name}")
        start = _start(named, place)
        if starts_archive(start) and depth < _DEEPEST:
            inner = _unpacked(named, place)
            if ends_archive(inner):
                yield replace(named, kind=BUNDLE), place
                yield from _archived(inner, f"{named.name}/", meter, depth + 1)
                continue
        yield replace(named, kind=MODEL) if _is_model(start) else named, place


def _start(entry: Entry, place: memoryview) -> memoryview:
    """The first bytes of an entry."""
    if not entry.packed:
        return place[:_PEEK]
    return memoryview(_inflated(entry, place[:_PEEK_STORED], _PEEK))


def _unpacked(entry: Entry, place: memoryview) -> memoryview:
    """The bytes of an entry, which are what the archive says of them."""
    content = memoryview(_inflated(entry, place, entry.size + 1)) if entry.packed else place
    if len(content) != entry.size:
        count = "more" if len(content) > entry.size else len(content)
        raise MalformedBundle(f"{entry.name!r} has {count} bytes, not {entry.size} as it says")
    if entry.checksum is not None and zlib.crc32(content) != entry.checksum:
        raise MalformedBundle(f"{entry.name!r} is damaged: its checksum is another one")
    return content


def _inflated(entry: Entry, place: memoryview, most: int) -> bytes:
    """Up to `most` bytes, at least 1."""
    try:
        return zlib.decompressobj(-zlib.MAX_WBITS).decompress(place, max(most, 1))
    except zlib.error as error:
        raise MalformedBundle(f"{entry.name!r} cannot be unpacked: {error}") from error


def _chosen(name: str, found: Sequence[Entry], among: Sequence[Entry]) -> Entry:
    """The only one found."""
    if len(found) == 1:
        return found[0]
    listed = ", ".join(repr(each.name) for each in among[:_LISTED]) or "nothing"
    if not name:
        wanted = f"{len(found)} models; name one with model="
    elif found:
        wanted = f"{len(found)} entries called {name!r}"
    else:
        wanted = f"no entry called {name!r}"
    raise MissingEntry(f"the bundle has {wanted}; there are {listed}")
