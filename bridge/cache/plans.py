"""The plans of one model in the cache: found, recorded and stored."""

from __future__ import annotations

import os
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.base.records import record
from tflite_ort.cache.checked_files import file_checksum
from tflite_ort.cache.faces import face_of, face_row
from tflite_ort.cache.folder import KEPT_BYTES, UNREADABLE, CacheFolder, Document
from tflite_ort.cache.keys import Settings, digest, entry_key, settings_of, short
from tflite_ort.cache.names import fresh_name
from tflite_ort.model.opened_model import Face
from tflite_ort.model.opening import ModelFile
from tflite_ort.plan.stored import WholeRow
from tflite_ort.plan.stored_rows import Row, StoredArrays
from tflite_ort.providers.shared_sessions import offer
from tflite_ort.providers.stored_graph import PACKED, SMALL, StoredGraph
from tflite_ort.schema.file.plain_files import identity

with late:
    import shutil

    from tflite_ort.plan import recording

if TYPE_CHECKING:
    import pathlib

    from tflite_ort.plan.recording import Recorder
    from tflite_ort.providers.delegates import Delegate
    from tflite_ort.schema import Budgets, Model

Array = npt.NDArray[Any]
Shape = tuple[int, ...]

_NO_BYTES = np.empty(0, np.uint8)
# By what the system says of a file, its digest; of the files that this process has used last.
_DIGESTS: dict[tuple[int, ...], str] = {}
_DIGESTS_KEPT = 64
# Smaller graphs are read, which takes 0.07 ms less than to map them. Those that are mapped share
# their weights with other processes.
_READ_BYTES = 1 << 18
# A file may be changed twice within the resolution of its times.
_SETTLED_SECONDS = 2.0


@record
class StoredEntry:
    """An entry that was found.

    Args:
        content: the bytes of the model, where some of the weights may be.
    """

    folder: CacheFolder
    document: Document
    content: Array

    @property
    def face(self) -> Face:
        """What it says of the model; made once of a document."""
        made = self.document.made
        if "face" not in made:
            made["face"] = face_of(self.document.hot["face"])
        face: Face = made["face"]
        return face

    @property
    def whole(self) -> WholeRow:
        """The plan; made once of a document."""
        made = self.document.made
        if "whole" not in made:
            made["whole"] = WholeRow.of(self.document.hot["plan"])
        whole: WholeRow = made["whole"]
        return whole

    def rows(self) -> Sequence[Row]:
        """The rows of the placements."""
        rows: Sequence[Row] = self.document.rest()["placements"]
        return rows

    def scopes(self) -> Mapping[str, Any]:
        """The plans of the subgraph and of the subgraphs that it calls, by their position."""
        scopes: Mapping[str, Any] = self.document.rest()["scopes"]
        return scopes

    def arrays(self) -> StoredArrays:
        """Where the constants of kernels are.

        Raises:
            ValueError: their file is not as it was written; OSError where it cannot be read.
        """
        number = self.document.hot["computed"]
        if number is None:
            return StoredArrays(self.content, _NO_BYTES)
        blob = self.document.hot["blobs"][number]
        if blob[1] <= KEPT_BYTES:
            made = self.document.made
            if number not in made:
                made[number] = np.frombuffer(self.folder.content(blob), np.uint8)
            return StoredArrays(self.content, made[number])
        return StoredArrays(self.content, np.memmap(self.folder.whole(blob), np.uint8, "r"))

    @property
    def called(self) -> Sequence[Mapping[str, Any]]:
        """The stored rows of the sessions in plans of called subgraphs."""
        called: Sequence[Mapping[str, Any]] = self.document.hot["called"]
        return called

    def graph(self, row: Row) -> StoredGraph:
        """What the row of a session's graph describes; its files are as they were written.

        Raises:
            ValueError: one of them is not; OSError where it cannot be read.
        """
        kind, files, inputs, outputs, weights, masked = row
        made = self.document.made
        if files[0] in made:
            kept: StoredGraph = made[files[0]]
            return kept
        blobs = self.document.hot["blobs"]
        size = blobs[files[0]][1]
        in_place = {each[0]: self._weights(each, blobs) for each in weights}
        written = _files(self.folder, blobs, files)
        if kind in (SMALL, PACKED) and size <= _READ_BYTES:
            content = self.folder.content(blobs[files[0]])
            graph = StoredGraph(kind, "", inputs, outputs, in_place, content, written, masked)
            if size <= KEPT_BYTES and not weights:
                made[files[0]] = graph
            return graph
        paths = [self.folder.whole(blobs[number]) for number in files]
        facts = {"files": written, "masked": masked}
        return StoredGraph(kind, paths[0], inputs, outputs, in_place, **facts)

    def _weights(self, row: Row, blobs: Sequence[Row]) -> Array:
        """Weights that a session reads where they are."""
        _, dtype, shape, blob, offset = row
        if blob is not None:
            path = self.folder.whole(blobs[blob])
            return np.memmap(path, np.dtype(dtype), "r", 0, tuple(shape))
        kind, count = np.dtype(dtype), int(np.prod(shape, dtype=np.int64))
        end = offset + count * kind.itemsize
        return self.content[offset:end].view(kind).reshape(shape)


def plan_cache(
    folder: CacheFolder,
    file: ModelFile,
    path: str | os.PathLike[str],
    delegates: Sequence[Delegate],
    resolver: str,
    budgets: Budgets,
    **choices: str | int | bool,
) -> PlanCache | None:
    """The entries of the model in `file`, which was opened as `path`; None where its plans depend
    on what cannot be told.

    Args: see `settings_of`.
    """
    settings = settings_of(delegates, resolver, budgets, **choices)
    if settings is None:
        return None
    return PlanCache(folder, file_digest(folder, file), settings, file.content, path)


