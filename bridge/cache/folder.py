"""The folder of the cache: entries that appear whole, are checked when they are read, and leave,
the least recently used first, when there are too many.

An entry is a document, ``KEY.json``, and the files that it names. The files come first and have
names that nothing else has; then the document appears in one step. So a reader finds all of an
entry or nothing, whatever other processes do and whenever one of them is killed. What is damaged
later differs from the checksums in the document.

The folder may have files of others. Only those are listed and deleted that a document names, or
whose name proves that the cache has made them: a document by its first bytes, others by a checksum
in the name.
"""

from __future__ import annotations

import os
import stat
import time
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

from tflite_ort.base.optional import late, load
from tflite_ort.base.records import field, record
from tflite_ort.cache.checked_files import ReadLast, content_of, file_checksum
from tflite_ort.cache.names import STAGING, fresh_name, is_key, is_proved
from tflite_ort.schema.file.plain_files import identity

with late:
    import json
    import pathlib
    import shutil

    from tflite_ort.base import files

T = TypeVar("T")

# The format of the documents and of what they name.
FORMAT = 6

_MAGIC = b"tflite-ort cache"
_DOCUMENT = ".json"
# A file that no document names may belong to an entry that is being written.
_ABANDONED_SECONDS = 3600
# The use of an entry is noted once in this time.
_NOTED_SECONDS = 600
# Larger documents and graphs are not kept in memory.
KEPT_BYTES = 1 << 16
_READ_LAST = ReadLast(32, KEPT_BYTES)

# What a folder or file that somebody else changes can raise while it is read.
UNREADABLE = (OSError, ValueError, KeyError, TypeError, IndexError)


@record
class Document:
    """What an entry says.

    Args:
        hot: what every hit needs.
        cold: JSON of what few ask for.
        used: when the entry was made or used last, in seconds since 1970.
        made: what was made of it.
    """

    hot: dict[str, Any]
    cold: bytes
    used: float
    made: dict[str | int, Any] = field(default_factory=dict)

    def rest(self) -> dict[str, Any]:
        """What few ask for."""
        rest: dict[str, Any] = _read_json(self.cold)
        return rest


@record
class Listed:
    """An entry as `tflite-ort cache list` shows it.

    Args:
        size: bytes of all its files.
        used: when it was made or used last, in seconds since 1970.
        about: what its document says of itself; empty where it cannot be read.
    """

    key: str
    size: int
    used: float
    about: Mapping[str, Any]


