"""The speed of today's networks against LiteRT, by class: float, dynamic, int8, prefill, decode.

    python benchmarks/transformers.py [--models FOLDER] [--rounds 15] [NAME...]

Models: $TFLITE_ORT_MODELS2, else ../shared/models2; its index.json says how inputs are drawn. Each
signature is called through its runner, as a user would, on one thread; the two runtimes take turns.
A figure is LiteRT's median over ours: above 1 we are faster.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
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
# What the index calls the weights and activations, and the class of a network that has them.
CLASSES = {"float": "float", "dyn8": "dynamic", "int8": "int8", "a16w8": "16x8"}


def class_of(entry: Mapping[str, Any], signature: str) -> str:
    """The class of a signature: LLMs by what they do, other networks by their types."""
    for phase in ("prefill", "decode"):
        if signature.startswith(phase) and "prefill" in " ".join(entry["signatures"]):
            return phase
    return CLASSES.get(entry["quant"], entry["quant"])


def drawn(entry: Mapping[str, Any], signature: str, seed: int = 0) -> dict[str, Array]:
    """Inputs of a signature, as the index says."""
    rng, rules = np.random.default_rng(seed), entry.get("random", {})
    inputs = {}
    for name, (shape, dtype) in entry["signatures"][signature]["inputs"].items():
        inputs[name] = _drawn(rng, name, rules.get(name, rules.get("*", ["normal"])), shape, dtype)
    return inputs


def _drawn(
    rng: np.random.Generator, name: str, rule: Sequence[Any], shape: Sequence[int], dtype: str
) -> Array:
    if dtype == "bool":
        return np.ones(shape, bool)
    if name == "input_pos":
        return np.arange(int(np.prod(shape)), dtype=dtype).reshape(shape)
    if rule[0] == "int":
        return rng.integers(rule[1], rule[2], shape).astype(dtype)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 8, shape).astype(dtype)
    return rng.standard_normal(shape).astype(dtype)


def measured(calls: Sequence[Callable[[], object]], rounds: int) -> list[float]:
    """The median of each call in milliseconds; they take turns."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
        call()
    for _ in range(rounds):
        for call, taken in zip(calls, times, strict=True):
            started = time.perf_counter()
            call()
            taken.append(time.perf_counter() - started)
    return [statistics.median(taken) * 1e3 for taken in times]


def signatures(
    path: Path, entry: Mapping[str, Any], rounds: int
) -> list[tuple[str, str, float, float]]:
    """Of each signature: its class, its name, and both runtimes' milliseconds."""
    rows = []
    interpreters = [make(model_path=str(path), num_threads=1) for make in (LiteRT, Interpreter)]
    for name in entry["signatures"]:
        inputs = drawn(entry, name)
        runners = [each.get_signature_runner(name) for each in interpreters]
        calls = [partial(runner, **inputs) for runner in runners]
        theirs, ours = measured(calls, rounds)
        rows.append((class_of(entry, name), name, theirs, ours))
    return rows


def main() -> None:
    """Print a line a signature, and the geometric mean of each class."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=Path, default=FOLDER)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    ratios = defaultdict(list)
    for entry in json.loads((given.models / "index.json").read_text())["models"]:
        if given.names and not any(name in entry["file"] for name in given.names):
            continue
        for kind, name, theirs, ours in signatures(
            given.models / entry["file"], entry, given.rounds
        ):
            ratios[kind].append(theirs / ours)
            print(
                f"{kind:8} {entry['name']:32} {name:16} LiteRT {theirs:8.2f} ms, "
                f"ours {ours:8.2f} ms, {theirs / ours:.2f}",
                flush=True,
            )
    for kind, found in sorted(ratios.items()):
        mean = statistics.geometric_mean(found)
        print(f"{kind}: {mean:.2f} over {len(found)} (worst {min(found):.2f})")


if __name__ == "__main__":
    main()
