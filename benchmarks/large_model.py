"""How long a model of 2 GB and more takes to be ready, and how much memory: fully connected layers.

    python benchmarks/large_model.py [--codes] [--layers N] [--litert]

A layer has 256 MB of weights, in codes of 8 bits 64 MB. The file is written to the temporary
folder and deleted after. The bars: 3 s, and 1.3 times the file.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort import Interpreter
from tflite_ort.files import writing
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
_CLEAR_REFS = Path("/proc/self/clear_refs")


def _weights(generator: np.random.Generator, type: TensorType) -> npt.NDArray[np.uint8]:
    if type is TensorType.INT8:
        return generator.integers(1, 256, _WIDTH**2, np.uint8) ^ np.uint8(128)
    values = generator.standard_normal(_WIDTH**2, np.float32) / np.float32(_WIDTH**0.5)
    return values.view(np.uint8)


def layers(count: int, type: TensorType) -> bytes:
    """The bytes of a model of `count` layers without bias, each from 8192 numbers to as many."""
    generator, shape = np.random.default_rng(0), (_WIDTH, _WIDTH)
    given, made = (
        None
        if type is TensorType.FLOAT32
        else QuantizationParameters(scale=scale, zero_point=np.zeros(1, np.int64))
        for scale in np.array([[2**-13.5], [2**-4]], np.float32)
    )
    tensors = [Tensor((1, _WIDTH), type, 0, "x", made)]
    buffers, operators = [Buffer()], []
    for number in range(count):
        buffers.append(Buffer(_weights(generator, type)))
        tensors.append(Tensor(shape, type, number + 1, f"w{number}", given))
        tensors.append(Tensor((1, _WIDTH), type, 0, f"y{number}", made))
        source = 2 * number
        read, written = (source, source + 1, None), (source + 2,)
        operators.append(Operator(0, read, written, FullyConnectedOptions()))
    graph = SubGraph(tuple(tensors), (0,), (2 * count,), tuple(operators))
    codes = (OperatorCode(Op.FULLY_CONNECTED),)
    return write_model(Model(3, codes, (graph,), buffers=tuple(buffers)))


def memory() -> float:
    """The most memory of this process so far, in GB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1e6


def measure(kind: Any, path: Path) -> None:
    _CLEAR_REFS.write_text("5")  # the highest mark starts again from here
    started, before = time.perf_counter(), memory()
    interpreter = kind(str(path))
    interpreter.allocate_tensors()
    ready = time.perf_counter() - started
    size = path.stat().st_size / 1e9
    print(
        f"ready in {ready:.2f} s, {(memory() - before) / size:.2f} times the file of {size:.2f} GB"
    )
    for _ in range(3):
        started = time.perf_counter()
        interpreter.invoke()
        taken = time.perf_counter() - started
        print(f"invoke {taken:.3f} s, {(memory() - before) / size:.2f} times the file")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--codes", action="store_true", help="of 8 bits, in the place of floats")
    parser.add_argument("--layers", type=int, help="2.4 GB of floats, 1.9 GB of codes")
    parser.add_argument("--litert", action="store_true", help="measure LiteRT instead")
    arguments = parser.parse_args()
    kind: Any = Interpreter
    if arguments.litert:
        kind = __import__("ai_edge_litert.interpreter", fromlist=["Interpreter"]).Interpreter
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large.tflite"
        with writing(path) as (stream,):
            type = TensorType.INT8 if arguments.codes else TensorType.FLOAT32
            stream.write(layers(arguments.layers or (29 if arguments.codes else 9), type))
        measure(kind, path)


if __name__ == "__main__":
    main()
