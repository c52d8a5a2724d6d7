"""Where the time of a load goes: each phase over the whole of LiteRT's load.

    python benchmarks/load_phases.py [MODEL...] [--rounds 5]

Without models: the networks of `benchmarks/caching.py`. A load is `Interpreter(...)` and
`allocate_tensors()` on one thread, and to free the interpreter, without the cache and from it. A
phase is the time in its functions without that in functions of other phases; `other` is what no
phase has. Of the fastest of the rounds it prints the mean share of each phase over the networks,
the same as a part of the geometric mean of the ratios to LiteRT's whole load, and the median of its
microseconds.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from inspect import isgenerator
from operator import itemgetter
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ai_edge_litert.interpreter import Interpreter as LiteRT
from caching import loaded, runnable, seconds

from tflite_ort import BridgeError, Interpreter

# By phase, its functions: the module that calls them, and their name there.
PHASES: Mapping[str, tuple[str, ...]] = {
    "open the file": ("interpreter.loading:opened_file",),
    "find in the cache": (
        "interpreter.loading:chosen_folder",
        "cache.plans:plan_cache",
        "cache.plans.PlanCache:find",
        "cache.plans.PlanCache:face",
        "cache.plans.StoredEntry:graph",
    ),
    "read the tables": ("schema.file.read:read_table",),
    "check the tables": ("schema.file.read:problems",),
    "versions, resolver": (
        "model.missing_operators:check_versions",
        "model.missing_operators:check_operators",
        "interpreter.loading:_resolver",
        "custom.kernels:BoundResolver",
    ),
    "shapes, constants": ("interpreter.executor.SubgraphExecutor:_specialize",),
    "partitions, memory": (
        "plan.build:assign",
        "plan.build:partitions",
        "plan.build:allocated",
        "plan.build:session_step",
        "plan.stored:session_run_of",
    ),
    "translation": ("plan.assignment:lower", "plan.build:lower"),
    "rewriting the graph": (
        "plan.session_step:model_session",
        "plan.session_step:take_wholes",
        "plan.session_step:_without_passed",
    ),
    "ONNX as bytes": ("providers.graph_session:serialized",),
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
                made = function(*values, **named)
                return list(made) if isgenerator(made) else made
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


def split(load: Callable[[], Any]) -> dict[str, float]:
    """The phases of a load, in seconds."""
    with timers() as found:
        whole = seconds(load)
    rest = whole - sum(found.seconds.values())
    return {**found.seconds, "other": rest, "all": whole}


def measure(path: Path, folder: Path, rounds: int) -> dict[str, dict[str, float]]:
    """By kind of load, the phases of the fastest; the kinds take turns."""
    loads: dict[str, Callable[[], Any]] = {
        "litert": lambda: LiteRT(str(path), num_threads=1),
        "anew": lambda: Interpreter(path, num_threads=1, cache=False),
        "cached": lambda: Interpreter(path, num_threads=1, cache=folder),
    }
    for load in loads.values():
        loaded(load)
    turns = [{name: split(load) for name, load in loads.items()} for _ in range(rounds)]
    return {name: min((turn[name] for turn in turns), key=itemgetter("all")) for name in loads}


def summary(kind: str, rows: Sequence[dict[str, dict[str, float]]]) -> Iterator[str]:
    """The lines of one kind of load."""
    ratio = statistics.geometric_mean(row[kind]["all"] / row["litert"]["all"] for row in rows)
    yield f"{kind}: {len(rows)} networks, {ratio:.2f} times LiteRT's load (geometric mean)"
    for phase in (*PHASES, "other"):
        taken = [row[kind].get(phase, 0.0) for row in rows]
        parts = [each / row[kind]["all"] for each, row in zip(taken, rows, strict=True)]
        share, median = statistics.fmean(parts), 1e6 * statistics.median(taken)
        if share:
            yield f"  {phase:20} {share:6.1%}  {share * ratio:6.2f} times  {median:7.0f} us"


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
        print("\n".join(summary(kind, rows)))


if __name__ == "__main__":
    main()
