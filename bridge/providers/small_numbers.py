"""Numbers below the smallest normal float as zero, while a session runs.

A mask takes scores away from a softmax: their powers are almost zero. Where such a result is no
normal float, processors of x86-64 take a hundred cycles, and a masked attention two to five times
as long. ONNX Runtime has an option for its own threads. For a thread that calls it this is to be
set around each run, since other code on that thread has its numbers as they are.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

# For the threads that a session makes.
CONFIG: Mapping[str, str] = {"session.set_denormal_as_zero": "1"}

# Small results and small operands are zero: bits of the control register of SSE.
_SMALL_AS_ZERO = 1 << 15 | 1 << 6
_LIBRARY = "libm.so.6"


class _Environment(ctypes.Structure):
    """What glibc's functions call fenv_t on x86-64."""

    _fields_ = (("x87", ctypes.c_uint32 * 7), ("control", ctypes.c_uint32))


def small_as_zero(run: Callable[..., Any]) -> Callable[..., Any]:
    """`run`, during which small numbers are zero; the calling thread has its own setting before
    and after it. The same function where this is not known of the machine."""
    functions = _functions()
    if functions is None:
        return run
    get, put = functions
    changed = _Environment()
    get(ctypes.addressof(changed))
    changed.control |= _SMALL_AS_ZERO
    spare: list[_Environment] = []  # to make one takes as long as to get it

    def run_so(*arguments: Any) -> Any:
        try:
            own = spare.pop()
        except IndexError:  # the first run, or several threads run it
            own = _Environment()
        place = ctypes.addressof(own)
        get(place)
        try:
            put(ctypes.addressof(changed))
            return run(*arguments)
        finally:
            put(place)
            spare.append(own)

    return run_so


def unchanged(make: Callable[[], Any]) -> Any:
    """What `make` gives; the calling thread has the setting that it had: ONNX Runtime's first
    session in a process sets that of its maker too."""
    functions = _functions()
    if functions is None:
        return make()
    get, put = functions
    own = _Environment()
    place = ctypes.addressof(own)
    get(place)
    try:
        return make()
    finally:
        put(place)


@cache
def _functions() -> tuple[Callable[[int], int], Callable[[int], int]] | None:
    """glibc's functions that tell and set how a thread computes floats."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    try:
        library = ctypes.PyDLL(_LIBRARY)  # it does not let other threads go on for two instructions
        get, put = library.fegetenv, library.fesetenv
    except (OSError, AttributeError):  # another C library
        return None
    for function in (get, put):
        function.argtypes = (ctypes.c_void_p,)
    return get, put
