"""Where the time of a load goes: each phase over the whole of LiteRT's load.

    python benchmarks/load_phases.py [MODEL...] [--rounds 5]

Without models: the networks of `benchmarks/caching.py`. A load is `Interpreter(...)` and
`allocate_tensors()` on one thread, without the cache and from it. A phase is the time in its
functions without that in functions of other phases; `other` is what no phase has. Figures are of
the fastest of the rounds: the mean over the networks of a phase's time over LiteRT's load, and the
median of its microseconds. The sum of the ratios is an arithmetic mean, larger than the geometric
mean that has the bar.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ai_edge_litert.interpreter import Interpreter as LiteRT
from caching import loaded, runnable, seconds

from tflite_ort import BridgeError, Interpreter

# By phase, its functions: the module that calls them, and their name there.
PHASES: Mapping[str, tuple[str, ...]] = {
    "open the file": ("loading:opened_file",),
    "find in the cache": (
        "loading:chosen_folder",
        "cache.keys:settings_of",
        "cache.plans:plan_cache",
        "cache.plans.PlanCache:find",
        "cache.plans.PlanCache:face",
        "cache.plans.StoredEntry:graph",
    ),
    "read the tables": ("schema.file.read:read_table",),
    "check the tables": ("schema.file.read:problems",),
    "versions, resolver": (
        "missing_operators:check_versions",
        "missing_operators:check_operators",
        "loading:_resolver",
        "custom.kernels:BoundResolver",
    ),
    "shapes, constants": ("executor.SubgraphExecutor:_specialize",),
    "partitions, memory": (
        "plan.build:assign",
        "plan.build:partitions",
        "plan.build:allocated",
        "plan.build:session_step",
        "plan.stored:session_run_of",
    ),
    "translation": ("plan.assignment:lower", "plan.build:lower"),
    "ONNX as bytes": ("providers.model_session:serialized",),
    "session": ("providers.session:PlainSession",),
    "binding": ("plan.session_step:bound_run", "plan.stored:bound_run"),
}


class Timers:
    """The seconds of each phase without those of the phases that it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._inner = [0.0]

    def timed(self, phase: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, whose time is noted."""

        def call(*values: Any, **named: Any) -> Any:
            self._inner.append(0.0)
            started = time.perf_counter()
            try:
                return function(*values, **named)
            finally:
                took = time.perf_counter() - started
                own = took - self._inner.pop()
                self._inner[-1] += took
                self.seconds[phase] = self.seconds.get(phase, 0.0) + own

        return call


@contextmanager
def timers() -> Iterator[Timers]:
    """Note the phases of all loads in the block."""
    found = Timers()
    with ExitStack() as patches:
        for phase, functions in PHASES.items():
            for place in functions:
                module, _, name = place.partition(":")
                owner = _owner(f"tflite_ort.{module}")
                patches.enter_context(
                    patch.object(owner, name, found.timed(phase, getattr(owner, name)))
                )
        yield found


def _owner(name: str) -> Any:
    """A module, or a class of one."""
    module, _, last = name.rpartition(".")
    if last[:1].isupper():
        return getattr(importlib.import_module(module), last)
    return importlib.import_module(name)


def split(load: Callable[[], Any], rounds: int) -> dict[str, float]:
    """The phases of the fastest of `rounds` loads, in seconds."""
    best: dict[str, float] = {}
    for _ in range(rounds):
        with timers() as found:
            whole = seconds(load)
        rest = whole - sum(found.seconds.values())
        if not best or whole < best["all"]:
            best = {**found.seconds, "other": rest, "all": whole}
    return best


def measure(path: Path, folder: Path, rounds: int) -> dict[str, dict[str, float]]:
    """By kind of load, its phases."""
    loads: dict[str, Callable[[], Any]] = {
        "anew": lambda: Interpreter(path, num_threads=1, cache=False),
        "cached": lambda: Interpreter(path, num_threads=1, cache=folder),
    }
    for load in loads.values():
        loaded(load)
    loaded(lambda: LiteRT(str(path), num_threads=1))
    theirs = min(seconds(lambda: LiteRT(str(path), num_threads=1)) for _ in range(rounds))
    return {"litert": {"all": theirs}} | {name: split(load, rounds) for name, load in loads.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.models or runnable():
            try:
                rows.append(measure(path, Path(folder), arguments.rounds))
            except BridgeError:
                continue
    for kind in ("anew", "cached"):
        print(f"{kind}: {len(rows)} networks")
        for phase in (*PHASES, "other", "all"):
            taken = [row[kind].get(phase, 0.0) for row in rows]
            ratios = [each / row["litert"]["all"] for each, row in zip(taken, rows, strict=True)]
            if any(taken):
                text = f"{statistics.fmean(ratios):6.2f} times LiteRT's load"
                print(f"  {phase:20} {text}  {1e6 * statistics.median(taken):7.0f} us")


if __name__ == "__main__":
    main()
