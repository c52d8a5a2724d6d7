"""What signed weights save on x86 without VNNI: single layers, and networks beside LiteRT.

    python -m benchmarks.signed_weights [MODEL...] [--seconds S]

Without models: microseconds of one QLinearConv by uint8 and by int8 weights, and how many of its
codes are wrong. With models: LiteRT's microseconds, and its time over ours: with the first lowering
of each layer; with those that the cost model chooses; with signed weights where these cost nothing,
as by default; and with those of all layers that have an order, as in the cache. All take turns and
the least time counts. It is CPU time of the thread, so that other processes disturb less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

import ai_edge_litert.interpreter as litert
import numpy as np
import numpy.typing as npt

from benchmarks.by_operator import feed
from tflite_ort import Interpreter
from tflite_ort.opmap.graph.choices import plainest
from tflite_ort.opmap.onnx_graph import ir
from tflite_ort.opmap.rules.lowering import OPSET
from tflite_ort.plan import context
from tflite_ort.providers import model_session
from tflite_ort.providers.graph_session import graph_session

Run = Callable[[], None]
Codes = npt.NDArray[np.uint8]

# Height and width, channels, those of the result or 0 for a depthwise layer, the side of a window.
_LAYERS = (
    ((24, 24), 32, 0, 3),
    ((6, 6), 128, 0, 3),
    ((25, 5), 64, 0, 3),
    ((56, 56), 64, 0, 3),
    ((48, 48), 8, 16, 1),
    ((25, 5), 64, 64, 1),
    ((14, 14), 96, 576, 1),
    ((32, 32), 16, 16, 3),
    ((8, 8), 64, 64, 3),
)
_MOST_TURNS, _NEARLY_LEAST = 1500, 2


def layer(
    size: Sequence[int], channels: int, outputs: int, side: int, dtype: type[np.integer]
) -> tuple[Run, Codes]:
    """A run of a QLinearConv by weights of any codes, and what it writes."""
    rng, count = np.random.default_rng(0), outputs or channels
    shape = (count, channels if outputs else 1, side, side)
    signed = rng.integers(-127, 127, shape, np.int8, endpoint=True)
    moved = 0 if dtype is np.int8 else 128
    source = ir.Value("x", dtype=ir.DataType.UINT8, shape=(1, *size, channels))
    image = ir.Value("image", dtype=ir.DataType.UINT8)
    codes, result = (ir.Value(name, dtype=ir.DataType.UINT8) for name in ("codes", "y"))
    graph = ir.Graph([source], [result], [], name="layer")
    constants = [np.float32(0.02), np.uint8(125), (signed.astype(np.int16) + moved).astype(dtype)]
    constants += [np.float32(0.005), dtype(moved), np.float32(1), np.uint8(131)]
    inputs = [graph.add_initializer(f"c{i}", np.asarray(x)) for i, x in enumerate(constants)]
    window = {"pads": [side // 2] * 4, "group": 1 if outputs else channels}
    graph.nodes += [
        ir.Node("Transpose", [source], [image], attributes={"perm": [0, 3, 1, 2]}),
        ir.Node("QLinearConv", [image, *inputs], [codes], attributes=window),
        ir.Node("Transpose", [codes], [result], attributes={"perm": [0, 2, 3, 1]}),
    ]
    session = graph_session(ir.Model(graph, opset_imports={"": OPSET}), num_threads=1)
    given = rng.integers(0, 255, source.shape, np.uint8, endpoint=True)
    made = np.zeros((1, *size, count), np.uint8)
    run = session.runner(session.bind([given], [made]))
    run()
    return run, made


def networks(path: Path) -> Iterator[Run]:
    """Invokes of LiteRT, of ours with the first lowerings, with those of the model, and with signed
    weights where these cost nothing, and of all layers that have an order."""
    theirs = litert.Interpreter(str(path), num_threads=1)
    feed(theirs, path.read_bytes())
    yield theirs.invoke
    kinds = ((False, False, False), (True, False, False), (True, True, False), (True, True, True))
    for modelled, signed, kept in kinds:
        with ExitStack() as changes:
            if not modelled:
                first = patch.object(context, "modelled_chooser", lambda weights: plainest)
                changes.enter_context(first)
            if not signed:
                changes.enter_context(patch.object(model_session, "make_paired"))
            if kept:
                runs = patch.object(model_session, "_FEW_RUNS", model_session._MANY_RUNS)
                changes.enter_context(runs)
            ours = Interpreter(path, num_threads=1, cache=False)
            feed(ours, path.read_bytes())
        yield ours.invoke


def least(runs: Sequence[Run], seconds: float) -> list[float]:
    """Microseconds of CPU time of each run: nearly the least of many turns, since single ones are
    counted wrong."""
    started = time.perf_counter()
    for run in runs:
        run()
    turns = int(seconds / max(1e-6, time.perf_counter() - started))
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(max(30, min(_MOST_TURNS, turns))):
        for run, times in zip(runs, found, strict=True):
            before = time.thread_time_ns()
            run()
            times.append((time.thread_time_ns() - before) / 1e3)
    return [float(np.percentile(times, _NEARLY_LEAST)) for times in found]


def main() -> None:
    """Print a row for each layer, or for each network."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each row")
    given = parser.parse_args()
    for path in given.models:
        theirs, *ours = least(list(networks(path)), given.seconds)
        ratios = " | ".join(f"{theirs / each:.2f}" for each in ours)
        print(f"| {path.stem} | {theirs:.0f} | {ratios} |", flush=True)
    for size, channels, outputs, side in () if given.models else _LAYERS:
        kinds = (np.uint8, np.int8)
        made = [layer(size, channels, outputs, side, each) for each in kinds]
        times = " | ".join(f"{each:.1f}" for each in least([run for run, _ in made], given.seconds))
        wrong = np.count_nonzero(made[0][1] != made[1][1])
        name = f"{size[0]} x {size[1]} x {channels}" + (f" to {outputs}" if outputs else "")
        kind = "dense" if outputs else "depthwise"
        print(f"| {kind}, {name}, {side} x {side} | {times} | {wrong} |", flush=True)


if __name__ == "__main__":
    main()
