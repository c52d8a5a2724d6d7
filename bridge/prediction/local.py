"""Workers on this machine: threads of this process, or processes."""

from __future__ import annotations

import multiprocessing
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field

from tflite_ort.prediction.job import Job
from tflite_ort.prediction.reading import Tables
from tflite_ort.prediction.results import Block, Done, joined
from tflite_ort.prediction.row_model import LARGEST_BATCH
from tflite_ort.prediction.units import Unit
from tflite_ort.prediction.work import Loaded, Setup, Worker
from tflite_ort.schema import BatchWarning

# A part of so many bytes is written at once.
_BYTES = 16 << 20
# So many groups of units for each worker may wait, or be done before an earlier one is.
_AHEAD = 3

# Called with the results since the last call.
Tell = Callable[[Done], None]

Work = Callable[[list[Unit], list[Loaded]], Block]


def run_threads(job: Job, worker: Worker, workers: int, tell: Tell) -> None:
    """Do the rest of a job in threads of this process."""
    with ThreadPoolExecutor(workers, "predict") as pool:
        _run(job, pool, worker, workers, max(LARGEST_BATCH, worker.rows_at_once), tell)


def run_processes(job: Job, setup: Setup, workers: int, rows: int, tell: Tell) -> None:
    """Do the rest of a job in processes, each with its own model."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, _start, (setup,)) as pool:
        _run(job, pool, _work, workers, max(LARGEST_BATCH, rows), tell)


_workers: list[Worker] = []


def _start(setup: Setup) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BatchWarning)  # the parent process warns
        _workers[:] = [Worker(setup)]


def _work(units: list[Unit], loaded: list[Loaded]) -> Block:
    return _workers[0](units, loaded)


@dataclass(slots=True)
class _Draft:
    """Rows that wait to be written as one part, of the units [first, after).

    Args:
        blocks: each with the unit that follows on it. An interrupt comes before or after one is
            appended, so that a part never says less than it holds.
    """

    first: int
    blocks: list[tuple[int, Block]] = field(default_factory=list)
    size: int = 0
    begun: float = field(default_factory=time.monotonic)

    @property
    def after(self) -> int:
        """The unit behind the last one."""
        return self.blocks[-1][0] if self.blocks else self.first

    def add(self, after: int, block: Block) -> None:
        """Put the rows of the units up to `after` behind the others."""
        self.blocks.append((after, block))
        self.size += block.size

    def is_due(self, seconds: float) -> bool:
        """Whether it should be written now."""
        return self.size >= _BYTES or time.monotonic() - self.begun >= seconds


def _run(job: Job, pool: Executor, work: Work, workers: int, rows: int, tell: Tell) -> None:
    draft: _Draft | None = None
    try:
        for first, units, block in _in_order(job, pool, work, workers, rows):
            if draft is not None and draft.after != first:
                draft = _write(job, draft)
            draft = draft or _Draft(first)
            draft.add(first + len(units), block)
            tell(block.done(len(units)))
            if draft.is_due(job.save_seconds):
                draft = _write(job, draft)
    finally:  # an interrupt loses nothing that is done
        pool.shutdown(wait=False, cancel_futures=True)
        _write(job, draft)


def _write(job: Job, draft: _Draft | None) -> _Draft | None:
    """Write a draft that has rows. Afterwards there is no draft."""
    if draft is not None and draft.blocks:
        job.write(draft.first, draft.after, joined([block for _, block in draft.blocks]))
    return None


def _in_order(
    job: Job, pool: Executor, work: Work, workers: int, rows: int
) -> Iterator[tuple[int, list[Unit], Block]]:
    """(number of the first unit, units, results) of each group, in the order of the job."""
    tables = Tables()
    waiting: deque[tuple[int, list[Unit], Future[Block]]] = deque()
    for first, units in job.groups(rows, workers):
        if len(waiting) >= workers * _AHEAD:
            number, group, future = waiting.popleft()
            yield number, group, future.result()
        waiting.append((first, units, pool.submit(work, units, [*map(tables.loaded, units)])))
    while waiting:
        number, group, future = waiting.popleft()
        yield number, group, future.result()
