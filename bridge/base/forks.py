"""What a child of a fork does with what its parent's threads left: they do not run in it.

A fork copies the thread that calls it, and no other. A lock that another thread held stays locked
in the child, and who waits for another thread waits for ever.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Renewed(Protocol):
    """Something that waits for threads."""

    def renew(self) -> None:
        """The process is the child of a fork: take no thread for one that runs."""


_ALL: WeakSet[Renewed] = WeakSet()


def renew_in_children(each: Renewed) -> None:
    """Call `renew` in each child of a fork, as long as the object lives."""
    _ALL.add(each)


def _renew_all() -> None:
    for each in _ALL:
        each.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
