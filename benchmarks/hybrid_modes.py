"""FULLY_CONNECTED of floats by int8 weights, with each value of `hybrid`, beside LiteRT.

    python -m benchmarks.hybrid_modes [--rounds 80]

Microseconds of an invoke, medians of turns, one thread. Prints the rows of docs/tuning_study.md.
"""

from __future__ import annotations

import argparse

import ai_edge_litert.interpreter as litert
import numpy as np

from benchmarks.kept_caches import timed
from tflite_ort import Interpreter
from tflite_ort.schema import (
    FullyConnectedOptions,
    ModelBuilder,
    Op,
    QuantizationParameters,
    TensorType,
)

MODES = ("auto", "float", "dynamic", "xnnpack")
# Rows, numbers of a row, units.
SHAPES = [
    (1, 128, 128),
    (1, 384, 1024),
    (1, 1024, 4096),
    (16, 64, 64),
    (16, 256, 256),
    (37, 128, 256),
    (48, 128, 128),
    (48, 384, 128),
    (64, 512, 512),
    (128, 384, 1024),
    (128, 1024, 384),
    (192, 128, 384),
    (512, 64, 64),
    (512, 256, 256),
]


def model(rows: int, depth: int, units: int) -> bytes:
    """One layer with a scale for each unit."""
    builder, rng = ModelBuilder(), np.random.default_rng(0)
    scales = QuantizationParameters(
        scale=np.full(units, 0.01, np.float32),
        zero_point=np.zeros(units, np.int64),
        quantized_dimension=0,
    )
    codes = rng.integers(-127, 128, (units, depth), np.int8)
    main = builder.subgraph("main").tensor("x", (rows, depth))
    main.constant("w", codes, TensorType.INT8, scales).constant("b", np.ones(units, np.float32))
    main.tensor("y", (rows, units))
    main.operator(Op.FULLY_CONNECTED, ["x", "w", "b"], ["y"], FullyConnectedOptions(), version=9)
    main.inputs("x").outputs("y")
    return builder.write()


def times(content: bytes, rounds: int) -> dict[str, float]:
    """What an invoke takes, by runtime and mode."""
    runtimes = {"LiteRT": litert.Interpreter(model_content=content, num_threads=1)}
    runtimes |= {mode: Interpreter(model_content=content, hybrid=mode) for mode in MODES}
    for runtime in runtimes.values():
        runtime.allocate_tensors()
        place = runtime.get_input_details()[0]
        x = np.random.default_rng(1).standard_normal(place["shape"]).astype(np.float32)
        runtime.set_tensor(place["index"], x)
    return timed({name: runtime.invoke for name, runtime in runtimes.items()}, rounds)


def main() -> None:
    """Print a line for each shape."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=80)
    rounds = parser.parse_args().rounds
    print(f"| rows | weights | LiteRT | {' | '.join(MODES)} |")
    print("| --- " * (3 + len(MODES)) + "|")
    for rows, depth, units in SHAPES:
        taken = times(model(rows, depth, units), rounds)
        figures = " | ".join(f"{us:.1f}" for us in taken.values())
        print(f"| {rows} | {depth} x {units} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
