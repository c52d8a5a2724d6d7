"""How fast a model runs, loads, and how much memory it takes, beside LiteRT where it is installed.

Both runtimes live in one process and take turns, a round each, so that what slows the machine
down slows both; the ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import gc
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import repeat, starmap
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from tflite_ort.base.optional import optional_module
from tflite_ort.command.advice import on_the_command_line
from tflite_ort.command.arrays import AnyInterpreter, set_inputs
from tflite_ort.command.budget_choices import budgets_of
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.model.resolvers import load_resolver
from tflite_ort.plan.profiling import OperatorTime
from tflite_ort.prediction.tensors import unique_names
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.providers.traits import FULL_PRECISION
from tflite_ort.schema import BridgeError

Array = npt.NDArray[Any]

_WARM_UP_SECONDS = 0.05
# Of a turn: both thread pools spin for a while after a run, and caches hold the other's weights.
_SETTLING = 0.1
_STATUS, _CLEAR_REFS = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class BenchmarkError(BridgeError, RuntimeError):
    """Something could not be measured or compared."""


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
        hybrid: of our runtime, as `Interpreter` takes it.
        resolver: ``module:name`` of an `OpResolver` for our runtime, as `load_resolver` takes it.
        external_roots: of our runtime, as `Interpreter` takes it.
        budgets: of our runtime, as `budgets_of` takes them.
        precision: of our runtime, as `Interpreter` takes it.
        limits: of integer inputs, pairs of tensor index and `index_limits`'s number.
    """

    rounds: int = 15
    min_time: float = 0.05
    seed: int = 0
    litert: bool = True
    check: bool = False
    memory: bool = True
    providers: ProviderChoices | None = None
    resolver: str | None = None
    hybrid: str = "auto"
    external_roots: Sequence[str] = ()
    budgets: Sequence[str] = ()
    precision: str = FULL_PRECISION
    limits: Sequence[tuple[int, int]] = ()


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


def litert_interpreter(
    model: Path, threads: int = 1, *, reference: bool = False
) -> AnyInterpreter | None:
    """LiteRT's interpreter, with its reference kernels if asked for; None if not installed.

    Raises:
        ValueError, RuntimeError: LiteRT cannot read the model.
    """
    litert = optional_module("ai_edge_litert.interpreter")
    if litert is None:
        return None
    kinds = litert.OpResolverType
    kind = kinds.BUILTIN_REF if reference else kinds.AUTO
    made = litert.Interpreter(str(model), num_threads=threads, experimental_op_resolver_type=kind)
    return cast(AnyInterpreter, made)


def _our_interpreter(model: Path, threads: int, settings: Settings) -> Interpreter:
    resolver = None if settings.resolver is None else load_resolver(settings.resolver)
    return Interpreter(
        model,
        num_threads=threads,
        providers=settings.providers,
        precision=settings.precision,
        resolver=resolver,
        hybrid=settings.hybrid,
        external_roots=settings.external_roots,
        budgets=budgets_of(settings.budgets),
    )


def _started(interpreter: AnyInterpreter, settings: Settings) -> list[Array]:
    """The outputs of a first invoke on random inputs, which stay set."""
    details, limits = interpreter.get_input_details(), dict(settings.limits)
    budgets = budgets_of(settings.budgets)
    set_inputs(interpreter, random_inputs(details, settings.seed, limits=limits, budgets=budgets))
    interpreter.invoke()
    return [
        np.asarray(interpreter.get_tensor(out["index"])) for out in interpreter.get_output_details()
    ]


def _limited(settings: Settings, interpreter: Interpreter) -> Settings:
    return replace(settings, limits=tuple(index_limits(interpreter._model).items()))


# Measuring ---------------------------------------------------------------------------------------


