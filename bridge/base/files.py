"""Files that are written whole or not at all; everything in the library that writes one does it
here.

What is written stands beside the file, without a name where the system can do that, until it is
complete and on the disk. Then it takes the file's name in one step. So a full disk, an error or an
interrupt leaves what was there before.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from tflite_ort.base import guard

Target = str | os.PathLike[str]

_LONGEST_NAME = 200
# Linux makes files without a name, of which nothing is left if the process is killed.
_UNNAMED = getattr(os, "O_TMPFILE", None)
_FLAGS = os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


def write_bytes(path: Target, content: bytes | memoryview, *, again: bool = False) -> None:
    """Write a file whole or not at all.

    Args:
        again: a command may write it several times.

    Raises:
        OSError: it cannot be written; a file that was there before is as it was.
    """
    with writing(path, again=again) as (stream,):
        stream.write(content)


def write_text(path: Target, text: str, *, again: bool = False) -> None:
    """As `write_bytes`, in UTF-8."""
    write_bytes(path, text.encode(), again=again)


@contextmanager
def writing(*paths: Target, again: bool = False) -> Iterator[list[IO[bytes]]]:
    """Streams to write files with. When the block ends all of them are put on the disk, and then
    take the names `paths`, the first one last.

    A file keeps the permissions that it had, and a symbolic link goes on pointing at it; a command
    does not write through one. Pipes and devices are written to directly, since they cannot be
    replaced.

    Args:
        again: a command may write them several times.

    Raises:
        OSError: they cannot be written, or `guard` refuses it; files that were there before are as
            they were.
    """
    for path in paths:
        guard.check_written(path, again=again)
    with ExitStack() as stack:
        drafts = [stack.enter_context(_Draft(os.fspath(path))) for path in paths]
        yield [draft.stream for draft in drafts]
        for draft in drafts:
            draft.finish()
        for draft in reversed(drafts):
            draft.publish()


def move(path: Path, target: Path) -> Path:
    """Give a file another name; what had it is gone.

    Raises:
        OSError: it cannot be moved, or `guard` refuses it.
    """
    guard.check_written(target)
    return path.replace(target)


def remove(path: Path) -> None:
    """Remove what is of no use any more, if that can be done.

    Raises:
        OSError: `guard` refuses it.
    """
    guard.check_written(path)
    with suppress(OSError):
        path.unlink()


def made_folder(folder: Target, *below: str) -> Path:
    """A folder, made where it is missing, with those on the way.

    Args:
        below: folders in it, which a result has whatever `folder` is; none of them is a link.

    Raises:
        OSError: it cannot be made, or a link is in its place.
    """
    path = Path(folder)
    guard.check_folder(path)
    path.mkdir(parents=True, exist_ok=True)
    for name in below:
        path /= name
        guard.check_no_link(path)
        path.mkdir(exist_ok=True)
    return path


def portable_names(names: Sequence[str]) -> list[str]:
    """`names` as those of files in one folder: letters, digits, points, dashes; each another one,
    also where a file system does not tell large letters from small ones."""
    plain = (re.sub(r"[^\w.-]+", "_", name).strip("_.") or "_" for name in names)
    return distinct_names([shortened(name) for name in plain], "{number}_{name}")


def distinct_names(names: Sequence[str], numbered: str) -> list[str]:
    """`names`, where several that differ in no more than the size of letters have a number.

    Args:
        numbered: a name with its number, such as ``{name}_{number}``; none has that of another.
    """
    count, number = Counter(map(str.casefold, names)), -1
    taken, found = set(count), []
    for place, name in enumerate(names):
        free, number = name, max(number, place - 1)
        while count[name.casefold()] > 1 and free.casefold() in taken:
            number += 1
            free = numbered.format(name=name, number=number)
        taken.add(free.casefold())
        found.append(free)
    return found


def shortened(name: str) -> str:
    """The beginning of a name, as much as every file system takes with a suffix behind it."""
    return name.encode()[:_LONGEST_NAME].decode(errors="ignore")


def is_replaceable(path: Target) -> bool:
    """Whether `path` is a plain file, or nothing yet: neither a pipe nor a device."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except FileNotFoundError:
        return True


class _Draft:
    """What is to be one file.

    Attributes:
        stream: what it is written with.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._direct = os.path.isdir(path) or not is_replaceable(path)
        self._target = Path(path if self._direct else os.path.realpath(path))
        self._name: Path | None = None
        with self._blamed():
            self.stream: IO[bytes] = self._onto() if self._direct else self._beside()

    def _onto(self) -> IO[bytes]:
        """What cannot be replaced, itself."""
        return os.fdopen(os.open(self._path, _FLAGS & ~os.O_RDWR | os.O_WRONLY), "wb")

    def _beside(self) -> IO[bytes]:
        """A new file in the folder of the target, with its permissions."""
        mode = None
        if self._target.exists():
            if not os.access(self._target, os.W_OK):
                raise PermissionError(13, os.strerror(13), self._path)
            mode = stat.S_IMODE(self._target.stat().st_mode)
        descriptor = _unnamed(self._target.parent)
        if descriptor is None:
            self._name = self._free_name()
            descriptor = os.open(self._name, _FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
        if mode is not None:
            os.chmod(self._name or descriptor, mode)
        return os.fdopen(descriptor, "w+b")

    def _free_name(self) -> Path:
        return self._target.with_name(f".{os.urandom(8).hex()}.tmp")

    def finish(self) -> None:
        """Put what was written on the disk."""
        with self._blamed():
            self.stream.flush()
            if not self._direct:
                os.fsync(self.stream.fileno())

    def publish(self) -> None:
        """Take the file's name; what had it is gone."""
        if self._direct:
            return
        with self._blamed():
            if self._name is None:
                self._name = self._free_name()
                _name(self.stream.fileno(), self._name)
            self.stream.close()
            os.replace(self._name, self._target)
            self._name = None
        _sync_folder(self._target.parent)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Errors name the file that was to be written."""
        try:
            yield
        except OSError as error:
            error.filename = self._path
            del error.filename2  # None would be printed
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, OSError) and error.filename is None:
            error.filename = self._path
        with suppress(OSError):  # what could not be written is given up
            self.stream.close()
        if self._name is not None:
            with suppress(OSError):
                os.unlink(self._name)


def _unnamed(folder: Path) -> int | None:
    """A new file without a name; None where the system or the file system has none."""
    if _UNNAMED is None or not os.path.exists("/proc/self/fd"):
        return None
    try:
        return os.open(folder, _FLAGS | _UNNAMED, 0o666)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError:
        return None


def _name(descriptor: int, path: Path) -> None:
    """Give a file without a name the name `path`."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:  # without a folder's descriptor Python does not follow the link
        own = f"/proc/self/fd/{descriptor}"
        os.link(own, path.name, dst_dir_fd=folder, follow_symlinks=True)
    finally:
        os.close(folder)


def _sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk, where the system can do that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
