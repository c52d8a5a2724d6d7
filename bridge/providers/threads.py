"""The threads of ONNX Runtime's sessions: of each session its own, or of all one pool."""

from __future__ import annotations

import onnxruntime

from tflite_ort.base.records import record
from tflite_ort.schema import DelegateError

# How long a thread without work spins before it sleeps. ONNX Runtime's own time is about a
# millisecond. 50 microseconds bridge the gaps between operators and leave the core to others
# between runs: MobileNet V2 with two threads takes as long, and two such processes on two cores
# make 450 runs a second in place of 290 (docs/tuning.md). 20 make 490, and selfie segmentation
# alone then takes 5 % longer. Releases that do not know the entry pass over it.
_SPIN = {"session.intra_op.spin_duration_us": "50"}


@record(frozen=False)
class _Pool:
    """The pool of the process; 0 is none."""

    size: int = 0


_pool = _Pool()


def share_threads(num_threads: int) -> None:
    """From now on run all interpreters of this process on one pool of threads.

    Sessions then have no threads of their own, and `num_threads` of an interpreter has no effect.
    Interpreters that ran before keep their threads. ONNX Runtime has one such pool in a process: it
    cannot be given back, and other code that makes ONNX Runtime sessions has to set
    ``use_per_session_threads = False``.

    Args:
        num_threads: of the pool, with the calling thread; 1 or more.

    Raises:
        ValueError: the number is below 1, or there is a pool of another number already.
        DelegateError: ONNX Runtime could not make the pool.

    >>> tflite_ort.share_threads(4)                                   # doctest: +SKIP
    """
    if isinstance(num_threads, bool) or not isinstance(num_threads, int) or num_threads < 1:
        raise ValueError(f"num_threads is {num_threads!r}, not an integer above 0")
    if _pool.size not in (0, num_threads):
        raise ValueError(f"the interpreters share a pool of {_pool.size} threads already")
    if not _pool.size:
        try:
            onnxruntime.set_global_thread_pool_sizes(num_threads, 1)
        except (RuntimeError, onnxruntime.capi.onnxruntime_pybind11_state.Fail) as error:
            text = " ".join(str(error).split())
            raise DelegateError(f"ONNX Runtime could not make a pool of threads: {text}") from error
        _pool.size = num_threads


def shares_threads() -> bool:
    """Whether sessions use the pool of the process."""
    return _pool.size > 0


def session_options(num_threads: int) -> onnxruntime.SessionOptions:
    """Those of a session with `num_threads` threads within an operator, unless there is a pool for
    all; 0 is ONNX Runtime's default."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # what it would log as an error is raised
    if shares_threads():
        options.use_per_session_threads = False
        return options
    options.intra_op_num_threads = num_threads
    for key, value in _SPIN.items() if num_threads != 1 else ():
        options.add_session_config_entry(key, value)
    return options
