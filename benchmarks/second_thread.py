"""What a second thread gives small networks, and what is the most that it could give.

    python -m benchmarks.second_thread MODEL... [--seconds S] [--json FILE]

Median microseconds of an invoke: LiteRT on one thread and on two; ours as the library chooses when
it is asked for two; ours on one thread, and on two, whatever the library would choose; on two
threads with each layer by the lowering that was the fastest on two threads; and on two threads
that do not spin. The ratio is LiteRT on two threads / chosen, the floor LiteRT / the least of ours.

What a second thread gives depends on how far from each other the two cores are, which a virtual
machine may change from one second to the next. So each turn begins and ends with a chain of small
layers, on one thread and on two, of which the difference is what ONNX Runtime needs to hand one
layer over to the other thread. Turns are sorted by it: near cores, far cores. A turn in which it
changed is dropped.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import ai_edge_litert.interpreter as litert
import numpy as np
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

from benchmarks.by_operator import feed
from tflite_ort import Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.plan import session_step
from tflite_ort.providers import settings, threads

# Microseconds to hand a layer over, beyond which cores are far from each other.
FAR = 1.5
_LAYERS, _SIZE, _CHANNELS = 32, 8, 64
_TURN = 0.02  # seconds of each variant
_SPIN = "session.intra_op.allow_spinning"
OURS = ("chosen", "one", "two", "tuned", "no spinning")
COLUMNS = ("handed over", "LiteRT, one", "LiteRT, two", *OURS)

Run = Callable[[], object]


def chain(num_threads: int) -> Run:
    """A run of layers that ONNX Runtime shares between two threads, of half a microsecond each."""
    weights = np.ones((_CHANNELS, _CHANNELS, 1, 1), np.int8)
    scalars = {"scale": np.float32(1), "zero": np.uint8(0), "weight_zero": np.int8(0)}
    constants = {"weights": weights, **{name: np.array(x) for name, x in scalars.items()}}
    quantized = ["scale", "zero", "weights", "scale", "weight_zero", "scale", "zero"]
    nodes = [
        helper.make_node(
            "QLinearConv",
            [f"x{number}", *quantized],
            [f"x{number + 1}"],
            domain="com.microsoft",
            channels_last=1,
        )
        for number in range(_LAYERS)
    ]
    shape = (1, _SIZE, _SIZE, _CHANNELS)
    ends = [
        helper.make_tensor_value_info(name, TensorProto.UINT8, shape)
        for name in ("x0", f"x{_LAYERS}")
    ]
    stored = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], stored)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(),
        threads.session_options(num_threads),
        providers=["CPUExecutionProvider"],
    )
    binding = session.io_binding()
    binding.bind_cpu_input("x0", np.zeros(shape, np.uint8))
    binding.bind_output(f"x{_LAYERS}", "cpu")
    return partial(session.run_with_iobinding, binding)


def median(run: Run, seconds: float = _TURN) -> float:
    """Microseconds of one run."""
    times, clock = list[float](), time.perf_counter
    end = clock() + seconds
    while not times or clock() < end:
        started = clock()
        run()
        times.append(clock() - started)
    return statistics.median(times) * 1e6


class Cores:
    """What it takes to hand a layer over."""

    def __init__(self) -> None:
        self._one, self._two = chain(1), chain(2)

    def handed_over(self) -> float:
        """Microseconds a layer, now."""
        one, two = (median(run, _TURN / 4) for run in (self._one, self._two))
        return (two - one / 2) / _LAYERS


def ours(content: bytes, num_threads: int, spin: str = "1", **options: Any) -> Run:
    """An invoke of ours with these threads, whatever the library would choose."""
    entries = {_SPIN: spin} if num_threads > 1 else {}
    settings._shared.cache_clear()
    always = patch.object(session_step, "saves_time", lambda _: True)
    with always, patch.dict(threads._SPIN, entries):
        return chosen(content, num_threads, **options)


def chosen(content: bytes, num_threads: int, **options: Any) -> Run:
    """An invoke of ours as the library chooses."""
    interpreter = Interpreter(
        model_content=content, num_threads=num_threads, cache=False, **options
    )
    feed(interpreter, content)
    return interpreter.invoke


def theirs(content: bytes, num_threads: int) -> Run:
    """An invoke of LiteRT."""
    interpreter = litert.Interpreter(model_content=content, num_threads=num_threads)
    feed(interpreter, content)
    run: Run = interpreter.invoke
    return run


def variants(content: bytes, folder: Path) -> Mapping[str, Run]:
    """By name, what takes turns."""
    return {
        "LiteRT, one": theirs(content, 1),
        "LiteRT, two": theirs(content, 2),
        "chosen": chosen(content, 2),
        "one": ours(content, 1),
        "two": ours(content, 2),
        "tuned": ours(content, 2, tune=folder / "tuned.json"),
        "no spinning": ours(content, 2, spin="0"),
    }


def measure(runs: Mapping[str, Run], cores: Cores, seconds: float) -> dict[str, dict[str, float]]:
    """By distance of the cores, the median of each variant's turns."""
    turns: dict[str, list[dict[str, float]]] = defaultdict(list)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        before = cores.handed_over()
        times = {name: median(run) for name, run in runs.items()}
        after = cores.handed_over()
        if (before > FAR) == (after > FAR):
            times["handed over"] = (before + after) / 2
            turns["far" if after > FAR else "near"].append(times)
    return {
        distance: {name: statistics.median(each[name] for each in rows) for name in rows[0]}
        for distance, rows in turns.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=8, help="of each network")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cores, results = Cores(), list[dict[str, Any]]()
    print(f"| network | cores | {' | '.join(COLUMNS)} | ratio | floor |")
    print("|---" * (len(COLUMNS) + 4) + "|")
    for path in given.models:
        with TemporaryDirectory() as folder:
            runs = variants(path.read_bytes(), Path(folder))
            for distance, times in measure(runs, cores, given.seconds).items():
                best = min(times[name] for name in OURS)
                ratio, floor = (times["LiteRT, two"] / us for us in (times["chosen"], best))
                figures = " | ".join(f"{times[name]:.1f}" for name in COLUMNS)
                print(f"| {path.stem} | {distance} | {figures} | {ratio:.2f} | {floor:.2f} |")
                results.append({"name": path.stem, "cores": distance, **times})
    if given.json:
        write_text(given.json, json.dumps({**machine(), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
