"""The time of a token with caches that stay inside, by how many tokens are there.

    python benchmarks/kept_caches.py [--models FOLDER] [--rounds 60] [--hybrid xnnpack]
                                     [--threads 1] [NAME...]

Models: $TFLITE_ORT_MODELS2, else ../shared/models2. The decode signature of every language model is
called through its runner with 17 tokens, and with as many as fit but for 31. Ours keeps its caches;
LiteRT's runner gets them as inputs and returns them, and `invoke` is LiteRT without these copies.
All calls take turns; times are medians. The ratios are LiteRT / ours, and for each round without
LiteRT our time with few tokens over that with many.
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
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tflite_ort import Interpreter

Array = npt.NDArray[Any]
Place = tuple[int, str]  # how many tokens, and the runtime
Key = TypeVar("Key")

FOLDER = Path(
    os.environ.get("TFLITE_ORT_MODELS2") or Path(__file__).parents[2] / "shared" / "models2"
)
FEW, FREE = 16, 32
_ALONE = "ours alone"


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


def timed(calls: Mapping[Key, Callable[[], Any]], rounds: int) -> dict[Key, float]:
    """The median time of each call in microseconds; they take turns."""
    return {key: statistics.median(times) for key, times in by_round(calls, rounds).items()}


def by_round(calls: Mapping[Key, Callable[[], Any]], rounds: int) -> dict[Key, Array]:
    """The times of each call in microseconds, one for each round; they take turns."""
    times: dict[Key, list[float]] = {place: [] for place in calls}
    for turn in range(rounds + 3):
        for place, call in calls.items():
            started = time.perf_counter()
            call()
            if turn >= 3:
                times[place].append(time.perf_counter() - started)
    return {place: np.array(each) * 1e6 for place, each in times.items()}


def times_of(
    path: Path, inputs: Mapping[str, Any], hybrid: str, threads: int, rounds: int
) -> dict[Place, Array]:
    """The times of the decode signature of a file, by number of tokens and runtime."""
    caches = {name for name in inputs if name.startswith("kv_cache")}
    theirs = LiteRT(str(path), num_threads=threads)
    runner = theirs.get_signature_runner("decode")
    ours = Interpreter(path, hybrid=hybrid, num_threads=threads)
    kept = ours.get_signature_runner("decode", keep=caches)
    empty = {name: np.zeros(inputs[name][0], np.dtype(inputs[name][1])) for name in caches}
    capacity = max(size for name in caches for size in inputs[name][0])
    calls: dict[Place, Callable[[], Any]] = {}
    for position in (FEW, capacity - FREE):
        given = inputs_at(runner.get_input_details(), position)
        calls[position + 1, "LiteRT"] = partial(runner, **given, **empty)
        invoke = partial(theirs._interpreter.Invoke, runner._subgraph_index)
        calls[position + 1, "invoke"] = invoke  # with what the runner has set
        calls[position + 1, "ours"] = partial(kept, **given)
    alone = {(tokens, _ALONE): calls[tokens, "ours"] for tokens, _ in calls}
    return by_round(calls, rounds) | by_round(alone, rounds)


def lines(times: Mapping[Place, Array]) -> Iterator[str]:
    """For each number of tokens the times and ratios; then few tokens over many."""
    few, many = sorted({tokens for tokens, _ in times})
    for tokens in (few, many):
        us = {name: statistics.median(times[tokens, name]) for name in ("LiteRT", "invoke", "ours")}
        shown = ", ".join(f"{name} {each:.0f} us" for name, each in us.items())
        ratios = f"{us['LiteRT'] / us['ours']:.2f}, of invoke {us['invoke'] / us['ours']:.2f}"
        yield f"{tokens:4} tokens   {shown}   {ratios}"
    shares = times[few, _ALONE] / times[many, _ALONE]
    low, middle, high = np.quantile(shares, (0.25, 0.5, 0.75))
    us = [statistics.median(times[tokens, _ALONE]) for tokens in (few, many)]
    share = f"{middle:.2f} (quartiles {low:.2f} to {high:.2f})"
    yield f"{few:4} / {many} tokens   ours alone {us[0]:.0f} us / {us[1]:.0f} us, {share}"


def main() -> None:
    """Print a line for each model and number of tokens."""
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--models", type=Path, default=FOLDER)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--hybrid", default="xnnpack")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    for entry in json.loads((arguments.models / "index.json").read_text())["models"]:
        inputs = entry["signatures"].get("decode", {"inputs": {}})["inputs"]
        wanted = not arguments.names or any(name in entry["name"] for name in arguments.names)
        if not wanted or not any(name.startswith("kv_cache") for name in inputs):
            continue
        path = arguments.models / entry["file"]
        how = arguments.hybrid, arguments.threads, arguments.rounds
        for line in lines(times_of(path, inputs, *how)):
            print(f"{entry['name']:34}{line}", flush=True)


if __name__ == "__main__":
    main()
