"""Python's garbage collector while many objects are made that stay.

It looks at all new objects each time that 700 more of them are there, which takes a tenth of a load
and of an import: what they make is hardly ever garbage.
"""

from __future__ import annotations

import gc
from _thread import allocate_lock  # to import `threading` takes 0.4 ms
from typing import Any

# New objects between two collections. It bounds what other threads leave in the meantime.
_OBJECTS = 100_000


class _Seldom:
    """Raises the threshold of the collector in the blocks of any number of threads."""

    def __init__(self) -> None:
        self._lock, self._inside = allocate_lock(), 0
        self._usual = self._raised = gc.get_threshold()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._usual = gc.get_threshold()
                first, second, third = self._usual
                self._raised = max(first, _OBJECTS) if first else 0, second, third
                gc.set_threshold(*self._raised)

    def __exit__(self, *raised: Any) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and gc.get_threshold() == self._raised:  # else somebody has set it
                gc.set_threshold(*self._usual)


# In its blocks the garbage collector runs seldom. Whether it is on stays as it was.
seldom = _Seldom()


def promote() -> None:
    """Put all objects that there are with the oldest ones, which are looked at least often. Nobody
    need look at what an import has made. It does nothing in a process that has frozen objects."""
    if not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()
