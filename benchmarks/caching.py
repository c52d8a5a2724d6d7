"""How long a model takes to be ready, from the cache and without it, beside LiteRT; and the floor.

    python benchmarks/caching.py [MODEL...] [--rounds 5] [--json FILE]

Without models: all that both run. A load is `Interpreter(...)` and `allocate_tensors()` on one
thread, and to free the interpreter; the runtimes take turns, and the fastest turn of each counts.
The bars are geometric means of the ratios: 2 from the cache, stretch 1.5, and 5 without it.

The floor is what ONNX Runtime takes to make the same sessions and nothing else, from the bytes and
the options that a load gives it: `floor` from the cache, `floor anew` with its optimisers.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from ai_edge_litert.interpreter import Interpreter as LiteRT

from tflite_ort import BridgeError, Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.plan.stored import StoredPlan
from tflite_ort.providers import session
from tflite_ort.providers.plain_session import PlainSession

MODELS = Path(
    os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)


def runnable() -> list[Path]:
    """The networks that LiteRT runs."""
    rows = json.loads((MODELS / "index.json").read_text())
    return [MODELS / row["file"] for row in rows if row["litert"] == "ok"]


def seconds(load: Callable[[], Any]) -> float:
    """Of one load."""
    started = time.perf_counter()
    load().allocate_tensors()
    return time.perf_counter() - started


def timed(make: Callable[[], Any]) -> float:
    """Seconds of one call."""
    started = time.perf_counter()
    make()
    return time.perf_counter() - started


def loaded(load: Callable[[], Any]) -> Any:
    """What `load` gives, allocated."""
    interpreter = load()
    interpreter.allocate_tensors()
    return interpreter


def sessions_of(load: Callable[[], Any]) -> Callable[[], list[PlainSession]]:
    """What makes the sessions of a load again, and nothing else."""
    given: list[tuple[Any, ...]] = []

    def noted(*arguments: Any) -> PlainSession:
        given.append(arguments)
        return PlainSession(*arguments)

    with patch.object(session, "PlainSession", noted):
        interpreter = loaded(load)

    def again() -> list[PlainSession]:
        assert interpreter  # the options point at its weights
        return [PlainSession(*arguments) for arguments in given]

    return again


def measure(path: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """The fastest of `rounds` loads of each kind, in milliseconds."""
    loads: dict[str, Callable[[], Any]] = {
        "litert": lambda: LiteRT(str(path), num_threads=1),
        "cached": lambda: Interpreter(path, num_threads=1, cache=folder),
        "anew": lambda: Interpreter(path, num_threads=1, cache=False),
    }
    for load in loads.values():
        loaded(load)
    whole = isinstance(loaded(loads["cached"])._subgraph(0).executor.plan, StoredPlan)
    turns: dict[str, list[float]] = {name: [] for name in loads}
    for _ in range(rounds):
        for name, load in loads.items():
            turns[name].append(1e3 * seconds(load))
    floors = {  # not before: interpreters that are kept make the loads of others slower
        "floor": sessions_of(loads["cached"]),
        "floor_anew": sessions_of(loads["anew"]),
    }
    turns |= {name: [] for name in floors}
    for _ in range(rounds):  # as the loads: after one of LiteRT's
        loaded(loads["litert"])
        for name, make in floors.items():
            turns[name].append(1e3 * timed(make))
    facts = {"model": path.name, "whole": whole, "has_sessions": bool(floors["floor"]())}
    return {**facts, **{name: min(times) for name, times in turns.items()}}


def mean_ratio(rows: list[dict[str, Any]], name: str) -> float:
    """The geometric mean of the ratios to LiteRT, of the networks that have sessions."""
    ratios = [
        row[name] / row["litert"] for row in rows if row["has_sessions"] or "floor" not in name
    ]
    return math.exp(statistics.fmean(map(math.log, ratios)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for path in arguments.models or runnable():
            try:
                row = measure(path, Path(folder), arguments.rounds)
            except BridgeError:
                continue
            rows.append(row)
            print(
                f"{row['model'][:50]:50} LiteRT {row['litert']:8.2f}  cached {row['cached']:8.2f}"
                f"  floor {row['floor']:8.2f}  anew {row['anew']:8.2f}"
                f"  floor {row['floor_anew']:8.2f} ms  {row['cached'] / row['litert']:6.2f}"
                f" {row['anew'] / row['litert']:6.2f}{'' if row['whole'] else '  with numpy'}"
            )
    means = {name: mean_ratio(rows, name) for name in ("cached", "floor", "anew", "floor_anew")}
    text = ", ".join(f"{name.replace('_', ' ')} {ratio:.2f}" for name, ratio in means.items())
    print(f"{len(rows)} networks, geometric mean of the ratios to LiteRT: {text}")
    if arguments.json:
        record = {**machine(), "rows": rows, **means}
        write_text(arguments.json, json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
