"""The floor of a network: each operator by the best of its lowerings, beside LiteRT.

    python -m benchmarks.by_operator MODEL... [--seconds S] [--layers N] [--threads N] [--json FILE]
    python -m benchmarks.by_operator --table FILE

Microseconds. Each layer runs alone: LiteRT as a model of one operator, ours in a session for every
lowering that it can get. All of them take turns and the shortest turn counts. The time of an ADD of
one element, which is what a run costs that does nothing, is taken off. Equal layers are timed once.
`chosen` is the lowering that the library takes by default, `best` the fastest one. What ORT
does over several layers (fusion, memory that stays in the cache) is not in the sums; the last line
is of the whole network. `--table` prints a record as the rows of docs/tuning_study.md.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import ai_edge_litert.interpreter as litert
import numpy as np

from benchmarks.invoke_overhead import one_add
from benchmarks.lowerings import lowerings_of
from tflite_ort import BridgeError, Interpreter, WellKnownOpResolver
from tflite_ort.base.files import write_text
from tflite_ort.command.arrays import AnyInterpreter, set_inputs
from tflite_ort.command.benchmark import machine
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.opmap import Target
from tflite_ort.opmap.graph.costs import modelled_chooser
from tflite_ort.providers.provider import ON_CPU
from tflite_ort.providers.traits import traits_of
from tflite_ort.providers.trials import exact_weight_type
from tflite_ort.schema import Model, OperatorView, read_model, write_model
from tflite_ort.specialize.specialization import specialize
from tflite_ort.tuning.table import layer_key
from tflite_ort.tuning.timing import Effort, run_of, shortest_turns
from tflite_ort.verification.extraction import one_operator

_MOST_LOWERINGS = 10
_PLAIN = "the only one"
_LEAST_LOST = 1.0  # microseconds of an operator that a row of the table is for


@dataclass
class Layers:
    """Equal layers of a network, in microseconds for one of them.

    Args:
        name: the operator.
        layer: operator, types, shapes and options.
        lowering: the fastest one.
    """

    name: str
    layer: str
    litert: float
    chosen: float
    best: float
    lowering: str
    count: int = 1

    @property
    def lost(self) -> float:
        """What all of them take longer than LiteRT at best."""
        return self.count * (self.best - self.litert)


def measured(model: Model, threads: int, effort: Effort) -> Iterator[Layers]:
    """The different layers of the first subgraph that both runtimes run alone."""
    resolver = WellKnownOpResolver()
    target = replace(traits_of(ON_CPU.name).target, weights=exact_weight_type())
    target = replace(target, carried_boundary=True)
    sum_of_one = read_model(one_add())
    (add,) = specialize(sum_of_one, 0, {}, resolver.kernels).operators
    idle = times_of(sum_of_one, add, target, threads, effort)
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
            found = times_of(model, bound, target, threads, effort)
        except (BridgeError, ValueError, RuntimeError) as error:
            print(f"{op.label}: {str(error).splitlines()[0][:100]}")
            continue
        less = (found.litert - idle.litert, found.chosen - idle.chosen, found.best - idle.best)
        litert_us, chosen, best = (max(0.0, each) for each in less)
        known[key] = replace(found, litert=litert_us, chosen=chosen, best=best)
    yield from known.values()


def times_of(
    model: Model, op: OperatorView[Any], target: Target, threads: int, effort: Effort
) -> Layers:
    """One operator in LiteRT and by its lowerings."""
    translators = WellKnownOpResolver().translators
    content = write_model(one_operator(model, op.index)[0])
    other = litert.Interpreter(model_content=content, num_threads=threads)
    feed(other, content)
    lowerings = lowerings_of(op, target, translators)
    chosen = modelled_chooser(target.weights)(op, lowerings) if lowerings else _PLAIN
    names = [each.name for each in lowerings] or [_PLAIN]
    names = list(dict.fromkeys([chosen, *names]))[:_MOST_LOWERINGS]
    runs = [run_of([op], name, target, translators, threads) for name in names]
    theirs, *ours = (each * 1e6 for each in shortest_turns([other.invoke, *runs], effort))
    best = int(np.argmin(ours))
    return Layers(op.name, layer_key(op), theirs, ours[0], ours[best], names[best])


def network(content: bytes, threads: int, effort: Effort) -> Sequence[float]:
    """Microseconds of both runtimes for the whole network."""
    both: list[AnyInterpreter] = [
        litert.Interpreter(model_content=content, num_threads=threads),
        Interpreter(model_content=content, num_threads=threads, resolver=WellKnownOpResolver()),
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


def by_name(layers: Sequence[Layers]) -> list[tuple[str, list[Layers]]]:
    """The layers of each operator, the one where most is lost first."""
    kinds: dict[str, list[Layers]] = defaultdict(list)
    for each in layers:
        kinds[each.name].append(each)
    return sorted(kinds.items(), key=lambda item: -sum(each.lost for each in item[1]))


def totals(layers: Sequence[Layers]) -> tuple[int, float, float, float]:
    """How many they are, and microseconds of all: LiteRT's, as chosen, at best."""
    return (
        sum(each.count for each in layers),
        sum(each.count * each.litert for each in layers),
        sum(each.count * each.chosen for each in layers),
        sum(each.count * each.best for each in layers),
    )