class CacheFolder:
    """A folder of entries. Reading gives None for what is not there or not whole; writing gives
    False where it fails. Neither raises.

    Args:
        path: the folder; made when the first entry is written.
        limit: tells the bytes of all entries together; asked when one is written.
    """

    def __init__(self, path: str | os.PathLike[str], limit: Callable[[], int]) -> None:
        self.path, self.limit = os.fspath(path), limit
        self._seen: tuple[int, ...] = ()

    def distrusted(self) -> str:
        """Why nothing is read from the folder; empty where it may be. Whoever can write to it can
        change what a model computes."""
        try:
            self.path.encode()
        except UnicodeEncodeError:
            return f"{self.path!a} is no UTF-8, as which ONNX Runtime opens files"
        try:
            status = os.stat(self.path)
        except FileNotFoundError:
            return ""
        except OSError as error:
            return str(error)
        if not stat.S_ISDIR(status.st_mode):
            return f"{self.path} is no folder"
        self._seen = identity(status)
        if os.name != "posix":
            return ""
        if status.st_uid and status.st_uid != os.geteuid():
            return f"{self.path} belongs to another user"
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            return f"{self.path} can be written to by other users (chmod go-w)"
        return ""

    def _at(self, name: str) -> str:
        return f"{self.path}{os.sep}{name}"

    def _document(self, key: str) -> str:
        return self._at(f"{key}{_DOCUMENT}")

    # Reading ---------------------------------------------------------------------------------

    def read(self, key: str) -> Document | None:
        """The document of an entry; its use is noted."""
        path = self._document(key)
        try:
            document = _READ_LAST.value(path, partial(_parsed, key), self._seen)
        except FileNotFoundError:
            return None
        except UNREADABLE:
            self.remove(key)
            return None
        if time.time() - document.used > _NOTED_SECONDS:
            with suppress(OSError):
                os.utime(path)
            _READ_LAST.forget(path)
        return document

    def whole(self, blob: Sequence[Any]) -> str:
        """The path of a file of an entry, which is as it was written.

        Args:
            blob: its name, size and checksum.

        Raises:
            ValueError: it is not; OSError where it cannot be read.
        """
        name, size, checksum = blob
        path = self._at(os.path.basename(name))
        if _READ_LAST.known(path, lambda: file_checksum(path, size)) != checksum:
            raise ValueError(f"{path} is damaged")
        return path

    def content(self, blob: Sequence[Any]) -> bytes:
        """The bytes of a file of an entry, which are as they were written.

        Args, Raises: see `whole`.
        """
        name, size, checksum = blob
        path = self._at(os.path.basename(name))

        content, _ = content_of(path)
        if len(content) != size or zlib.crc32(content) != checksum:
            raise ValueError(f"{path} is damaged")
        return content

    # Writing ---------------------------------------------------------------------------------

    def stage(self) -> pathlib.Path:
        """A new folder inside this one, for files that are to be part of an entry.

        Raises:
            OSError: it cannot be made.
        """
        os.makedirs(self.path, mode=0o700, exist_ok=True)
        stage = pathlib.Path(self._at(fresh_name(STAGING)))
        stage.mkdir(mode=0o700)
        return stage

    def write(
        self,
        key: str,
        hot: Mapping[str, Any],
        cold: Mapping[str, Any],
        blobs: Collection[pathlib.Path],
    ) -> bool:
        """Put an entry in the place of what there is under its key.

        Args:
            blobs: the files that the document names, in a folder of `stage`; they are moved.
        """
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            if sum(path.stat().st_size for path in blobs) > self.limit():
                return False
            for path in blobs:
                os.replace(path, self._at(path.name))
            files.write_bytes(self._document(key), _text(key, hot, cold), again=True)
        except OSError:
            for path in blobs:
                _unlink(self._at(path.name))
            return False
        self.shrink(keep=key)
        return True

    def remove(self, key: str) -> None:
        """Delete an entry, its document first."""
        ours = [name for _, _, files in self._ours(key) for name in files]
        _unlink(self._document(key))
        for name in ours:
            _unlink(self._at(name))

    def clear(self) -> int:
        """Delete all entries and what was left of interrupted writes; how many bytes that frees."""
        freed = 0
        for _, _, files in self._ours():
            for name, status in files.items():
                freed += status.st_size
                _unlink(self._at(name))
        for stage in self._stages():
            freed += sum(map(_size, _plain_files(stage)))
            shutil.rmtree(stage, ignore_errors=True)
        return freed

    def shrink(self, keep: str = "") -> None:
        """Delete abandoned files, and of the entries the least recently used until the rest is
        within the limit.

        Args:
            keep: an entry that stays.
        """
        old = time.time() - _ABANDONED_SECONDS
        for stage in self._stages():
            with suppress(OSError):
                if os.stat(stage).st_mtime < old:
                    shutil.rmtree(stage, ignore_errors=True)
        entries = sorted(self.entries(old), key=lambda entry: entry.used)
        total, limit = sum(entry.size for entry in entries), self.limit()
        for entry in entries:
            if total <= limit:
                break
            if entry.key != keep:
                self.remove(entry.key)
                total -= entry.size

    # Listing ---------------------------------------------------------------------------------

    def entries(self, abandoned_before: float = 0.0) -> list[Listed]:
        """What is in the folder.

        Args:
            abandoned_before: files older than this that no document names are deleted.
        """
        found = []
        for key, document, files in self._ours():
            named = {f"{key}{_DOCUMENT}", *_names(key, document)}
            for name, status in list(files.items()):
                if name not in named and status.st_mtime < abandoned_before:
                    _unlink(self._at(name))
                    del files[name]
            if files:
                size = sum(status.st_size for status in files.values())
                about = {} if document is None else document.hot.get("about", {})
                latest = files.get(f"{key}{_DOCUMENT}") or max(
                    files.values(), key=lambda status: status.st_mtime
                )
                found.append(Listed(key, size, latest.st_mtime, about))
        return found

    def _ours(
        self, only: str = ""
    ) -> Iterator[tuple[str, Document | None, dict[str, os.stat_result]]]:
        """By key, what the document says, if it is whole, and the files that the cache has made.

        Args:
            only: the key to look at; all without.
        """
        groups: dict[str, dict[str, os.stat_result]] = {}
        for name, status in self._files():
            if name.startswith(only):
                groups.setdefault(name.partition(".")[0], {})[name] = status
        for key, files in groups.items():
            written = f"{key}{_DOCUMENT}"
            is_ours, document = self._peek(key) if written in files else (False, None)
            named = {*_names(key, document), *([written] if is_ours else [])}
            yield key, document, {n: s for n, s in files.items() if n in named or is_proved(n)}

    def _peek(self, key: str) -> tuple[bool, Document | None]:
        """Whether the file that is called as a document is one, of any format; and what it says."""
        is_ours = False
        try:
            text, status = content_of(self._document(key))
            is_ours = text.startswith(_MAGIC)
            return is_ours, _parsed(key, text, status, format=None)
        except UNREADABLE:
            return is_ours, None

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        """The plain files of the folder that can be parts of entries."""
        with suppress(OSError), os.scandir(self.path) as scan:
            for each in scan:
                with suppress(OSError):
                    if each.is_file(follow_symlinks=False) and is_key(each.name.partition(".")[0]):
                        yield each.name, each.stat(follow_symlinks=False)

    def _stages(self) -> list[str]:
        with suppress(OSError), os.scandir(self.path) as scan:
            return [
                each.path
                for each in scan
                if each.name.startswith(STAGING)
                and is_proved(each.name)
                and each.is_dir(follow_symlinks=False)
            ]
        return []


