"""How long networks of many operators take to be ready, in processor and wall-clock time.

    python benchmarks/many_operators.py [MODEL...] [--least 1000] [--repeats 7] [--json FILE]

Without models: those of the shared folders with at least so many operators in a subgraph that a
signature, or an interpreter without one, runs. A load is `Interpreter(...)` and the allocation of
that subgraph on one thread, in a process that has loaded the model before; median and range of the
repeats. The bar: 2,250 operators in 0.25 s.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tflite_ort import BridgeError, Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.schema import read_model

SHARED = Path(os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared")
BAR_SECONDS, BAR_OPERATORS = 0.25, 2250


def entries(path: Path) -> Iterator[tuple[str | None, int]]:
    """The signatures of a model, None for an interpreter without one, and their operators."""
    try:
        model = read_model(path)
    except BridgeError:
        return
    seen = {each.subgraph_index: each.signature_key for each in model.signature_defs}
    for subgraph, graph in enumerate(model.subgraphs):
        if subgraph == 0 or subgraph in seen:
            yield seen.get(subgraph), len(graph.operators)


def load(path: Path, signature: str | None) -> tuple[float, float]:
    """Seconds of one load: of the processor, and by the clock."""
    cpu, wall = time.process_time(), time.perf_counter()
    interpreter = Interpreter(path, num_threads=1, cache=False)
    if signature is None:
        interpreter.allocate_tensors()
    else:
        assert interpreter.get_signature_runner(signature).load_times
    return time.process_time() - cpu, time.perf_counter() - wall


def measure(path: Path, signature: str | None, operators: int, repeats: int) -> dict[str, Any]:
    load(path, signature)
    times = [load(path, signature) for _ in range(repeats)]
    cpu, wall = ([each[place] for each in times] for place in (0, 1))
    return {
        "model": path.name,
        "signature": signature or "",
        "operators": operators,
        "cpu": [statistics.median(cpu), min(cpu), max(cpu)],
        "wall": [statistics.median(wall), min(wall), max(wall)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--least", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    shared = (path for name in ("models", "models2") for path in (SHARED / name).glob("*.tflite"))
    rows = []
    for path in arguments.models or sorted(shared):
        for signature, count in entries(path):
            if count < arguments.least:
                continue
            row = measure(path, signature, count, arguments.repeats)
            rows.append(row)
            cpu, low, high = row["cpu"]
            scaled = cpu * BAR_OPERATORS / count
            print(
                f"{path.name[:44]:44} {row['signature'][:16]:16} {count:6} operators  "
                f"cpu {cpu:.3f} ({low:.3f} to {high:.3f}) s  wall {row['wall'][0]:.3f} s  "
                f"{1e6 * cpu / count:5.0f} µs each, {BAR_OPERATORS}: {scaled:.3f} s, "
                f"bar {BAR_SECONDS}"
            )
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
