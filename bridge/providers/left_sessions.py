"""Native sessions that a fork left without their threads."""

from __future__ import annotations

import ctypes
from typing import Any


def abandon(session: Any) -> None:
    """Never free a native session: that would wait for the end of its threads, which have none in
    the child of a fork. Its memory is the parent's too, and goes with the process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(session))
