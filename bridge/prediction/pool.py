"""The threads that all predictors of a process share."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

Given = TypeVar("Given")
Made = TypeVar("Made")

_here = threading.local()


def cores() -> int:
    """How many threads work at a time: the cores that this process may use, or fewer where
    ``OMP_NUM_THREADS`` says so, as a worker of Ray does."""
    available = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        available = len(os.sched_getaffinity(0))
    told = os.environ.get("OMP_NUM_THREADS", "")
    return max(1, min(available, int(told))) if told.isdecimal() else available


def spread(work: Callable[[Given], Made], parts: Iterable[Given], threads: int) -> list[Made]:
    """What `work` makes of each part, in their order; on the shared threads if there are several.

    A thread of the pool that comes here does the work itself: waiting for others, it might wait
    for itself.
    """
    listed = list(parts)
    if threads == 1 or len(listed) < 2 or getattr(_here, "pooled", False):
        return [work(part) for part in listed]
    return list(_limited(work, listed, threads))


def _limited(work: Callable[[Given], Made], parts: list[Given], threads: int) -> Iterator[Made]:
    """As `map`, with at most `threads` parts in work."""
    gate = threading.Semaphore(threads)

    def gated(part: Given) -> Made:
        with gate:
            return work(part)

    return shared_pool().map(gated, parts)


@cache
def shared_pool() -> ThreadPoolExecutor:
    """As many threads as there are cores. Each runs sessions of one thread, which do not spin."""
    return ThreadPoolExecutor(cores(), "tflite-ort", initializer=_mark)


def _mark() -> None:
    _here.pooled = True


if hasattr(os, "register_at_fork"):  # the threads stay with the parent
    os.register_at_fork(after_in_child=shared_pool.cache_clear)
