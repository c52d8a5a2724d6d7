"""Load time and memory of networks against LiteRT: a new process for each network and runtime.

    python benchmarks/startup.py [FOLDER...] [--limit BYTES] [--match TEXT] [--json FILE]

A process imports its runtime, loads the network, runs it once over zeros and notes its peak; then
it loads the network again and again, up to 5 times or 0.3 s. Load times are the medians of these
loads. `session` is the part of our load in which ONNX Runtime makes its sessions, over LiteRT's
load: the floor. `whole` is the peak of the process without what importing onnxruntime takes;
`above` is what it took above all imports.

The bars: 5 times LiteRT's load time as a geometric mean, and 1.5 times its memory.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tflite_ort.base.files import write_text

SHARED = Path(os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared")
RUNTIMES = {"litert": "ai_edge_litert.interpreter", "ours": "tflite_ort"}
BARS = {"load": 5.0, "whole": 1.5}
_SECONDS = 120

_PROCESS = """
import json, sys, time
import numpy
def megabytes():
    for line in open("/proc/self/status"):
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
fixed = megabytes()
if {ours}:
    import onnxruntime
fixed = megabytes() - fixed
from {module} import Interpreter
sessions = []
if {ours}:
    from tflite_ort.providers import session as ours
    plain = ours.PlainSession
    def timed(*arguments):
        started = time.perf_counter()
        session = plain(*arguments)
        sessions[-1] += time.perf_counter() - started
        return session
    ours.PlainSession = timed
def load():
    sessions.append(0.0)
    started = time.perf_counter()
    interpreter = Interpreter({path!r}, num_threads=1)
    interpreter.allocate_tensors()
    return interpreter, time.perf_counter() - started
before = megabytes()
interpreter, first = load()
interpreter.invoke()
peak = megabytes()
del interpreter  # its session would be shared
times, started = [], time.perf_counter()
while len(times) < 5 and (not times or time.perf_counter() - started < 0.3):
    times.append(load()[1])
print(json.dumps(dict(first=first, load=sorted(times)[len(times) // 2],
                      session=sorted(sessions[1:])[len(times) // 2],
                      above=peak - before, whole=peak - fixed)))
"""


def measured(path: Path, runtime: str) -> dict[str, float] | None:
    """Seconds and megabytes of one network; None where the runtime cannot load or run it."""
    module = RUNTIMES[runtime]
    code = _PROCESS.format(module=module, path=str(path), ours=runtime == "ours")
    command = [sys.executable, "-W", "ignore", "-c", code]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def networks(folders: Sequence[Path], limit: int, match: str) -> Iterator[Path]:
    """The models to measure, in order."""
    for folder in folders:
        for path in sorted(folder.glob("*.tflite")):
            if path.stat().st_size <= limit and match in path.name:
                yield path


def compared(paths: Iterable[Path]) -> dict[str, dict[str, dict[str, float]]]:
    """By network, what each runtime takes; only of networks that both run."""
    rows = {}
    for path in paths:
        row = {runtime: measured(path, runtime) for runtime in RUNTIMES}
        if all(row.values()):
            rows[path.name] = {name: found for name, found in row.items() if found is not None}
    return rows


def ratios(rows: dict[str, dict[str, dict[str, float]]], what: str) -> dict[str, float]:
    """By network, ours over LiteRT's, `session` over its load; of memory, what is below 1 MB counts
    as 1 MB."""
    least = 1.0 if what in ("above", "whole") else 0.0
    against = "load" if what == "session" else what
    return {
        name: max(row["ours"][what], least) / max(row["litert"][against], least)
        for name, row in rows.items()
        if what != "session" or row["ours"][what]  # numpy kernels alone make none
    }


def summary(rows: dict[str, dict[str, dict[str, float]]]) -> Iterator[str]:
    """The lines of the table."""
    yield f"{len(rows)} networks that both run; ours / LiteRT"
    for what in ("first", "load", "session", "above", "whole"):
        found = ratios(rows, what)
        mean = math.exp(statistics.fmean(math.log(ratio) for ratio in found.values()))
        low, median, high = statistics.quantiles(found.values(), n=4)
        bar = f"  bar {BARS[what]}" if what in BARS else ""
        line = f"{what:7} geometric mean {mean:6.2f}   quartiles {low:.2f} {median:.2f} {high:.2f}"
        yield f"{line}   largest {max(found.values()):.2f}{bar}"
    for what in ("load", "whole"):
        yield f"largest of {what}:"
        worst = sorted(ratios(rows, what).items(), key=lambda item: -item[1])[:8]
        for name, ratio in worst:
            mine, theirs = rows[name]["ours"][what], rows[name]["litert"][what]
            yield f"  {ratio:7.2f}  {mine:10.4f} {theirs:10.4f}  {name}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    folders = [SHARED / "models", SHARED / "models2"]
    parser.add_argument("folders", type=Path, nargs="*", default=folders)
    parser.add_argument("--limit", type=int, default=1 << 26, help="bytes of the largest file")
    parser.add_argument("--match", default="", help="part of the name")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    found = list(networks(arguments.folders, arguments.limit, arguments.match))
    if not found:
        parser.error("no network fits --limit and --match")
    rows: dict[str, Any] = compared(found)
    print("\n".join(summary(rows)))
    if arguments.json:
        write_text(arguments.json, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