def profile(model: Path, threads: int, settings: Settings, runs: int) -> Sequence[OperatorTime]:
    """What each operator takes in `runs` invokes on random inputs, the longest first.

    Raises:
        BridgeError: the model cannot run here.
    """
    interpreter = _our_interpreter(model, threads, settings)
    interpreter.allocate_tensors()
    _started(interpreter, _limited(settings, interpreter))
    return interpreter.profile(runs)


def measure(model: Path, threads: int, settings: Settings) -> Result:
    """Time one model on `threads` threads.

    Raises:
        BridgeError: the model cannot run here; what LiteRT cannot run is in the result instead.
    """
    started = time.perf_counter()
    ours = _our_interpreter(model, threads, settings)
    ours.allocate_tensors()
    load_ms = (time.perf_counter() - started) * 1e3
    settings = _limited(settings, ours)
    outputs = _started(ours, settings)
    other = _Litert.of(model, threads, settings)
    invokes = [ours.invoke, *([other.interpreter.invoke] if other.interpreter else [])]
    seconds = interleaved(invokes, settings.rounds, settings.min_time)
    times = ours.load_times
    result = Result(
        model.name,
        threads,
        Timing(_median_ms(seconds[0]), load_ms, _peak("tflite-ort", model, threads, settings)),
        times.read * 1e3,
        times.translate * 1e3,
        times.session * 1e3,
        litert_error=other.error,
    )
    if not other.interpreter:
        return result
    names = unique_names(ours.get_output_details())
    pairs = zip(names, outputs, other.outputs, strict=True) if settings.check else ()
    return replace(
        result,
        litert=Timing(
            _median_ms(seconds[1]), other.load_ms, _peak("litert", model, threads, settings)
        ),
        ratio=statistics.median(b / a for a, b in zip(*seconds, strict=True)),
        differences=tuple(starmap(difference, pairs)),
    )


@dataclass(frozen=True, slots=True)
class _Litert:
    """LiteRT after its first invoke; no interpreter, and maybe a reason, where it is absent."""

    interpreter: AnyInterpreter | None = None
    load_ms: float = 0.0
    outputs: Sequence[Array] = ()
    error: str = ""

    @classmethod
    def of(cls, model: Path, threads: int, settings: Settings) -> _Litert:
        if not settings.litert:
            return cls()
        try:
            with _without_log():
                started = time.perf_counter()
                interpreter = litert_interpreter(model, threads)
                if interpreter is None:
                    return cls()
                interpreter.allocate_tensors()
                load_ms = (time.perf_counter() - started) * 1e3
                return cls(interpreter, load_ms, _started(interpreter, settings))
        except (ValueError, RuntimeError) as error:
            return cls(error=on_the_command_line(str(error)).strip().partition("\n")[0])


@contextmanager
def _without_log() -> Iterator[None]:
    """Keeps what LiteRT logs off standard error; what it refuses, it raises too."""
    sys.stderr.flush()
    kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


def _median_ms(seconds: Sequence[float]) -> float:
    return statistics.median(seconds) * 1e3


def interleaved(
    invokes: Sequence[Callable[[], None]], rounds: int, min_time: float
) -> list[list[float]]:
    """Seconds per call of each function, one number a round; they take turns within a round."""
    calls = [_warm_up(invoke, _WARM_UP_SECONDS) for invoke in invokes]
    counts = [max(1, round(min_time / seconds)) for seconds in calls]
    turns = list(zip(range(len(invokes)), invokes, counts, strict=True))
    seconds: list[list[float]] = [[] for _ in invokes]
    with _without_gc():
        for _ in range(rounds):
            for position, invoke, count in turns:
                _warm_up(invoke, _SETTLING * min_time)
                seconds[position].append(_seconds_per_call(invoke, count))
            turns.reverse()
    return seconds


def _seconds_per_call(invoke: Callable[[], None], count: int) -> float:
    started = time.perf_counter_ns()
    for _ in repeat(None, count):
        invoke()
    return (time.perf_counter_ns() - started) / count / 1e9


