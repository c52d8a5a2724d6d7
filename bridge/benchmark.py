"""How fast a model runs, loads, and how much memory it takes, beside LiteRT where it is installed.

Both runtimes live in one process and take turns, a round each, so that what slows the machine
down slows both; the ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import gc
import importlib.metadata
import itertools
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tflite_ort.arrays import Runner, random_inputs, set_inputs
from tflite_ort.interpreter import Interpreter
from tflite_ort.optional import optional_module
from tflite_ort.schema import BridgeError
from tflite_ort.session import Provider

Array = npt.NDArray[Any]

_WARM_UP_SECONDS = 0.05
_MIB = 1 << 20
_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True, slots=True)
class Settings:
    """How to measure.

    Args:
        rounds: turns of each runtime.
        min_time: seconds one turn takes at least.
        seed: of the random inputs.
        litert: measure LiteRT too, where it is installed and runs the model.
        check: compare the outputs.
        memory: measure peak memory, each runtime in a process of its own.
    """

    rounds: int = 15
    min_time: float = 0.05
    seed: int = 0
    litert: bool = True
    check: bool = False
    memory: bool = True
    providers: Sequence[Provider] | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """How far one output is from LiteRT's.

    Args:
        relative: floats, largest difference over the largest magnitude; None for integers.
        max_steps: integers, largest difference in stored values (quanta); None for floats.
        mean_steps: the mean of these differences.
        exact: the share of values that are the same.
    """

    name: str
    relative: float | None
    max_steps: int | None
    mean_steps: float | None
    exact: float


@dataclass(frozen=True, slots=True)
class Timing:
    """One runtime and one model.

    Args:
        invoke_ms: median over the rounds of a round's mean time per invoke.
        load_ms: making the interpreter and allocating its tensors.
        peak_mib: growth of resident memory while loading and invoking once, at its highest.
    """

    invoke_ms: float
    load_ms: float
    peak_mib: float | None


@dataclass(frozen=True, slots=True)
class Result:
    """What one model gives on a number of threads; `ratio` is LiteRT's time over ours."""

    model: str
    threads: int
    ours: Timing
    read_ms: float
    translate_ms: float
    session_ms: float
    litert: Timing | None = None
    ratio: float | None = None
    differences: tuple[Difference, ...] = ()
    litert_error: str = ""


# Runtimes ----------------------------------------------------------------------------------------


def litert_interpreter(model: Path, threads: int = 1, *, reference: bool = False) -> Runner | None:
    """LiteRT's interpreter, with its reference kernels if asked for; None if not installed.

    Raises:
        ValueError, RuntimeError: LiteRT cannot read the model or lacks an operator.
    """
    litert = optional_module("ai_edge_litert.interpreter")
    if litert is None:
        return None
    resolvers = litert.OpResolverType
    resolver = resolvers.BUILTIN_REF if reference else resolvers.AUTO
    return cast(
        Runner,
        litert.Interpreter(
            str(model), num_threads=threads, experimental_op_resolver_type=resolver
        ),
    )


def _load(make: Callable[[], Runner]) -> tuple[Runner, float]:
    """A runner that is ready, and the milliseconds it took."""
    started = time.perf_counter()
    runner = make()
    runner.allocate_tensors()
    return runner, (time.perf_counter() - started) * 1e3


def _load_litert(model: Path, threads: int) -> tuple[Runner | None, float, str]:
    """As `_load`, for LiteRT; without a runner but with the reason where it cannot run."""
    try:
        litert = litert_interpreter(model, threads)
        if litert is None:
            return None, 0.0, ""
        return *_load(lambda: litert), ""
    except (ValueError, RuntimeError) as error:
        return None, 0.0, str(error).partition("\n")[0]


# Measuring ---------------------------------------------------------------------------------------


def measure(
    model: Path, threads: int, settings: Settings, *, peaks: Mapping[str, float | None]
) -> Result:
    """Time one model on `threads` threads.

    Args:
        peaks: peak memory by runtime name, measured by `peak_memory`.

    Raises:
        BridgeError: the model cannot run here; LiteRT's failures are in the result instead.
    """
    interpreter = Interpreter(model, num_threads=threads, providers=settings.providers)
    litert, litert_load, reason = None, 0.0, ""
    ours, load = _load(
        lambda: Interpreter(model, num_threads=threads, providers=settings.providers)
    )
    return Result(str(model), threads, Timing(0, load, None), 0, 0, 0)


def interleaved(
    invokes: Sequence[Callable[[], None]], rounds: int, min_time: float
) -> list[list[float]]:
    """Seconds per call of each function, one number a round; they take turns within a round."""
    counts = [max(1, round(min_time / _warm_up(invoke))) for invoke in invokes]
    turns = list(zip(range(len(invokes)), invokes, counts, strict=True))
    seconds: list[list[float]] = [[] for _ in invokes]
    with _without_gc():
        for _ in range(rounds):
            for position, invoke, count in turns:
                seconds[position].append(_seconds_per_call(invoke, count))
            turns.reverse()  # whoever comes second finds the caches of the first
    return seconds


def _seconds_per_call(invoke: Callable[[], None], count: int) -> float:
    started = time.perf_counter_ns()
    for _ in itertools.repeat(None, count):
        invoke()
    return (time.perf_counter_ns() - started) / count / 1e9


def _warm_up(invoke: Callable[[], None]) -> float:
    """Call until it is warm, twice at least; the shortest call's seconds."""
    until, shortest = time.perf_counter() + _WARM_UP_SECONDS, float("inf")
    for _ in itertools.count():
        shortest = min(shortest, _seconds_per_call(invoke, 1))
        if time.perf_counter() > until:
            break
    return max(shortest, 1e-9)


@contextmanager
def _without_gc() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
