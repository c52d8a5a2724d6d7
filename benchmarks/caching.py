"""How long a model takes to be ready from the cache, beside LiteRT and beside a load without it.

    python benchmarks/caching.py [MODEL...] [--rounds 5] [--json FILE]

Without models: all that both run. A load is `Interpreter(...)` and `allocate_tensors()` on one
thread; the runtimes take turns, and the fastest turn of each counts. The bar is the geometric mean
of the ratios: 2, stretch 1.5.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ai_edge_litert.interpreter import Interpreter as LiteRT

from tflite_ort import BridgeError, Interpreter
from tflite_ort.command.benchmark import machine
from tflite_ort.files import write_text
from tflite_ort.plan.stored import StoredPlan

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


def loaded(load: Callable[[], Any]) -> Any:
    """What `load` gives, allocated."""
    interpreter = load()
    interpreter.allocate_tensors()
    return interpreter


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
    for number in range(rounds):
        for name, load in loads.items():
            if name != "anew" or number < 2:
                turns[name].append(1e3 * seconds(load))
    return {"model": path.name, "whole": whole, **{name: min(t) for name, t in turns.items()}}


def mean_ratio(rows: list[dict[str, Any]], name: str) -> float:
    """The geometric mean of the ratios to LiteRT."""
    return math.exp(sum(math.log(row[name] / row["litert"]) for row in rows) / len(rows))


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
                f"  anew {row['anew']:8.2f} ms  {row['cached'] / row['litert']:6.2f}"
                f"{'' if row['whole'] else '  with numpy'}"
            )
    cached, anew = mean_ratio(rows, "cached"), mean_ratio(rows, "anew")
    print(f"{len(rows)} networks, geometric mean: cached {cached:.2f}, anew {anew:.2f}")
    if arguments.json:
        record = {**machine(), "rows": rows, "cached": cached, "anew": anew}
        write_text(arguments.json, json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
