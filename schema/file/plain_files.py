"""Files that a model stands in or names: plain files only, opened without waiting for anybody.

A name that a model gives is not trusted. It leads to a file only below folders that the caller
allows, whatever links stand on the way, and not to a device, a pipe or a socket.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import late
from tflite_ort.schema.file.errors import ModelError, UnreadableModel

with late:
    import mmap
    import pathlib

Array = npt.NDArray[Any]

# What a model's bytes from the fifth to the eighth are.
IDENTIFIER = b"TFL3"

# Smaller files are read into memory, so that who changes the file later changes nothing here.
# Larger ones are mapped: they must not change while they are in use.
MAPPED_BYTES = 256 << 20
# From here on numpy asks the system for large pages: to read takes half the time.
_HUGE_PAGES = 4 << 20
# A smaller file is read and hashed again in less time than it is found to be the same.
KNOWN_BYTES = 1 << 16

# Absent on Windows, which has no links to follow and no pipes to wait for in folders.
_NO_WAIT = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_CLOEXEC", 0)
_DESCENDS = os.open in os.supports_dir_fd and os.stat in os.supports_dir_fd

Path = str | os.PathLike[str]

# What is another for another file, and after every change of a file but one through a map.
identity: Callable[[os.stat_result], tuple[int, ...]] = attrgetter(
    *("st_dev", "st_ino", "st_size", "st_mtime_ns", "st_ctime_ns")
)


def file_content(path: Path) -> Array:
    """The bytes of a plain file as a read-only array; of a large one as a view of its map.

    Raises:
        UnreadableModel: it is no plain file.
        OSError: it cannot be opened.
    """
    return content_and_status(path)[0]


def content_and_status(path: Path) -> tuple[Array, os.stat_result | None]:
    """As `file_content`, and what the system says of the file; None of a small one, and where that
    has changed in the meantime.

    Raises: as `file_content`.
    """
    name = os.fspath(path)
    return _content(_opened(name), name)


def open_plain(path: Path) -> io.BufferedReader:
    """A plain file, opened to be read.

    Raises: as `file_content`.
    """
    name = os.fspath(path)
    descriptor = _opened(name)
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return open(descriptor, "rb")
    os.close(descriptor)
    raise _not_plain(status, name)


def bytes_content(source: bytes | bytearray | memoryview) -> Array:
    """The content of a model given as bytes, as a read-only array over them."""
    content = np.asarray(memoryview(source).cast("B"))
    content.flags.writeable = False
    return content


def content_below(name: str, folders: Sequence[Path]) -> Array:
    """As `file_content`, of the file that a model calls `name`: below one of `folders`.

    A relative name is looked up in each of `folders`.

    Raises:
        ModelError: it is below none of them, or no plain file.
        OSError: it cannot be opened.
    """
    if not name or "\0" in name or ".." in pathlib.PurePath(name).parts:
        raise ModelError(f"external file name {name!r} leaves the model's folder")
    if not folders:
        raise ModelError(
            f"external file {name!r} belongs to a model that was not read from a path: "
            "external_roots=[...] names the folders of external files"
        )
    root, parts = _located(name, [os.path.abspath(folder) for folder in folders])
    return _content(_descended(root, parts), name)[0]


def _located(name: str, folders: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The folder, its links resolved, below which `name` is, and the way from there.

    Only places below `folders` are looked at: elsewhere a mere look may mount a file system.
    """
    roots = [os.path.realpath(folder) for folder in folders]
    places = [os.path.join(folder, name) for folder in folders]  # an absolute name as it is
    resolved = [
        os.path.realpath(place)
        for place in dict.fromkeys(places)
        if any(_is_below(place, folder) for folder in (*folders, *roots))
    ]
    below = [(root, place) for place in resolved for root in roots if _is_below(place, root)]
    if not below:
        raise ModelError(
            f"external file {name!r} is outside the model's folder: external_roots=[...] names "
            "other folders that may be read"
        )
    root, place = next((pair for pair in below if os.path.lexists(pair[1])), below[0])
    return root, pathlib.PurePath(place).relative_to(root).parts


def _is_below(path: str, root: str) -> bool:
    inner, outer = pathlib.PurePath(path), pathlib.PurePath(root)
    return inner != outer and inner.is_relative_to(outer)


def _descended(root: str, parts: Sequence[str]) -> int:
    """A descriptor of the file `parts` below `root`, with no link followed on the way."""
    *folders, last = parts
    if not _DESCENDS:
        return _opened(os.path.join(root, *parts))
    at = os.open(root, _FOLDER)
    try:
        for folder in folders:
            above, at = at, os.open(folder, _FOLDER | _NO_LINK, dir_fd=at)
            os.close(above)
        return _opened(last, at)
    finally:
        os.close(at)


def _opened(path: str, folder: int | None = None) -> int:
    """A descriptor of a plain file; of one in `folder` only if it is no link.

    A device is not even opened, which may have an effect. The name may lead elsewhere by then:
    `_content` looks at the descriptor again.
    """
    follow = folder is None
    try:
        status = os.stat(path, dir_fd=folder, follow_symlinks=follow)
    except ValueError as error:  # a NUL in the name
        raise UnreadableModel(f"{path!r} cannot be opened: {error}") from error
    if not stat.S_ISREG(status.st_mode):
        raise _not_plain(status, path)
    flags = os.O_RDONLY | _NO_WAIT | (0 if follow else _NO_LINK)
    return os.open(path, flags, dir_fd=folder)


def _not_plain(status: os.stat_result, path: str) -> Exception:
    if stat.S_ISDIR(status.st_mode):
        return IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    return UnreadableModel(f"{path!r} is {_kind(status.st_mode)}, not a plain file")


def _kind(mode: int) -> str:
    kinds = {
        stat.S_IFLNK: "a link",
        stat.S_IFIFO: "a pipe",
        stat.S_IFSOCK: "a socket",
        stat.S_IFCHR: "a device",
        stat.S_IFBLK: "a device",
    }
    return kinds.get(stat.S_IFMT(mode), "something else")


def _content(descriptor: int, path: str) -> tuple[Array, os.stat_result | None]:
    """The content of a file that was opened as `path`, and what the system says of it."""
    try:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise _not_plain(before, path)
        content = _bytes(descriptor, before.st_size)
        if before.st_size < KNOWN_BYTES:
            return content, None
        after = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return content, after if identity(before) == identity(after) else None


def _bytes(descriptor: int, size: int) -> Array:
    if size > MAPPED_BYTES:
        return np.frombuffer(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ), np.uint8)
    if size >= _HUGE_PAGES:
        return _read_into_array(descriptor, size)
    parts, left = [os.read(descriptor, size)], size
    while parts[-1] and (left := left - len(parts[-1])) > 0:
        parts.append(os.read(descriptor, left))
    return np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), np.uint8)


def _read_into_array(descriptor: int, size: int) -> Array:
    content, read = np.empty(size, np.uint8), 0
    with io.FileIO(descriptor, closefd=False) as file:
        while count := file.readinto(content[read:].data):
            read += count
    content.flags.writeable = False
    return content[:read]
