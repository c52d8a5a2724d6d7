"""What threads give: runs a second of LiteRT and of ours with 1, 2 and 4 threads, alone and beside
a second process or interpreter that does the same.

    python benchmarks/threads.py MODEL... [--seconds 1] [--rounds 3] [--threads 1 2 4]

Each figure is the median of the rounds, with the lowest and the highest; runtimes take turns.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tflite_ort
from tflite_ort.command.benchmark import litert_interpreter

RUNTIMES = ("litert", "ours")
# What runs at a time: processes, and interpreters in each, and whether these share a pool.
NEIGHBOURS = {
    "alone": (1, 1, False),
    "two processes": (2, 1, False),
    "two interpreters": (1, 2, False),
    "two interpreters, one pool": (1, 2, True),
}


def main() -> None:
    """The tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--seconds", type=float, default=1.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(rate(given.models[0], *json.loads(given.one), given.seconds)))
        return
    for model in given.models:
        print(f"{Path(model).stem}, runs a second")
        for threads in given.threads:
            for name, choice in NEIGHBOURS.items():
                if threads > 1 or name in ("alone", "two processes"):
                    print(f"  {threads} threads, {name:28}", row(model, threads, choice, given))


def row(model: str, threads: int, choice: tuple[int, int, bool], given: Any) -> str:
    """Runs a second of each runtime."""
    runtimes = RUNTIMES[1:] if choice[2] else RUNTIMES
    found: dict[str, list[float]] = {runtime: [] for runtime in runtimes}
    for _ in range(given.rounds):
        for runtime, rates in found.items():
            rates.append(started(model, runtime, threads, choice, given.seconds))
    return "  ".join(
        f"{runtime} {statistics.median(rates):7.0f} ({min(rates):.0f} to {max(rates):.0f})"
        for runtime, rates in found.items()
    )


def started(
    model: str, runtime: str, threads: int, choice: tuple[int, int, bool], seconds: float
) -> float:
    """Runs a second of all processes together."""
    processes, interpreters, pool = choice
    one = json.dumps([runtime, threads, interpreters, pool])
    command = [sys.executable, __file__, model, "--one", one, "--seconds", str(seconds)]
    running = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        for _ in range(processes)
    ]
    return sum(float(json.loads(each.communicate()[0])) for each in running)


def rate(
    model: str, runtime: str, threads: int, interpreters: int, pool: bool, seconds: float
) -> float:
    """Runs a second of `interpreters`, each in a Python thread of its own."""
    invokes = [made(model, runtime, threads, pool) for _ in range(interpreters)]
    counts = [0] * interpreters

    def run(number: int) -> None:
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            invokes[number]()
            counts[number] += 1

    workers = [threading.Thread(target=run, args=(number,)) for number in range(interpreters)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return sum(counts) / seconds


def made(model: str, runtime: str, threads: int, pool: bool) -> Callable[[], None]:
    """The `invoke` of an interpreter that ran five times."""
    interpreter: Any
    if runtime == "litert":
        interpreter = litert_interpreter(Path(model), threads)
    else:
        if pool:
            tflite_ort.share_threads(threads)
        interpreter = tflite_ort.Interpreter(model, num_threads=threads)
    interpreter.allocate_tensors()
    for _ in range(5):
        interpreter.invoke()
    invoke: Callable[[], None] = interpreter.invoke
    return invoke


if __name__ == "__main__":
    main()
