"""How near `predict` over pictures comes to what the cores can do, beside a plain loop over LiteRT.

    python -m benchmarks.predict_ceiling [--images 400] [--rounds 9] [--json FILE]

MobileNet V2 in floats, pictures of 224 x 224, all cores. Milliseconds a picture; all take turns.
The least time of each part counts, so that a ceiling is never too low:

products: float32 products of matrices in ONNX Runtime, which are the fastest thing that its kernels
    do; as many multiply-adds as the network has
decoding: pictures to pixels alone, by the library that both loops use
network: our network alone, on rows that are there; also with more rows at once
LiteRT's network: LiteRT's alone, one interpreter of one thread for each core
two parts: the same in two pieces. The layers with large results take one row at a time, so that
    these stay in the caches; those behind them take eight at a time, so that their weights are read
    less often. `predict` does not do that
predict, LiteRT: the whole work of each

A ceiling is LiteRT's median over the sum of decoding and one of the others. The medians of decoding
and our network say what the cores do as a rule.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime
from ai_edge_litert.interpreter import Interpreter as LiteRT
from onnx import TensorProto, helper, numpy_helper

from benchmarks.predict import MODEL, dequantised, draw, plain_loop, predicting, setup_of
from tests.models import model_path
from tflite_ort import Interpreter
from tflite_ort.base.files import write_bytes, write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.command.model_costs import costs
from tflite_ort.prediction.images import read_image
from tflite_ort.schema import read_model, write_model
from tflite_ort.verification.extraction import extract

# The matrices are squares: of the sizes tried, the fastest one counts.
_SIDES = (256, 384, 512)
_SECONDS = 0.25
# Where the network is cut in two: 13 operators stand before this.
_CUT, _ROWS = "MobilenetV2/expanded_conv_3/project/add_fold", 8
_BATCHES = (2, 4, 8, 16)

Work = Callable[[], Any]


def repeated(works: Sequence[Work], seconds: float = _SECONDS) -> float:
    """The milliseconds from the end of one call to the next, of threads that each repeat a work."""
    counts, ended = [0] * len(works), time.perf_counter() + seconds

    def repeat(place: int, work: Work) -> None:
        while time.perf_counter() < ended:
            work()
            counts[place] += 1

    callers = [threading.Thread(target=repeat, args=each) for each in enumerate(works)]
    started = time.perf_counter()
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    return (time.perf_counter() - started) / sum(counts) * 1e3


def once(work: Callable[[Sequence[Path]], None], paths: Sequence[Path]) -> float:
    """The milliseconds a picture of one pass."""
    started = time.perf_counter()
    work(paths)
    return (time.perf_counter() - started) / len(paths) * 1e3


def product(side: int) -> Work:
    """A product of two squares, in a session of one thread."""
    given, made = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [side, side]) for name in "xy"
    )
    values = np.random.default_rng(0).random((side, side), np.float32)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        "product",
        [given],
        [made],
        [numpy_helper.from_array(values, "w")],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    return lambda: session.run(None, {"x": values})


def network(model: Path, cores: int, batch: int | None = None) -> list[Work]:
    """The network's run, for each core its own."""
    works = []
    for _ in range(cores):
        interpreter = Interpreter(model, num_threads=1, batch=batch)
        interpreter.allocate_tensors()
        works.append(interpreter.invoke)
    return works


def their_network(model: Path, cores: int) -> list[Work]:
    """As `network`, by LiteRT."""
    works = []
    for _ in range(cores):
        interpreter = LiteRT(str(model), num_threads=1)
        interpreter.allocate_tensors()
        works.append(interpreter.invoke)
    return works


