"""How far each operator of a network is from LiteRT: the best of its lowerings, and LiteRT's time.

    python benchmarks/floor.py MODEL... [--seconds 0.03] [--rows 12]

Each layer runs alone: LiteRT as a model of one operator, ours in a session for every lowering that
it can get. All of them take turns and the shortest turn counts. The time of an ADD of one element,
which is what a run costs that does nothing, is taken off. Equal layers are timed once. `chosen` is
the lowering that the library takes by default, `best` the fastest one. What ONNX Runtime does over
several layers (fusion, memory that stays in the cache) is not in the sums. The last line is of the
whole network.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np

from tflite_ort import BridgeError, Interpreter, WellKnownOpResolver
from tflite_ort.command.arrays import AnyInterpreter, set_inputs
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.opmap import Target
from tflite_ort.providers.provider import ON_CPU
from tflite_ort.providers.traits import traits_of
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import (
    AddOptions,
    Model,
    ModelBuilder,
    Op,
    OperatorView,
    read_model,
    write_model,
)
from tflite_ort.specialize.specialization import specialize
from tflite_ort.tuning.costs import modelled_chooser
from tflite_ort.tuning.table import layer_key
from tflite_ort.tuning.timing import Effort, lowerings_of, run_of, shortest_turns
from tflite_ort.verification.extraction import one_operator

_MOST_LOWERINGS = 10
_PLAIN = "the only one"


@dataclass
class Layers:
    """Equal layers of a network, in microseconds for one of them."""

    name: str
    litert: float
    chosen: float
    best: float
    lowering: str
    count: int = 1


def main() -> None:
    """A table for each network."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=0.03, help="of each lowering")
    parser.add_argument("--rows", type=int, default=12)
    given = parser.parse_args()
    effort = Effort(given.seconds)
    for path in given.models:
        model = read_model(path)
        layers = list(measured(model, effort))
        print(f"\n{path.stem}: microseconds of a run")
        show(layers, given.rows)
        whole = network(path, effort)
        print(f"the whole network{'':22} LiteRT {whole[0]:9.1f}  ours {whole[1]:9.1f}")


def measured(model: Model, effort: Effort) -> Iterator[Layers]:
    """The different layers of the first subgraph that both runtimes run alone."""
    resolver = WellKnownOpResolver()
    target = replace(traits_of(ON_CPU.name).target, weights=exact_weight_type())
    target = replace(target, carried_boundary=True)
    idle = times_of(read_model(one_add()), 0, target, resolver, effort)
    known: dict[str, Layers] = {}
    for op in specialize(model, 0, {}, resolver.kernels).operators:
        entry = resolver.translators.of(op)
        if entry is None:
            continue
        bound = entry.inputs.bind(op)
        key = layer_key(bound)
        if key in known:
            known[key].count += 1
            continue
        try:
            found = times_of(model, op.index, target, resolver, effort, bound)
        except (BridgeError, ValueError, RuntimeError) as error:
            print(f"{op.label}: {str(error).splitlines()[0][:100]}")
            continue
        less = (found.litert - idle.litert, found.chosen - idle.chosen, found.best - idle.best)
        litert_us, chosen, best = (max(0.0, each) for each in less)
        known[key] = replace(found, litert=litert_us, chosen=chosen, best=best)
    yield from known.values()


def times_of(
    model: Model,
    index: int,
    target: Target,
    resolver: WellKnownOpResolver,
    effort: Effort,
    op: OperatorView[Any] | None = None,
) -> Layers:
    """One operator in LiteRT and by its lowerings."""
    if op is None:
        op = specialize(model, 0, {}, resolver.kernels).operators[index]
    content = write_model(one_operator(model, index)[0])
    other = litert.Interpreter(model_content=content, num_threads=1)
    feed(other, content)
    lowerings = lowerings_of(op, target, resolver.translators)
    chosen = modelled_chooser(target.weights)(op, lowerings) if lowerings else _PLAIN
    names = [each.name for each in lowerings] or [_PLAIN]
    names = list(dict.fromkeys([chosen, *names]))[:_MOST_LOWERINGS]
    runs = [run_of(op, name, target, resolver.translators, 1) for name in names]
    theirs, *ours = (each * 1e6 for each in shortest_turns([other.invoke, *runs], effort))
    best = int(np.argmin(ours))
    return Layers(op.name, theirs, ours[0], ours[best], names[best])


def network(path: Path, effort: Effort) -> Sequence[float]:
    """Microseconds of both runtimes for the whole network."""
    content = path.read_bytes()
    both: list[AnyInterpreter] = [
        litert.Interpreter(model_content=content, num_threads=1),
        Interpreter(model_content=content, resolver=WellKnownOpResolver()),
    ]
    runs: list[Callable[[], None]] = []
    for each in both:
        feed(each, content)
        runs.append(each.invoke)
    return [seconds * 1e6 for seconds in shortest_turns(runs, Effort(10 * effort.seconds))]


def feed(interpreter: AnyInterpreter, content: bytes) -> None:
    """Set random inputs."""
    interpreter.allocate_tensors()
    limits = index_limits(read_model(content))
    set_inputs(interpreter, random_inputs(interpreter.get_input_details(), 0, limits=limits))


def show(layers: Sequence[Layers], rows: int) -> None:
    """Sums by operator, the largest loss first, and the sum of all."""
    kinds: dict[str, list[Layers]] = defaultdict(list)
    for each in layers:
        kinds[each.name].append(each)
    sums = {name: totals(some) for name, some in kinds.items()}
    print(f"{'operator':28} {'count':>6} {'LiteRT':>9} {'chosen':>9} {'best':>9}  best lowerings")
    for name in sorted(sums, key=lambda name: sums[name][0] - sums[name][2])[:rows]:
        best = ", ".join(sorted({each.lowering for each in kinds[name]}))[:60]
        count = sum(each.count for each in kinds[name])
        print(f"{name:28} {count:6} {'{:9.1f} {:9.1f} {:9.1f}'.format(*sums[name])}  {best}")
    count = sum(each.count for each in layers)
    print(f"{'all':28} {count:6} {'{:9.1f} {:9.1f} {:9.1f}'.format(*totals(layers))}")


def totals(layers: Sequence[Layers]) -> tuple[float, float, float]:
    """Microseconds of all: LiteRT's, as chosen, at best."""
    return (
        sum(each.count * each.litert for each in layers),
        sum(each.count * each.chosen for each in layers),
        sum(each.count * each.best for each in layers),
    )


def one_add() -> bytes:
    """An ADD of one element."""
    builder = ModelBuilder()
    graph = builder.subgraph("main")
    for name in ("a", "b", "sum"):
        graph.tensor(name, (1,))
    graph.operator(Op.ADD, ["a", "b"], ["sum"], AddOptions()).inputs("a", "b").outputs("sum")
    return builder.write()


if __name__ == "__main__":
    main()
