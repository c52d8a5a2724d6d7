"""What a command must not lose: the files that it reads, those that it has written, and what links
lead to.

`files` asks here before it writes or makes a folder, so that this holds for every file of every
verb. A link is not followed, since it may come with the files that somebody else has packed.
"""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager

Target = str | os.PathLike[str]

# Their links are the system's own: /dev/stdout leads to a pipe or a terminal.
_OF_THE_SYSTEM = ("/dev", "/proc")


class Guard:
    """What one command reads and has written."""

    def __init__(self) -> None:
        self._read: dict[tuple[int, int], str] = {}
        self._written: set[Hashable] = set()

    def reads(self, path: Target, said: str = "read too") -> None:
        """Take a file for one that the command reads, whatever other names it has.

        Args:
            said: what it is.
        """
        status = _status(path)
        if status is not None and not stat.S_ISDIR(status.st_mode):
            self._read[status.st_dev, status.st_ino] = said

    def read_as(self, path: Target) -> str:
        """What a file is read as; empty where it is not read."""
        status = _status(path)
        return "" if status is None else self._read.get((status.st_dev, status.st_ino), "")

    def check(self, path: Target, *, again: bool = False) -> None:
        """
        Args:
            again: the command may have written it before.

        Raises:
            OSError: it is a link, the command reads it, or has written it.
        """
        check_no_link(path)
        name = os.fspath(path)
        if said := self.read_as(path):
            raise OSError(errno.EEXIST, f"is not written, since it is {said}", name)
        place, status = place_of(path), _status(path)
        is_plain = status is not None and stat.S_ISREG(status.st_mode)
        if is_plain and place in self._written and not again:
            raise OSError(errno.EEXIST, "is not written, since two results would go there", name)
        self._written.add(place)


# Of the command that runs; a process runs one at a time.
_guards: list[Guard] = []


@contextmanager
def guarding() -> Iterator[Guard]:
    """A command runs in the block: what `files` writes is checked."""
    guard = Guard()
    _guards.append(guard)
    try:
        yield guard
    finally:
        _guards.remove(guard)


def check_written(path: Target, *, again: bool = False) -> None:
    """As `Guard.check`, where a command runs."""
    for guard in _guards:
        guard.check(path, again=again)


def check_folder(path: Target) -> None:
    """
    Raises:
        OSError: a command runs, and would write into a folder that is a link.
    """
    if _guards:
        check_no_link(path)


def protect(paths: Iterable[Target]) -> None:
    """Files that were found in a folder are read by the command that runs."""
    for path in paths if _guards else ():
        for guard in _guards:
            guard.reads(path)


def check_no_link(path: Target) -> None:
    """
    Raises:
        OSError: it is a link.
    """
    name = os.fspath(path)
    if os.path.islink(name) and not _is_of_the_system(name):
        raise OSError(errno.ELOOP, "is a link, and nothing is written through links", name)


def place_of(path: Target) -> Hashable:
    """What stands for a file that is perhaps not there yet: another name of its folder, or other
    sizes of letters, make no other place."""
    folder, name = os.path.split(os.path.abspath(path))
    status = _status(folder)
    at = os.path.realpath(folder) if status is None else (status.st_dev, status.st_ino)
    return at, unicodedata.normalize("NFC", name).casefold()


def _status(path: Target) -> os.stat_result | None:
    try:
        return os.stat(path)
    except (OSError, ValueError):  # a ValueError of a zero byte in the name
        return None


def _is_of_the_system(name: str) -> bool:
    folder = os.path.realpath(os.path.dirname(os.path.abspath(name)))
    return any(folder == each or folder.startswith(each + os.sep) for each in _OF_THE_SYSTEM)
