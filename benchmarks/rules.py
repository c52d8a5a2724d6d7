"""What each rule of the table gains: in how many networks it fires, and the time without it.

    python -m benchmarks.rules [FOLDER...] [--rule NAME...] [--seconds 4] [--json FILE]

Without folders: the models beside the repository. A rule fires in a network if the session graphs
are others without it. Of each rule the networks in which it fires are timed, at most `--networks`
of them: an invoke without the rule over one with it, on one thread. Both are loaded in one process
and take turns; printed are the median of the turns' ratios and that of the shortest turns. The
same is done with the rule on both sides: ratios within the range of this null test say nothing.
Nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.session_graphs import FOLDERS, MODELS, session_digests
from tflite_ort import BridgeError, Interpreter
from tflite_ort.base import files
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.opmap.rules.rule import without
from tflite_ort.opmap.rules.table import RULES

_TURN = 0.002
Row = dict[str, Any]


def main() -> int:
    options = _options()
    folders = options.folders or [MODELS / name for name in FOLDERS]
    networks = [path for folder in folders for path in sorted(folder.rglob("*.tflite"))]
    names = options.rule or [rule.name for rule in RULES]
    fired = _survey(names, networks, options.fires)
    rows = []
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for name in names:
            found = [path for path in networks if name in fired[str(path)]]
            timed = pool.map(partial(_timed, name, options.seconds), found[: options.networks])
            rows.append({"rule": name, "fires": len(found), "of": len(networks), "timed": timed})
            print(_said(rows[-1]), flush=True)
            if options.json:
                files.write_text(options.json, json.dumps(rows, indent=1))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rules", description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--rule", action="append", help="these rules alone")
    parser.add_argument("--seconds", type=float, default=4, help="for each network and rule")
    parser.add_argument("--networks", type=int, default=6, help="timed for each rule, at most")
    parser.add_argument("--json", type=Path, help="the rows as a file")
    parser.add_argument("--fires", type=Path, help="the survey: read if it is there, else written")
    return parser.parse_args()


def _survey(names: Sequence[str], networks: Sequence[Path], kept: Path | None) -> dict[str, Any]:
    """The rules that fire in each network; it times nothing, so all processors may do it."""
    if kept and kept.exists():
        return dict(json.loads(kept.read_text()))
    with multiprocessing.get_context("fork").Pool(maxtasksperchild=1) as pool:
        fired = dict(pool.imap_unordered(partial(_fires, names), networks))
    if kept:
        files.write_text(kept, json.dumps(fired, indent=1))
    return fired


def _fires(names: Sequence[str], path: Path) -> tuple[str, list[str]]:
    """The rules that change the session graphs of a network."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        session_digests(path)  # what is tried once for a process is tried now
        plain, found = session_digests(path), []
        for name in names:
            with without(name):
                if session_digests(path) != plain:
                    found.append(name)
        return str(path), found


def _timed(name: str, seconds: float, path: Path) -> Row:
    """The ratios of a network: off / on, and of the null test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with without(name):
                off = _invoke(path)
            on, again = _invoke(path), _invoke(path)
        except BridgeError as error:
            return {"network": path.name, "error": str(error)}
        median, shortest = _ratios(off, on, seconds)
        null, null_shortest = _ratios(again, on, seconds)
    return {
        "network": path.name,
        "off_on": [median, shortest],
        "null": [null, null_shortest],
    }


def _invoke(path: Path) -> Callable[[], None]:
    interpreter = Interpreter(str(path), num_threads=1, cache=False)
    interpreter.allocate_tensors()
    drawn = random_inputs(interpreter.get_input_details(), 1)
    try:
        _feed(interpreter, drawn)
    except BridgeError:  # of places that are out of bounds
        _feed(interpreter, {i: array * (array.dtype.kind == "f") for i, array in drawn.items()})
    return interpreter.invoke


def _feed(interpreter: Interpreter, arrays: dict[int, Any]) -> None:
    for index, array in arrays.items():
        interpreter.set_tensor(index, array)
    interpreter.invoke()


def _ratios(first: Callable[[], None], second: Callable[[], None], seconds: float) -> list[float]:
    """The median of the ratios of neighbouring turns, and the ratio of the shortest ones."""
    counts = [max(1, int(_TURN / _turn(run, 3))) for run in (first, second)]
    turns: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(turns) < 5:
        turns.append((_turn(first, counts[0]), _turn(second, counts[1])))
    shortest = np.min(turns, axis=0)
    median = statistics.median(a / b for a, b in turns)
    return [round(median, 3), round(float(shortest[0] / shortest[1]), 3)]


def _turn(run: Callable[[], None], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        run()
    return (time.perf_counter() - started) / count


def _said(row: Row) -> str:
    lines = [f"{row['rule']}: {row['fires']} of {row['of']} networks"]
    for each in row["timed"]:
        if "error" in each:
            lines.append(f"    {each['network']}: {each['error']}")
            continue
        (median, shortest), (null, null_shortest) = each["off_on"], each["null"]
        lines.append(
            f"    {each['network']}: off / on {median} (shortest {shortest}), "
            f"null {null} (shortest {null_shortest})"
        )
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
