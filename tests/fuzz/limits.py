"""Bounds of a child process: seconds by a signal that ends it, memory by the kernel."""

from __future__ import annotations

import ctypes
import resource
import signal
from pathlib import Path

GIB = 1 << 30
# Address space that a process may take beyond what it has when it starts.
_SPACE = 4 * GIB
_PAGE = resource.getpagesize()
# How a process ends that was too slow.
TOO_SLOW = ("SIGPROF", "SIGALRM")
_WAITING = 15
_PERTURB = -6  # M_PERTURB of mallopt


def confine(space: int = _SPACE) -> None:
    """Bounds the address space; a core dump is never written."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * _PAGE + space
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def deadline(seconds: float) -> None:
    """The process ends after so many seconds of the processor, by SIGPROF, or if it waits for long,
    by SIGALRM; in native code too. 0: never.

    Other work on the machine slows a file down, and does not make it hang.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, _WAITING * seconds)


def peak() -> int:
    """The most bytes of memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def held() -> int:
    """The bytes of memory that the process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _PAGE


def perturb(byte: int) -> None:
    """Memory that malloc gives holds another value: what reads it unset gets other numbers."""
    ctypes.CDLL(None).mallopt(_PERTURB, byte)
