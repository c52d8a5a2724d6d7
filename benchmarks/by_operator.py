"""Each layer of some networks alone: our best lowering beside LiteRT, in microseconds.

    python -m benchmarks.by_operator MODEL... [--seconds S] [--rows N] [--threads N] [--json FILE]

A layer becomes a model of one operator. Equal layers are measured once. The time that a model of
one ADD takes is taken off both, since a network pays it once. What is left is a floor: a network
whose layers take longer alone than in LiteRT needs another kernel, or fewer nodes. The rows where
most is lost come first.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ai_edge_litert.interpreter import Interpreter as Litert

from benchmarks.invoke_overhead import one_add
from tflite_ort import Interpreter
from tflite_ort.command.arrays import AnyInterpreter, set_inputs
from tflite_ort.command.benchmark import machine
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.files import write_text
from tflite_ort.resolvers import BuiltinOpResolver
from tflite_ort.schema import BridgeError, Model, read_model, write_model
from tflite_ort.specialize.specialization import specialize
from tflite_ort.tuning.table import layer_key
from tflite_ort.tuning.timing import Effort, shortest_turns
from tflite_ort.verification.extraction import one_operator


@dataclass(frozen=True, slots=True)
class Row:
    """Equal layers of a network, and what one of them takes.

    Args:
        layer: operator, types, shapes and options.
        count: how many there are.
        litert, ours: microseconds, without what an invoke costs.
    """

    model: str
    layer: str
    count: int
    litert: float
    ours: float

    @property
    def lost(self) -> float:
        """Microseconds of all of them that LiteRT does not take."""
        return self.count * (self.ours - self.litert)


def ready(interpreter: AnyInterpreter) -> AnyInterpreter:
    """`interpreter` over random inputs, after an invoke."""
    interpreter.allocate_tensors()
    set_inputs(interpreter, random_inputs(interpreter.get_input_details(), 0))
    interpreter.invoke()
    return interpreter


def both(content: bytes, threads: int, effort: Effort) -> tuple[float, float]:
    """Microseconds of an invoke of LiteRT and of ours.

    Raises:
        BridgeError, ValueError, RuntimeError: one of them cannot run it.
    """
    ours: Any = Interpreter(model_content=content, num_threads=threads, tune=True)
    litert: Any = Litert(model_content=content, num_threads=threads)
    invokes = [ready(litert).invoke, ready(ours).invoke]
    first, second = shortest_turns(invokes, effort)
    return first * 1e6, second * 1e6


def rows(name: str, model: Model, threads: int, effort: Effort) -> Iterator[Row]:
    """The layers of the first subgraph that both run alone."""
    base = both(one_add(), threads, effort)
    layers: dict[str, list[int]] = {}
    graph = specialize(model, 0, {}, BuiltinOpResolver().kernels)
    for view in graph.operators:
        if view.outputs and any(not tensor.is_constant for tensor in view.present_inputs()):
            layers.setdefault(layer_key(view), []).append(view.index)
    for layer, indices in layers.items():
        part, inputs, _ = one_operator(model, indices[0])
        if not inputs:
            continue
        try:
            times = both(write_model(part), threads, effort)
        except (BridgeError, ValueError, RuntimeError) as error:
            print(f"# {layer}: {str(error).partition(chr(10))[0]}")
            continue
        litert, ours = (max(0.0, time - least) for time, least in zip(times, base, strict=True))
        yield Row(name, layer, len(indices), litert, ours)


def show(found: Sequence[Row], most: int) -> None:
    """The rows where most is lost, and the sums by operator."""
    for row in sorted(found, key=lambda row: -row.lost)[:most]:
        print(f"{row.lost:9.1f} {row.count:3} x {row.litert:8.1f} {row.ours:8.1f}  {row.layer}")
    print(f"{'operator':28} {'layers':>6} {'LiteRT':>9} {'ours':>9} {'ratio':>6}")
    for operator in sorted({row.layer.split()[0] for row in found}):
        own = [row for row in found if row.layer.split()[0] == operator]
        litert = sum(row.count * row.litert for row in own)
        ours = litert + sum(row.lost for row in own)
        count, ratio = sum(row.count for row in own), litert / max(ours, 0.1)
        print(f"{operator:28} {count:6} {litert:9.1f} {ours:9.1f} {ratio:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=0.02, help="a layer and runtime")
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    effort, found = Effort(seconds=arguments.seconds), list[Row]()
    for path in arguments.models:
        model = read_model(path.read_bytes())
        own = list(rows(path.stem, model, arguments.threads, effort))
        print(f"\n{path.stem}")
        show(own, arguments.rows)
        found += own
    if arguments.json:
        record = {**machine(), "layers": [asdict(row) for row in found]}
        write_text(arguments.json, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