def _plain_files(folder: str) -> Iterator[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as scan:
        yield from (each for each in scan if each.is_file(follow_symlinks=False))


def _size(file: os.DirEntry[str]) -> int:
    """Its bytes; 0 of one that another process has moved."""
    with suppress(OSError):
        return file.stat(follow_symlinks=False).st_size
    return 0


def _names(key: str, document: Document | None) -> Iterator[str]:
    """The files of an entry that its document names."""
    blobs = [] if document is None else document.hot.get("blobs", ())
    for blob in blobs if isinstance(blobs, (list, tuple)) else ():
        if isinstance(blob, list) and blob and str(blob[0]).startswith(f"{key}."):
            yield str(blob[0])


def _text(key: str, hot: Mapping[str, Any], cold: Mapping[str, Any]) -> bytes:
    """A document as it is written: two lines of JSON after a line with their checksum and the
    key's. So the document of another entry is damaged."""
    lines = (json.dumps(part, separators=(",", ":"), allow_nan=False) for part in (hot, cold))
    body = "\n".join(lines).encode()
    return b"%s\n%s" % (_header(key, body), body)


def _header(key: str, body: bytes, format: int = FORMAT) -> bytes:
    return b"%s %d %08x" % (_MAGIC, format, zlib.crc32(body, zlib.crc32(key.encode())))


def _parsed(key: str, text: bytes, status: os.stat_result, format: int | None = FORMAT) -> Document:
    """
    Args:
        format: that it must have; None for any.

    Raises:
        ValueError: it is no document of this format and of this entry, or damaged.
    """
    header, _, body = text.partition(b"\n")
    if format is None:
        format = int(header.removeprefix(_MAGIC).split()[0])
    if header != _header(key, body, format):
        raise ValueError("damaged")
    hot, _, cold = body.partition(b"\n")
    said = _read_json(hot)
    if not isinstance(said, dict):
        raise ValueError("no object")
    return Document(said, cold, status.st_mtime)


class _Plain:
    """How the scanner reads JSON: as `json.loads` does."""

    strict, object_hook, object_pairs_hook = True, None, None
    array_hook = None  # Python 3.15 looks for it
    parse_int, parse_float, parse_constant = int, float, float


# The part of `json` in C. To import the rest takes 1.3 ms, since that compiles patterns.
_compiled = load("_json")
_scan = None if _compiled is None else _compiled.make_scanner(_Plain)


def _read_json(text: bytes) -> Any:
    """What a line of a document says; a ValueError where it is no JSON."""
    if _scan is None:
        return json.loads(text)
    line = text.decode()
    try:
        value, end = _scan(line, 0)
    except (StopIteration, RecursionError) as error:
        raise ValueError("no JSON") from error
    if end != len(line):
        raise ValueError("more than a value")
    return value


def _unlink(path: str) -> None:
    with suppress(OSError):
        os.unlink(path)
