"""The time of a token with caches that stay inside, by how many tokens are there.

    python benchmarks/kept_caches.py [--models FOLDER] [--rounds 60] [--hybrid xnnpack] [NAME...]

Models: $TFLITE_ORT_MODELS2, else ../shared/models2. The decode signature of every language model is
called through its runner with 17 tokens, and with as many as fit but for 31, on one thread. Ours
keeps its caches; LiteRT's runner gets them as inputs and returns them, and `invoke` is LiteRT
without these copies. The runtimes take turns; times are medians. The ratios are LiteRT / ours.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tflite_ort import Interpreter

Array = npt.NDArray[Any]

FOLDER = Path(
    os.environ.get("TFLITE_ORT_MODELS2") or Path(__file__).parents[2] / "shared" / "models2"
)
FEW, FREE = 16, 32


def inputs_at(details: Mapping[str, Any], position: int) -> dict[str, Array]:
    """The inputs of a decode signature but for its caches."""
    arrays = {}
    for name, each in details.items():
        if name.startswith("kv_cache"):
            continue
        shape, dtype = each["shape"], np.dtype(each["dtype"])
        array = np.zeros(shape, dtype)
        if name == "input_pos":
            array[...] = position
        elif name == "param_tensor":
            array.reshape(-1)[:3] = position, position + 1, position + 1
        elif name == "mask":
            seen = np.arange(shape[-1]) <= position
            hidden = False if dtype == np.bool_ else -0.7 * np.finfo(dtype).max
            array[...] = np.where(seen, np.array(dtype == np.bool_, dtype), np.array(hidden, dtype))
        arrays[name] = array
    return arrays


def timed(calls: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """The median time of each call in microseconds; they take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds + 3):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            if turn >= 3:
                times[name].append(time.perf_counter() - started)
    return {name: statistics.median(each) * 1e6 for name, each in times.items()}


def times_of(
    path: Path, inputs: Mapping[str, Any], hybrid: str, rounds: int
) -> Iterator[tuple[int, dict[str, float]]]:
    """By number of tokens, the times of the decode signature of a file."""
    caches = {name for name in inputs if name.startswith("kv_cache")}
    theirs = LiteRT(str(path), num_threads=1)
    runner = theirs.get_signature_runner("decode")
    kept = Interpreter(path, hybrid=hybrid).get_signature_runner("decode", keep=caches)
    empty = {name: np.zeros(inputs[name][0], np.dtype(inputs[name][1])) for name in caches}
    capacity = max(size for name in caches for size in inputs[name][0])
    for position in (FEW, capacity - FREE):
        given = inputs_at(runner.get_input_details(), position)
        calls = {
            "LiteRT": partial(runner, **given, **empty),
            "invoke": partial(theirs._interpreter.Invoke, runner._subgraph_index),
            "ours": partial(kept, **given),
        }
        yield position + 1, timed(calls, rounds)


def main() -> None:
    """Print a line for each model and number of tokens."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", type=Path, default=FOLDER)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--hybrid", default="xnnpack")
    arguments = parser.parse_args()
    for entry in json.loads((arguments.models / "index.json").read_text())["models"]:
        inputs = entry["signatures"].get("decode", {"inputs": {}})["inputs"]
        wanted = not arguments.names or any(name in entry["name"] for name in arguments.names)
        if not wanted or not any(name.startswith("kv_cache") for name in inputs):
            continue
        path = arguments.models / entry["file"]
        for tokens, us in times_of(path, inputs, arguments.hybrid, arguments.rounds):
            times = ", ".join(f"{name} {each:.0f} us" for name, each in us.items())
            ratios = f"{us['LiteRT'] / us['ours']:.2f}, of invoke {us['invoke'] / us['ours']:.2f}"
            print(f"{entry['name']:34}{tokens:4} tokens   {times}   {ratios}", flush=True)


if __name__ == "__main__":
    main()