class PlanCache:
    """The entries of one interpreter's model.

    Args:
        digest: of the model.
        settings: what the interpreter was given that its plans depend on.
        content: the bytes of the model.
        path: of the model; `tflite-ort cache list` shows its name.

    Attributes:
        problem: why the last plan could not be stored; empty where it could.
    """

    problem = ""

    def __init__(
        self,
        folder: CacheFolder,
        digest: str,
        settings: Settings,
        content: Array,
        path: str | os.PathLike[str],
    ) -> None:
        self._folder, self._digest, self._settings = folder, digest, settings
        self._content, self._path = content, path
        self._found: dict[tuple[Any, ...], StoredEntry] = {}

    def find(self, subgraph: int, shapes: Mapping[int, Shape]) -> StoredEntry | None:
        """The entry of a subgraph with inputs of these shapes, else as the file says."""
        of = _of(subgraph, shapes)
        if of in self._found:
            return self._found.pop(of)
        document = self._folder.read(entry_key(self._digest, self._settings, of))
        if document is None:
            return None
        return StoredEntry(self._folder, document, self._content)

    def face(self) -> Face | None:
        """What the entry of the first subgraph, with inputs as the file says, says of the model."""
        entry = self.find(0, {})
        if entry is None:
            return None
        try:
            face = entry.face
        except UNREADABLE:
            self.drop(0, {})
            return None
        self._found[0,] = entry
        return face

    def drop(self, subgraph: int, shapes: Mapping[int, Shape]) -> None:
        """Delete an entry that cannot be used."""
        self._folder.remove(self._key(subgraph, shapes))

    def recorder(self, subgraph: int, shapes: Mapping[int, Shape], model: Model) -> Recorder | None:
        """What collects a plan; None where none can be stored."""
        self.problem = ""
        if model.external_buffers:  # which may change
            self.problem = "constants are in other files"
            return None
        self.problem = f"{self._folder.path} cannot be written"
        with suppress(OSError):
            token = fresh_name(f"{self._key(subgraph, shapes)}.")
            return recording.Recorder(self._folder.stage(), token, self._content)
        return None

    def store(
        self,
        subgraph: int,
        shapes: Mapping[int, Shape],
        recorder: Recorder,
        model: Model,
        rows: Sequence[Row],
    ) -> None:
        """Store what was recorded; where that fails, nothing is stored.

        Args:
            rows: of the placements.
        """
        if recorder.spoiled:
            self.problem = recorder.spoiled
            return
        with suppress(OSError, ValueError):  # ValueError: scales that are no numbers
            computed = recorder.computed()
            blobs = [_blob(path) for path in recorder.blobs]
            scopes = dict(recorder.scopes)
            plan = scopes[""].pop("plan")
            name, count = os.path.basename(os.fsdecode(self._path)), int(self._content.size)
            hot = {
                "about": {"model": name, "bytes": count},
                "blobs": blobs,
                "face": face_row(model, subgraph),
                "plan": plan,
                "called": recorder.called(),
                "computed": computed,
            }
            cold = {"placements": rows, "scopes": scopes}
            if self._folder.write(self._key(subgraph, shapes), hot, cold, recorder.blobs):
                self.problem = ""
                for session, files in recorder.shared:
                    offer(_files(self._folder, blobs, files), session)

    @staticmethod
    def discard(recorder: Recorder | None) -> None:
        """Delete the files that were recorded and not stored."""
        if recorder is not None:
            shutil.rmtree(recorder.stage, ignore_errors=True)

    def _key(self, subgraph: int, shapes: Mapping[int, Shape]) -> str:
        return entry_key(self._digest, self._settings, _of(subgraph, shapes))


def _of(subgraph: int, shapes: Mapping[int, Shape]) -> tuple[Any, ...]:
    """What stands for a subgraph with inputs of these shapes."""
    return (subgraph, *sorted(shapes.items())) if shapes else (subgraph,)


def _files(folder: CacheFolder, blobs: Sequence[Row], numbers: Sequence[int]) -> Hashable:
    """What stands for files of an entry, and for no others."""
    return (folder.path, *(tuple(blobs[number]) for number in numbers))


def file_digest(folder: CacheFolder, file: ModelFile) -> str:
    """The digest of a model.

    That of a large file is looked up by what the system says of the file: to compute it would take
    longer than the rest. Every change but one through a map shows there.
    """
    status = file.status
    if status is None or os.name != "posix":
        return digest(file.content)
    of = identity(status)
    found = _DIGESTS.get(of)
    if found is None:
        found = _looked_up(folder, file, short("file", of))
        if time.time() - max(status.st_mtime, status.st_ctime) > _SETTLED_SECONDS:
            if len(_DIGESTS) >= _DIGESTS_KEPT:
                _DIGESTS.clear()
            _DIGESTS[of] = found
    return found


def _looked_up(folder: CacheFolder, file: ModelFile, key: str) -> str:
    """The digest that the folder has of a file, or a new one."""
    known = folder.read(key)
    if known is not None:
        return str(known.hot["digest"])
    found, status = digest(file.content), file.status
    if status and time.time() - max(status.st_mtime, status.st_ctime) > _SETTLED_SECONDS:
        about = {"digest of": int(file.content.size)}
        folder.write(key, {"about": about, "digest": found}, {}, ())
    return found


def _blob(path: pathlib.Path) -> list[Any]:
    size = path.stat().st_size
    return [path.name, size, file_checksum(path, size)]