def show(layers: Sequence[Layers], most: int) -> None:
    """The layers where most is lost, sums by operator, and the sum of all."""
    for each in sorted(layers, key=lambda each: -each.lost)[:most]:
        print(f"{each.count:3} x {each.litert:8.1f} {each.best:8.1f} {each.lowering}  {each.layer}")
    print(f"{'operator':28} {'count':>6} {'LiteRT':>9} {'chosen':>9} {'best':>9}  best lowerings")
    for name, own in [*by_name(layers), ("all", list(layers))]:
        lowerings = ", ".join(sorted({each.lowering for each in own}))[:60]
        count, *sums = totals(own)
        print(f"{name:28} {count:6} {'{:9.1f} {:9.1f} {:9.1f}'.format(*sums)}  {lowerings}")


def table(record: Path) -> None:
    """The rows of the table in docs/tuning_study.md: operators that lose a microsecond and more."""
    print("| network | operator | layers | LiteRT | at best | chosen |")
    print("| --- | --- | --- | --- | --- | --- |")
    for entry in json.loads(record.read_text())["networks"]:
        layers = [Layers(**each) for each in entry["layers"]]
        theirs, ours = entry["network"]
        count, name = totals(layers)[0], entry["name"]
        print(f"| {name} | whole network | {count} | {theirs:.1f} | | {ours:.1f} |")
        for name, own in by_name(layers):
            count, litert_us, chosen, best = totals(own)
            if best - litert_us >= _LEAST_LOST:
                print(f"| | {name} | {count} | {litert_us:.1f} | {best:.1f} | {chosen:.1f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--seconds", type=float, default=0.03, help="of each lowering")
    parser.add_argument("--layers", type=int, default=0, help="show so many layers too")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path)
    given = parser.parse_args()
    effort, networks = Effort(given.seconds), []
    for path in given.models:
        layers = list(measured(read_model(path), given.threads, effort))
        print(f"\n{path.stem}: microseconds of a run")
        show(layers, given.layers)
        whole = network(path.read_bytes(), given.threads, effort)
        print(f"the whole network{'':22} LiteRT {whole[0]:9.1f}  ours {whole[1]:9.1f}")
        own = [asdict(each) for each in layers]
        networks.append({"name": path.stem, "network": list(whole), "layers": own})
    if given.json:
        record = {**machine(), "threads": given.threads, "networks": networks}
        write_text(given.json, json.dumps(record, indent=1) + "\n")
    if given.table:
        table(given.table)


if __name__ == "__main__":
    main()
