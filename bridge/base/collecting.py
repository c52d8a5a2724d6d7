"""Python's garbage collector while many objects are made that stay.

It looks at all new objects each time that 700 more of them are there, which takes a tenth of a load
and of an import: what they make is hardly ever garbage.
"""

from __future__ import annotations

import gc
import os
from _thread import allocate_lock, get_ident  # to import `threading` takes 0.4 ms
from typing import Any

# New objects between two collections. It bounds what other threads leave in the meantime.
_OBJECTS = 100_000


class _Seldom:
    """Raises the threshold of the collector in the blocks of any number of threads."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._blocks: dict[int, int] = {}  # of each thread that is in one
        self._usual = self._raised = gc.get_threshold()

    def __enter__(self) -> None:
        thread = get_ident()
        with self._lock:
            if not self._blocks:
                self._usual = gc.get_threshold()
                first, second, third = self._usual
                self._raised = max(first, _OBJECTS) if first else 0, second, third
                gc.set_threshold(*self._raised)
            self._blocks[thread] = self._blocks.get(thread, 0) + 1

    def __exit__(self, *raised: Any) -> None:
        thread = get_ident()
        with self._lock:
            left = self._blocks.pop(thread) - 1
            if left:
                self._blocks[thread] = left
            self._lower()

    def forked(self) -> None:
        """In a new process: of the threads there is one, which keeps its blocks."""
        self._lock, thread = allocate_lock(), get_ident()
        self._blocks = {thread: self._blocks[thread]} if thread in self._blocks else {}
        self._lower()

    def _lower(self) -> None:
        if not self._blocks and gc.get_threshold() == self._raised:  # else somebody has set it
            gc.set_threshold(*self._usual)


# In its blocks the garbage collector runs seldom. Whether it is on stays as it was.
seldom = _Seldom()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=seldom.forked)


class Promotion:
    """Puts all objects that there are with the oldest ones, which are looked at least often: nobody
    need look at what an import has made. It does nothing in a process that has frozen objects,
    which are counted until some are found: to count ten million of them takes 30 ms."""

    def __init__(self) -> None:
        self._frozen = False

    def __call__(self) -> None:
        self._frozen = self._frozen or gc.get_freeze_count() > 0
        if not self._frozen:
            gc.freeze()
            gc.unfreeze()


promote = Promotion()
