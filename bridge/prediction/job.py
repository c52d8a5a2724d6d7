"""A job: what is to be done, what of it is done, and the file of results at the end.

Beside the file of results stands a folder while the job is under way, with the list of all units,
a description of the job, and the parts that are done. Parts are named by the units they hold. Each
is written whole or not at all, so a job that is killed at any moment goes on where it was.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from tflite_ort.files import write_text, writing
from tflite_ort.json_text import parsed
from tflite_ort.optional import optional_module
from tflite_ort.prediction.array_files import DAMAGED, InputError
from tflite_ort.prediction.part_files import told_of
from tflite_ort.prediction.results import Block, Done
from tflite_ort.prediction.units import ANY, MOST_ROWS, Unit
from tflite_ort.prediction.writers import Writer

_FORMAT = 2
_DESCRIPTION, _LISTING, _LOCK = "job.json", "units.jsonl", "lock"
_DIGITS = 12
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
        self.done = self._written()
        if self.left:
            raise JobError(f"{self.left} of {self.total} units are missing in {self.folder}")
        parts = [part_path(self.out, *each) for each in self.done]
        try:
            self._writer.join(parts, self.out)
            told = [told_of(part) for part in parts]
        except DAMAGED as error:
            said = f"the parts in {self.folder} cannot be joined: {error or type(error).__name__}"
            raise JobError(f"{said}; --overwrite begins anew") from error
        (self.folder / _DESCRIPTION).unlink()  # without it the folder is no job any more
        shutil.rmtree(self.folder)
        first = next((said for *_, said in told if said), "")
        return Done(self.total, sum(n for n, *_ in told), sum(n for _, n, _ in told), first)

    def _units(self) -> Iterator[Unit]:
        listing = self.folder / _LISTING
        with listing.open("rb") as lines:
            for line in lines:
                yield _unit(parsed(line, JobError, str(listing)), listing)

    def _written(self) -> list[tuple[int, int]]:
        found = []
        for name in os.listdir(self.folder):
            first, dash, after = name.partition("-")
            if dash and first.isdecimal() and after.isdecimal():
                found.append((int(first), int(after)))
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
    if overwrite:
        shutil.rmtree(folder, ignore_errors=True)
    elif not (folder / _DESCRIPTION).exists() and out.exists():
        raise JobError(f"{out} is there already; --overwrite begins anew")
    if not (folder / _DESCRIPTION).exists():
        shutil.rmtree(folder, ignore_errors=True)
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


def _begin(folder: Path, description: Mapping[str, Any], units: Iterator[Unit]) -> None:
    folder.mkdir(parents=True)
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
            shutil.rmtree(folder, ignore_errors=True)


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
    while True:
        with path.open("w") as stream:  # a lock
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
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
