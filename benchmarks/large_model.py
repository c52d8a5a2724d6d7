"""How long a model of 2 GB and more takes to be ready, and how much memory: fully connected layers.

    python benchmarks/large_model.py [--weights KIND] [--layers N] [--cache] [--litert]

Kinds: `float32`; `int8`, with activations of 8 bits too; `dynamic` and `int4`, weights of 8 and 4
bits over float activations; `table`, one EMBEDDING_LOOKUP of 8-bit codes. A layer has 2^26 weights,
and a table of N layers as many codes. The file is written to the temporary folder and deleted
after. The bars of floats: 3 s, and 1.3 times the file; from the cache 1 s.
"""

from __future__ import annotations

import argparse
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort import Interpreter
from tflite_ort.base.files import writing
from tflite_ort.schema import (
    Buffer,
    FullyConnectedOptions,
    Model,
    Op,
    Operator,
    OperatorCode,
    QuantizationParameters,
    SubGraph,
    Tensor,
    TensorType,
    write_model,
)

_WIDTH = 8192
_FLOAT = TensorType.FLOAT32
_SETTLED = 3  # seconds after which the digest of a file is remembered
# Layers, and the types of weights and activations.
_LAYERS = {
    "float32": (9, (_FLOAT, _FLOAT)),
    "int8": (29, (TensorType.INT8, TensorType.INT8)),
    "dynamic": (29, (TensorType.INT8, _FLOAT)),
    "int4": (58, (TensorType.INT4, _FLOAT)),
}
_CLEAR_REFS = Path("/proc/self/clear_refs")


def _weights(generator: np.random.Generator, type: TensorType) -> npt.NDArray[np.uint8]:
    if type is TensorType.INT8:
        return generator.integers(1, 256, _WIDTH**2, np.uint8) ^ np.uint8(128)
    if type is TensorType.INT4:
        return generator.integers(0, 256, _WIDTH**2 // 2, np.uint8)
    values = generator.standard_normal(_WIDTH**2, np.float32) / np.float32(_WIDTH**0.5)
    return values.view(np.uint8)


def layers(count: int, weights: TensorType, activations: TensorType) -> bytes:
    """The bytes of a model of `count` layers without bias, each from 8192 numbers to as many."""
    generator, shape = np.random.default_rng(0), (_WIDTH, _WIDTH)
    given = None if weights is TensorType.FLOAT32 else _quantized(np.full(_WIDTH, 2**-13.5))
    made = None if activations is TensorType.FLOAT32 else _quantized(np.array([2.0**-4]))
    tensors = [Tensor((1, _WIDTH), activations, 0, "x", made)]
    buffers, operators = [Buffer()], []
    for number in range(count):
        buffers.append(Buffer(_weights(generator, weights)))
        tensors.append(Tensor(shape, weights, number + 1, f"w{number}", given))
        tensors.append(Tensor((1, _WIDTH), activations, 0, f"y{number}", made))
        source = 2 * number
        read, written = (source, source + 1, None), (source + 2,)
        operators.append(Operator(0, read, written, FullyConnectedOptions()))
    graph = SubGraph(tuple(tensors), (0,), (2 * count,), tuple(operators))
    codes = (OperatorCode(Op.FULLY_CONNECTED),)
    return write_model(Model(3, codes, (graph,), buffers=tuple(buffers)))


def table(count: int) -> bytes:
    """The bytes of a model that looks up a row of 8192 numbers in `count` times as many rows."""
    generator, rows = np.random.default_rng(0), count * _WIDTH
    codes = np.concatenate([_weights(generator, TensorType.INT8) for _ in range(count)])
    tensors = (
        Tensor((1,), TensorType.INT32, 0, "row"),
        Tensor((rows, _WIDTH), TensorType.INT8, 1, "table", _quantized(np.full(rows, 2**-13.5))),
        Tensor((1, _WIDTH), TensorType.FLOAT32, 0, "y"),
    )
    graph = SubGraph(tensors, (0,), (2,), (Operator(0, (0, 1), (2,)),))
    lookup = (OperatorCode(Op.EMBEDDING_LOOKUP, version=3),)
    return write_model(Model(3, lookup, (graph,), buffers=(Buffer(), Buffer(codes))))


def _quantized(scale: npt.NDArray[np.float64]) -> QuantizationParameters:
    """Around zero, with one scale or one for each row."""
    return QuantizationParameters(
        scale=scale.astype(np.float32), zero_point=np.zeros(scale.size, np.int64)
    )


def memory() -> float:
    """The most memory of this process so far, in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1e6


def measure(path: Path, cache: Path | None, litert: bool) -> None:
    """Print what a load and three invokes take."""
    make: Callable[[str], Any] = partial(Interpreter, cache=False if cache is None else cache)
    if litert:
        make = __import__("ai_edge_litert.interpreter", fromlist=["Interpreter"]).Interpreter
    _CLEAR_REFS.write_text("5")  # the highest mark starts again from here
    started, before = time.perf_counter(), memory()
    interpreter = make(str(path))
    interpreter.allocate_tensors()
    ready = time.perf_counter() - started
    size = path.stat().st_size / 1e9
    print(
        f"ready in {ready:.2f} s, {(memory() - before) / size:.2f} times the file of {size:.2f} GB"
    )
    for each in interpreter.get_input_details():
        interpreter.set_tensor(each["index"], np.ones(each["shape"], each["dtype"]))
    for _ in range(3):
        started = time.perf_counter()
        interpreter.invoke()
        taken = time.perf_counter() - started
        print(f"invoke {taken:.3f} s, {(memory() - before) / size:.2f} times the file")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", choices=[*_LAYERS, "table"], default="float32")
    parser.add_argument("--layers", type=int, help="about 2 GB")
    parser.add_argument("--cache", action="store_true", help="measure a load from the cache")
    parser.add_argument("--litert", action="store_true", help="measure LiteRT instead")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.tflite"
        count, kinds = _LAYERS.get(arguments.weights, (29, None))
        count = arguments.layers or count
        with writing(path) as (stream,):
            stream.write(table(count) if kinds is None else layers(count, *kinds))
        cache = Path(folder) / "cache" if arguments.cache else None
        if cache is not None:
            time.sleep(_SETTLED)
            command = [sys.executable, "-m", "tflite_ort", "compile", str(path)]
            subprocess.run([*command, "--cache", str(cache)], check=True)
        # A process of its own: this one has had the weights in its memory.
        given = path, cache, arguments.litert
        process = multiprocessing.get_context("spawn").Process(target=measure, args=given)
        process.start()
        process.join()
        sys.exit(process.exitcode)


if __name__ == "__main__":
    main()
