"""What it costs to cut a network by an operator that runs in numpy, in microseconds per cut.

    python benchmarks/partition_overhead.py [--rounds N] [--json FILE]

The same chain of sums runs whole, and in three parts with two numpy identities between them; both
on one thread, in turns. The bar is 30 microseconds per cut, and what copying the tensor takes.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from tflite_ort import BuiltinOpResolver, Interpreter, Registration
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import interleaved, machine
from tflite_ort.schema import AddOptions, ModelBuilder, Op

BAR_MICROSECONDS = 30.0
SHAPES = [(1, 64), (1, 112, 112, 32)]
SUMS, CUTS = 12, (4, 8)


def chain(shape: tuple[int, ...], cuts: tuple[int, ...]) -> bytes:
    """x + x, and so on, with a custom Identity after those in `cuts`."""
    builder = ModelBuilder()
    graph, last = builder.subgraph("main").tensor("x", shape), "x"
    for number in range(1, SUMS + 1):
        graph.tensor(f"sum{number}", shape)
        graph.operator(Op.ADD, [last, last], [f"sum{number}"], AddOptions())
        last = f"sum{number}"
        if number in cuts:
            graph.tensor(f"same{number}", shape).operator("Identity", [last], [f"same{number}"])
            last = f"same{number}"
    graph.inputs("x").outputs(last)
    return builder.write()


def ready(model: bytes) -> Interpreter:
    resolver = BuiltinOpResolver()
    identity = Registration(kernel=lambda op, inputs, state: (inputs[0],))
    resolver.add_custom("Identity", identity)
    interpreter = Interpreter(model_content=model, num_threads=1, resolver=resolver)
    interpreter.allocate_tensors()
    return interpreter


def measure(shape: tuple[int, ...], rounds: int) -> dict[str, float]:
    """Microseconds of either network, of a cut, and of copying the tensor once: the least of all
    rounds, which other work on the machine disturbs least."""
    cut, whole = ready(chain(shape, CUTS)), ready(chain(shape, ()))
    steps = {row.partition for row in cut.delegation()}
    assert len(steps) == 2 * len(CUTS) + 1
    source, target = np.ones(shape, np.float32), np.zeros(shape, np.float32)
    times = interleaved(
        [cut.invoke, whole.invoke, lambda: np.copyto(target, source)], rounds, min_time=0.02
    )
    in_parts, at_once, copy = (min(each) * 1e6 for each in times)
    return {
        "cut_us": in_parts,
        "whole_us": at_once,
        "per_cut_us": (in_parts - at_once) / len(CUTS),
        "copy_us": copy,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=51)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results = {str(list(shape)): measure(shape, arguments.rounds) for shape in SHAPES}
    for shape, result in results.items():
        numbers = ", ".join(f"{name} {value:.1f}" for name, value in result.items())
        within = result["per_cut_us"] <= BAR_MICROSECONDS + result["copy_us"]
        print(f"{shape}: {numbers}: {'within' if within else 'above'} the bar")
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
