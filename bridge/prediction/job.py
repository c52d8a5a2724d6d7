"""A job: what is to be done, what of it is done, and the file of results at the end.

Beside the file of results stands a folder while the job is under way, with a mark, the list of all
units, a description of the job, and the parts that are done. Parts are named by the units they
hold. A part is written completely or not at all, so a job that is killed at any moment goes on
where it was. A folder without the mark belongs to somebody else, and so does a file whose name is
not ours.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from tflite_ort.base.files import write_bytes, write_text, writing
from tflite_ort.base.guard import check_no_link
from tflite_ort.base.json_text import parsed
from tflite_ort.base.optional import optional_module
from tflite_ort.prediction.array_files import DAMAGED, InputError
from tflite_ort.prediction.part_files import told_of
from tflite_ort.prediction.results import Block, Done
from tflite_ort.prediction.units import ANY, MOST_ROWS, Unit
from tflite_ort.prediction.writers import Writer

_FORMAT = 2
_MARK, _DESCRIPTION, _LISTING, _LOCK = "tflite_ort_job", "job.json", "units.jsonl", "lock"
_MARKED = b"A job of tflite-ort predict: it goes on with the command that began it.\n"
_DIGITS = 12
_PART = re.compile(rf"(\d{{{_DIGITS},}})-(\d{{{_DIGITS},}})")
# A file that `files` may leave if the process is killed.
_DRAFT = re.compile(r"\.[0-9a-f]{16}\.tmp")
# A lock is a file without content. Links are not followed, and pipes are opened without a wait.
_OPEN_LOCK = os.O_RDWR | os.O_CREAT
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
    _OPEN_LOCK |= getattr(os, _flag, 0)
# The smallest group at the end of a job.
_FEWEST_ROWS = 4


class JobError(InputError):
    """A job cannot begin or go on."""


class Job:
    """A job whose units are listed.

    Args:
        out: the file of results.
        writer: of the format of `out`.
        save_seconds: how long results may wait until they are written as a part.

    Attributes:
        total: how many units there are.
        done: the stretches [first, after) of units whose parts are written, in order.
    """

    def __init__(self, out: Path, writer: Writer, save_seconds: float) -> None:
        self.save_seconds = save_seconds
        self.out, self.folder, self._writer = out, folder_of(out), writer
        self.total, self.description = _described(self.folder / _DESCRIPTION)
        self.done = self._written()

    @property
    def left(self) -> int:
        """How many units are not done."""
        return self.total - sum(after - first for first, after in self.done)

    def refresh(self) -> None:
        """Look again which parts are written."""
        self.done = self._written()

    def groups(self, rows: int, workers: int = 0) -> Iterator[tuple[int, list[Unit]]]:
        """(number of the first, units) of what is left, in groups of about so many rows; for
        `workers` the last groups are smaller, so that none of them waits long for the others."""
        done = deque(self.done)
        group: list[Unit] = []
        size, most = 0, rows
        for number, unit in enumerate(self._units()):
            while done and number >= done[0][1]:
                done.popleft()
            written = bool(done) and number >= done[0][0]
            if workers:
                most = min(rows, max(_FEWEST_ROWS, (self.total - number) // (2 * workers)))
            if group and (written or size >= most):
                yield number - len(group), group
                group, size = [], 0
            if not written:
                group.append(unit)
                size += 1 if unit.count == ANY else unit.count
        if group:
            yield self.total - len(group), group

    def write(self, first: int, after: int, block: Block) -> None:
        """Write the part of the units [first, after)."""
        self._writer.part(part_path(self.out, first, after), block)

    def finish(self) -> Done:
        """Join the parts to the file of results, and remove them.

        Returns:
            What all of them hold, whoever wrote them.

        Raises:
            JobError: a unit is missing, or is there twice, or a part is damaged.
        """
        self.refresh()
        if self.left:
            raise JobError(f"{self.left} of {self.total} units are missing in {self.folder}")
        parts = [part_path(self.out, *each) for each in self.done]
        try:
            self._writer.join(parts, self.out)
            told = [told_of(part) for part in parts]
        except DAMAGED as error:
            said = f"the parts in {self.folder} cannot be joined: {error or type(error).__name__}"
            raise JobError(f"{said}; --overwrite begins anew") from error
        _remove(self.folder)
        first = next((said for *_, said in told if said), "")
        return Done(self.total, sum(n for n, *_ in told), sum(n for _, n, _ in told), first)

    def _units(self) -> Iterator[Unit]:
        listing = self.folder / _LISTING
        _check_plain(listing)
        with listing.open("rb") as lines:
            for line in lines:
                yield _unit(parsed(line, JobError, str(listing)), listing)

    def _written(self) -> list[tuple[int, int]]:
        found = []
        for name in os.listdir(self.folder):
            if (named := _PART.fullmatch(name)) is not None:
                _check_plain(self.folder / name)
                found.append((int(named[1]), int(named[2])))
        found.sort()
        for before, behind in pairwise(found):
            if behind[0] < before[1]:
                raise JobError(f"{self.folder} has unit {behind[0]} twice")
        return found


def _described(file: Path) -> tuple[int, dict[str, Any]]:
    """The number of units of a job, and its description.

    Raises:
        JobError: the file is damaged.
    """
    _check_plain(file)
    stored = parsed(file.read_bytes(), JobError, str(file))
    if isinstance(stored, dict) and stored.get("format") == _FORMAT:
        units, description = stored.get("units"), stored.get("description")
        if isinstance(units, int) and isinstance(description, dict):
            return units, description
    raise JobError(
        f"{file} describes no job of this version of the library: finish it with the one that "
        "began it, or --overwrite begins anew"
    )


def _unit(stored: Any, listing: Path) -> Unit:
    """A unit of a listing.

    Raises:
        JobError: it is none.
    """
    types = (str, int, int, bool)
    is_list = isinstance(stored, list) and 0 < len(stored) <= len(types)
    if is_list and all(map(isinstance, stored, types)):
        unit = Unit(*stored)
        if unit.first >= 0 and ANY <= unit.count <= MOST_ROWS:
            return unit
    raise JobError(f"{listing} lists what is no unit: {stored!r:.80}")


def folder_of(out: Path) -> Path:
    """Where the job of a file of results is kept while it is under way."""
    return out.with_name(f"{out.name}.job")


def part_path(out: Path, first: int, after: int) -> Path:
    """Where the results of the units [first, after) are written."""
    return folder_of(out) / f"{first:0{_DIGITS}d}-{after:0{_DIGITS}d}"


def opened_job(
    out: Path,
    writer: Writer,
    description: Mapping[str, Any],
    units: Iterator[Unit],
    *,
    overwrite: bool = False,
    save_seconds: float = 5.0,
) -> Job:
    """The job that is under way for `out`, or a new one.

    Args:
        description: of what the results are made, which a job that goes on must have too.
        units: what a new one is made of.
        overwrite: begin anew, whatever is there.
        save_seconds: as of `Job`.

    Raises:
        JobError: another job is under way for this file, or it is there already.
    """
    folder = folder_of(out)
    _check_folder(folder)
    begun = (folder / _DESCRIPTION).exists()
    if not begun:
        _remove(folder)  # what a job left that was killed while it removed this
    if out.exists() and overwrite and not writer.wrote(out):
        raise JobError(f"{out} holds no results of predict: --overwrite replaces nothing else")
    if out.exists() and not overwrite and not begun:
        raise JobError(f"{out} is there already; --overwrite begins anew")
    if overwrite or not begun:
        _remove(folder)
        _begin(folder, description, units)
    job = Job(out, writer, save_seconds)
    differing = {
        name
        for name in {*description, *job.description}
        if description.get(name) != job.description.get(name)
    }
    if differing:
        raise JobError(
            f"{folder} holds a job with another {', '.join(sorted(differing))}; finish it with the "
            "command that began it, or --overwrite begins anew"
        )
    return job


def _check_folder(folder: Path) -> None:
    """
    Raises:
        JobError: something is in the place of the folder of a job.
    """
    try:
        mode = os.lstat(folder).st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode) and (not os.listdir(folder) or _is_ours(folder)):
        return
    raise JobError(f"{folder} is no job of predict: move it, or give the results another name")


def _is_ours(folder: Path) -> bool:
    """Whether a folder has the mark, or the description of a job that is begun."""
    mark, description = folder / _MARK, folder / _DESCRIPTION
    if _is_plain(mark) and mark.read_bytes()[: len(_MARKED)] == _MARKED:
        return True
    if not _is_plain(description):
        return False
    stored = parsed(description.read_bytes(), JobError, str(description))
    return isinstance(stored, dict) and stored.keys() == {"format", "units", "description"}


def _check_plain(path: Path) -> None:
    """
    Raises:
        JobError: a file of a job is missing, or is no plain file.
    """
    if not _is_plain(path):
        raise JobError(f"{path} is not a plain file: --overwrite begins anew")


def _is_plain(path: Path) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except FileNotFoundError:
        return False


def _begin(folder: Path, description: Mapping[str, Any], units: Iterator[Unit]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(folder / _MARK, _MARKED)
    total, begun = 0, False
    try:
        with writing(folder / _LISTING) as (stream,):
            for unit in units:
                stream.write(json.dumps(unit.stored()).encode() + b"\n")
                total += 1
        stored = {"format": _FORMAT, "units": total, "description": dict(description)}
        write_text(folder / _DESCRIPTION, json.dumps(stored))
        begun = True
    finally:
        if not begun:  # inputs that are not there leave no folder behind
            _remove(folder)


def _remove(folder: Path) -> None:
    """Delete the files of a job, the mark last, and the folder if nothing else is in it."""
    if not folder.exists():
        return
    names = os.listdir(folder)
    ours = [name for name in names if _PART.fullmatch(name) or _DRAFT.fullmatch(name)]
    # Without its description the folder is no job any more.
    for name in (_DESCRIPTION, _LISTING, *ours, _MARK):
        if not os.path.isdir(folder / name) or os.path.islink(folder / name):
            (folder / name).unlink(missing_ok=True)
    with suppress(OSError):  # something else is in it
        folder.rmdir()


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """No other process works on `out` while the block runs, where the system has such locks.

    Raises:
        JobError: another one does.
    """
    fcntl: Any = optional_module("fcntl")
    if fcntl is None:
        yield
        return
    path = out.with_name(f".{out.name}.{_LOCK}")
    os.stat(path.parent)  # where it is missing, the error names it and no file in it
    check_no_link(path)
    while True:
        with os.fdopen(os.open(path, _OPEN_LOCK, 0o666), "rb+", buffering=0) as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode) or status.st_size:
                raise JobError(f"{path} is no lock of predict: move it, or give another --out")
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise JobError(f"another process writes {out}") from error
            if not _is_at(stream.fileno(), path):
                continue  # the one before has removed it in between
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