def two_parts(model: Path, cores: int) -> list[Work]:
    """The network's run over `_ROWS` rows, for each core its own."""
    whole = read_model(model)
    pieces = [write_model(extract(whole, *ends)) for ends in (((), (_CUT,)), ((_CUT,), ()))]

    def work() -> Work:
        first, second = (
            Interpreter(model_content=piece, num_threads=1, batch=rows)
            for piece, rows in zip(pieces, (None, _ROWS), strict=True)
        )
        for each in (first, second):
            each.allocate_tensors()
        made = first.get_output_details()[0]["index"]
        given = second.get_input_details()[0]
        rows = np.zeros(given["shape"], np.float32)

        def run() -> None:
            for row in rows:
                first.invoke()
                row[:] = first.get_tensor(made)[0]
            second.set_tensor(given["index"], rows)
            second.invoke()

        return run

    return [work() for _ in range(cores)]


def decoding(paths: Sequence[Path], cores: int) -> list[Work]:
    """Pictures to pixels, one a call."""
    details = Interpreter(model_path(MODEL)).get_input_details()[0]

    def work(paths: Sequence[Path]) -> Work:
        turn = iter(range(1 << 62))
        return lambda: read_image(paths[next(turn) % len(paths)], details)

    return [work(paths[place::cores]) for place in range(cores)]


def measured(folder: Path, images: int, rounds: int, cores: int) -> dict[str, Any]:
    """The least milliseconds a picture of everything, and LiteRT's and predict's medians."""
    model = folder / "float.tflite"
    write_bytes(model, write_model(dequantised(read_model(model_path(MODEL)))))
    paths = draw(folder, images, "jpg")
    adds = costs(read_model(model)).multiply_adds
    squares = {side: [product(side) for _ in range(cores)] for side in _SIDES}
    loops = {
        "predict": predicting(folder, setup_of(model), cores),
        "LiteRT": plain_loop(model, cores),
    }
    parts = {"decoding": (decoding(paths, cores), 1), "network": (network(model, cores), 1)}
    parts |= {f"batch of {n}": (network(model, cores, n), n) for n in _BATCHES}
    parts |= {"two parts": (two_parts(model, cores), _ROWS)}
    parts |= {"LiteRT's network": (their_network(model, cores), 1)}
    for loop in loops.values():
        loop(paths[:128])
    spent: dict[str, list[float]] = {}
    for _ in range(rounds):
        for name, loop in loops.items():
            spent.setdefault(name, []).append(once(loop, paths))
        for name, (works, rows) in parts.items():
            spent.setdefault(name, []).append(repeated(works) / rows)
        fastest = min(repeated(works) * adds / side**3 for side, works in squares.items())
        spent.setdefault("products", []).append(fastest)
    return {"multiply_adds": adds, "ms": spent}


def told(found: dict[str, Any], cores: int) -> dict[str, float]:
    """Print the parts and the ceilings."""
    least = {name: min(times) for name, times in found["ms"].items()}
    median = {name: float(np.median(times)) for name, times in found["ms"].items()}
    speed = found["multiply_adds"] * 2 / least["products"] / 1e6
    print(f"{cores} cores, {speed:.0f} GFLOP/s; {found['multiply_adds'] / 1e6:.0f}M multiply-adds")
    for name in least:
        print(f"  {name:16} {least[name]:6.2f} ms at least, {median[name]:6.2f} median")
    ratios = {"predict": median["LiteRT"] / median["predict"]}
    for name in [each for each in least if each not in ("decoding", "predict", "LiteRT")]:
        ratios[f"{name}, and decoding"] = median["LiteRT"] / (least[name] + least["decoding"])
    usual = median["LiteRT"] / (median["network"] + median["decoding"])
    ratios["network, and decoding: medians"] = usual
    for name, ratio in ratios.items():
        print(f"  {name:30} {ratio:.2f} times LiteRT's loop")
    return ratios


def main() -> None:
    """Print the ceilings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    with TemporaryDirectory() as folder:
        found = measured(Path(folder), given.images, given.rounds, cores)
    found["ratios"] = told(found, cores)
    if given.json:
        write_text(given.json, json.dumps({**machine(), **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
