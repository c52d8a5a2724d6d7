"""How long a model takes to be ready: `Interpreter(...)` and `allocate_tensors()`, in seconds.

    python benchmarks/load_time.py [MODEL] [--repeats N] [--json FILE]

The bars, for MobileNet V2 in uint8: 0.4 s in all, of which 0.15 s translation.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from dataclasses import asdict
from pathlib import Path

from tflite_ort import Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine

MODELS = Path(
    os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)
MOBILENET = "tflite-support__mobilenet_v2_1.0_224_quant.tflite"
BARS = {"total": 0.4, "translate": 0.15}


def load(model: Path) -> dict[str, float]:
    """Seconds of one load and of its parts."""
    started = time.perf_counter()
    interpreter = Interpreter(model)
    interpreter.allocate_tensors()
    return {"total": time.perf_counter() - started, **asdict(interpreter.load_times)}


def measure(model: Path, repeats: int) -> dict[str, dict[str, float]]:
    """The first load of the process, and the median of those after it."""
    first, *rest = [load(model) for _ in range(repeats + 1)]
    return {
        "first": first,
        "median": {name: statistics.median(one[name] for one in rest) for name in first},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", default=MODELS / MOBILENET)
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    result = measure(arguments.model, arguments.repeats)
    print(f"{'seconds':10} {'first':>8} {'median':>8}      bar")
    for name, seconds in result["median"].items():
        bar = BARS.get(name, "")
        print(f"{name:10} {result['first'][name]:8.4f} {seconds:8.4f} {bar:>8}")
    if arguments.json:
        record = {**machine(), "model": arguments.model.name, "result": result}
        write_text(arguments.json, json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
