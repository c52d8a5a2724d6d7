"""Files of the cache as this process reads them, and which of them it has checked."""

from __future__ import annotations

import errno
import os
import stat
import zlib
from collections.abc import Callable
from typing import Any, TypeVar

from tflite_ort.schema.file.plain_files import identity

T = TypeVar("T")

_READ = os.O_RDONLY
for _flag in ("O_CLOEXEC", "O_BINARY", "O_NONBLOCK"):  # the last: do not wait for a pipe
    _READ |= getattr(os, _flag, 0)
_CHUNK = 1 << 17  # stays in the processor's cache


def file_checksum(path: str | os.PathLike[str], size: int = -1) -> int:
    """The CRC-32 of a file.

    Args:
        size: what it must have; -1 for any.

    Raises:
        ValueError: it has another; OSError where it cannot be read.
    """
    checksum, total = 0, 0
    with open(path, "rb", buffering=0) as file:
        actual = os.fstat(file.fileno()).st_size
        if size >= 0 and actual != size:
            raise ValueError(f"{path} has another size")
        buffer = bytearray(min(_CHUNK, actual + 1))
        view = memoryview(buffer)
        while count := file.readinto(buffer):
            checksum = zlib.crc32(view[:count], checksum)
            total += count
    if size >= 0 and total != size:
        raise ValueError(f"{path} has another size")
    return checksum


class ReadLast:
    """The values of the files that this process read last. Each was checked when it was read."""

    def __init__(self, count: int, limit: int) -> None:
        self._count, self._limit = count, limit
        # By path, the identity of the file, the value, and the identity of the folder.
        self._values: dict[str, tuple[tuple[int, ...], Any, tuple[int, ...]]] = {}

    def value(
        self, path: str, make: Callable[[bytes, os.stat_result], T], folder: tuple[int, ...] = ()
    ) -> T:
        """What `make` says of the bytes of a file, which has not changed since.

        Args:
            folder: the identity of its folder, seen before the call. While that is the same, no
                file in it was replaced, and the value is given without a look at the file.
        """
        kept = self._values.get(path)
        if kept is not None:
            found: T
            of, found, seen = kept
            if folder and seen == folder:
                return found
            if of == identity(os.stat(path)):
                self._values[path] = of, found, folder
                return found
        content, status = content_of(path)
        value = make(content, status)
        if status.st_size <= self._limit:
            self._keep(path, identity(status), value, folder)
        return value

    def forget(self, path: str) -> None:
        """Read a file again the next time."""
        self._values.pop(path, None)

    def known(self, path: str, make: Callable[[], int]) -> int:
        """As `value`, of a number."""
        of = identity(os.stat(path))
        kept = self._values.get(path)
        if kept is None or kept[0] != of:
            kept = of, make(), ()
            if identity(os.stat(path)) == of:
                self._keep(path, *kept)
        number: int = kept[1]
        return number

    def _keep(self, path: str, of: tuple[int, ...], value: Any, folder: tuple[int, ...]) -> None:
        if len(self._values) >= self._count:
            self._values.clear()
        self._values[path] = of, value, folder


def content_of(path: str) -> tuple[bytes, os.stat_result]:
    """The bytes of a file and its `stat`. It takes half the time of `open`."""
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "no plain file", path)
        return os.read(descriptor, status.st_size), status
    finally:
        os.close(descriptor)
