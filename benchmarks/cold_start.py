"""How long a new process takes to import, load and run a model once; and the floor of that.

    python benchmarks/cold_start.py [MODEL] [--rounds 9] [--repeats 5] [--json FILE]

Four kinds of processes take turns: LiteRT, ours, ours from a cache that is there, and the floor:
numpy, ONNX Runtime's library without its Python classes, a session of the file that the cache has,
and one run. A repeat takes the medians of its rounds; the table has the median and the range of the
repeats. The bars, as ratios to LiteRT: 2.5, from the cache 1.4.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from tflite_ort import Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.providers.stored_graph import PACKED, READ_AS

MODELS = Path(
    os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)
MOBILENET = MODELS / "tflite-support__mobilenet_v2_1.0_224_quant.tflite"
BARS = {"ours": 2.5, "cached": 1.4}

_LOAD = """
import time; started = time.perf_counter()
from {module} import Interpreter
i = Interpreter({path!r}, num_threads=1{more}); i.allocate_tensors(); i.invoke()
print(time.perf_counter() - started)
"""
_FLOOR = """
import time; started = time.perf_counter()
import numpy as np
from onnxruntime.capi import onnxruntime_pybind11_state as ort
options = ort.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 4
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
for key, value in {config!r}.items():
    options.add_session_config_entry(key, value)
session = ort.InferenceSession(options, {path!r}, True, False)
session.initialize_session(["CPUExecutionProvider"], [{{}}], set())
types = {{"tensor(uint8)": np.uint8, "tensor(int8)": np.int8, "tensor(float)": np.float32}}
feeds = {{x.name: np.zeros(x.shape, types[x.type]) for x in session.inputs_meta}}
session.run([x.name for x in session.outputs_meta], feeds, ort.RunOptions())
print(time.perf_counter() - started)
"""


def programs(model: Path, folder: str) -> dict[str, str]:
    """By kind, what a process runs."""
    Interpreter(model, num_threads=1, cache=folder).allocate_tensors()
    stored = max(
        (each for each in Path(folder).iterdir() if each.suffix != ".json"),
        key=lambda each: each.stat().st_size,
    )
    path, ours = str(model), "tflite_ort"
    return {
        "litert": _LOAD.format(module="ai_edge_litert.interpreter", path=path, more=""),
        "ours": _LOAD.format(module=ours, path=path, more=", cache=False"),
        "cached": _LOAD.format(module=ours, path=path, more=f", cache={folder!r}"),
        "floor": _FLOOR.format(path=str(stored), config=dict(READ_AS[PACKED])),
    }


def seconds(program: str) -> float:
    """What a new process says that it took."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


def repeat(kinds: dict[str, str], rounds: int) -> dict[str, float]:
    """The median of each kind."""
    rows = [{kind: seconds(program) for kind, program in kinds.items()} for _ in range(rounds)]
    return {kind: statistics.median(row[kind] for row in rows) for kind in kinds}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", default=MOBILENET)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds = programs(arguments.model, folder)
        repeat(kinds, 1)
        rows = [repeat(kinds, arguments.rounds) for _ in range(arguments.repeats)]
    for kind in kinds:
        ratios = [row[kind] / row["litert"] for row in rows]
        taken = statistics.median(row[kind] for row in rows)
        bar = f"  bar {BARS[kind]}" if kind in BARS else ""
        print(
            f"{kind:8} {taken:.3f} s  {statistics.median(ratios):.2f} "
            f"({min(ratios):.2f} to {max(ratios):.2f}) times LiteRT{bar}"
        )
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