def _warm_up(invoke: Callable[[], None], seconds: float) -> float:
    """Call for so long, once at least; the shortest call's seconds."""
    until = time.perf_counter() + seconds
    shortest = _seconds_per_call(invoke, 1)
    while time.perf_counter() < until:
        shortest = min(shortest, _seconds_per_call(invoke, 1))
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


# Memory ------------------------------------------------------------------------------------------


def peak_memory(runtime: str, model: Path, threads: int, settings: Settings) -> float | None:
    """MiB that resident memory grows by at its highest, for loading and one invoke.

    Measured in a fresh process, after its imports, from Linux's VmHWM; None on other systems.
    """
    if not _CLEAR_REFS.exists():
        return None
    code = (
        "import sys; from tflite_ort.command import benchmark; benchmark.print_peak(*sys.argv[1:])"
    )
    arguments = [runtime, str(model), str(threads), json.dumps(asdict(settings))]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    if done.returncode:
        reason = done.stderr.strip().rpartition("\n")[2]
        raise BenchmarkError(f"measuring the memory of {runtime} failed: {reason}")
    return float(done.stdout)


def print_peak(runtime: str, model: str, threads: str, options: str) -> None:
    """What the process of `peak_memory` does; `options` are its settings in JSON."""
    settings = Settings(**json.loads(options))
    optional_module("ai_edge_litert.interpreter")
    if settings.resolver:
        load_resolver(settings.resolver)
    with suppress(OSError):  # some containers forbid it; imports then may count in part
        _CLEAR_REFS.write_text("5")  # the highest mark starts again from here
    before = _status_mib("VmRSS")
    interpreter: AnyInterpreter | None
    if runtime == "litert":
        interpreter = litert_interpreter(Path(model), int(threads))
    else:
        interpreter = _our_interpreter(Path(model), int(threads), settings)
    if interpreter is not None:
        _started(interpreter, settings)
    print(_status_mib("VmHWM") - before)


def _peak(runtime: str, model: Path, threads: int, settings: Settings) -> float | None:
    return peak_memory(runtime, model, threads, settings) if settings.memory else None


def _status_mib(field: str) -> float:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    raise OSError(f"{_STATUS} has no {field}")


# Comparing ---------------------------------------------------------------------------------------


def difference(name: str, ours: Array, theirs: Array) -> Difference:
    """How far `ours` is from `theirs`, two arrays of one shape and dtype."""
    if ours.shape != theirs.shape:
        raise BenchmarkError(f"{name}: shape {ours.shape} here, {theirs.shape} in LiteRT")
    if ours.dtype.kind in "OSU" or not ours.size:
        exact = float(np.mean(ours == theirs)) if ours.size else 1.0
        return Difference(name, None, None, None, exact)
    if ours.dtype.kind in "iub":
        steps = np.abs(ours.astype(np.int64) - theirs.astype(np.int64))
        return Difference(name, None, int(steps.max()), float(steps.mean()), _share(steps == 0))
    wide = np.complex128 if ours.dtype.kind == "c" else np.float64
    ours, theirs = ours.astype(wide), theirs.astype(wide)
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    with np.errstate(invalid="ignore"):
        largest = float(np.where(same, 0, np.abs(ours - theirs)).max())
    magnitude = float(np.abs(theirs[np.isfinite(theirs)]).max(initial=0.0)) or 1.0
    return Difference(name, largest / magnitude, None, None, _share(same))


def _share(condition: npt.NDArray[np.bool_]) -> float:
    return float(np.mean(condition))


# Recording ---------------------------------------------------------------------------------------


def as_record(results: Sequence[Result]) -> dict[str, Any]:
    """Results with the machine and the versions they were measured on, for JSON."""
    return {**machine(), "results": [asdict(result) for result in results]}


def machine() -> dict[str, Any]:
    """The processor, how busy it is with other work too, and the versions of what is measured."""
    packages = ("tflite-ort", "onnxruntime", "numpy", "ai-edge-litert")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "packages": {name: version for name in packages if (version := _version(name))},
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
