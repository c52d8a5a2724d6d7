"""WHILE and IF beside LiteRT, on one thread: how many times its speed, and what an iteration costs.

    python benchmarks/control_flow.py [--rounds N] [--json FILE] [MODEL...]

Loops with a small body, with products of matrices, over the rows of a list, and a layer of gated
recurrent units as Keras writes it; each with a number of iterations that is known when the model
is made ready, and with one that is an input. Both runtimes take turns in one process; a ratio is
that of the medians. MODELs are measured in the same way.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from ai_edge_litert.interpreter import Interpreter as LiteRT

from tflite_ort import Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import interleaved, machine
from tflite_ort.schema import (
    AddOptions,
    FullyConnectedOptions,
    GatherOptions,
    IfOptions,
    ModelBuilder,
    MulOptions,
    Op,
    SplitOptions,
    SubOptions,
    TensorType,
    WhileOptions,
)

Array = npt.NDArray[Any]

ITERATIONS = (10, 100, 1000)
UNITS, FEATURES = 64, 32
# Of the bodies that have some work left in each iteration.
BAR = 0.8


class Graph:
    """A subgraph under construction; tensors are their names."""

    def __init__(self, model: Builder) -> None:
        self.rng, self.subgraph = model.rng, model.builder.subgraph()
        self.index = self.subgraph.index
        self._names = (f"tensor{number}" for number in itertools.count())

    def tensor(self, shape: Sequence[int] = (), type: TensorType = TensorType.FLOAT32) -> str:
        name = next(self._names)
        self.subgraph.tensor(name, shape, type)
        return name

    def input(self, shape: Sequence[int] = (), type: TensorType = TensorType.FLOAT32) -> str:
        name = self.tensor(shape, type)
        self.subgraph.inputs(name)
        return name

    def constant(self, values: npt.ArrayLike) -> str:
        name = next(self._names)
        self.subgraph.constant(name, values)
        return name

    def shape(self, name: str) -> tuple[int, ...]:
        return self.subgraph[name].shape

    def op(
        self,
        op: Op,
        *inputs: str,
        options: Any = None,
        shape: Sequence[int] | None = None,
        type: TensorType = TensorType.FLOAT32,
    ) -> str:
        """One result, of the shape of the first input unless another is given."""
        result = self.tensor(self.shape(inputs[0]) if shape is None else shape, type)
        self.subgraph.operator(op, inputs, [result], options)
        return result

    def add(self, a: str, b: str) -> str:
        return self.op(Op.ADD, a, b, options=AddOptions(), type=self.subgraph[a].type)

    def mul(self, a: str, b: str) -> str:
        return self.op(Op.MUL, a, b, options=MulOptions())

    def product(self, source: str, units: int) -> str:
        rows, columns = self.shape(source)
        weights = self.rng.normal(0, columns**-0.5, (units, columns)).astype(np.float32)
        inputs = [source, self.constant(weights), self.constant(np.zeros(units, np.float32))]
        options = FullyConnectedOptions()
        return self.op(Op.FULLY_CONNECTED, *inputs, options=options, shape=(rows, units))

    def split(self, source: str, parts: int) -> list[str]:
        rows, columns = self.shape(source)
        results = [self.tensor((rows, columns // parts)) for _ in range(parts)]
        inputs = [self.constant(1), source]
        self.subgraph.operator(Op.SPLIT, inputs, results, SplitOptions(num_splits=parts))
        return results


class Builder:
    """A model under construction; the first graph is the main one."""

    def __init__(self) -> None:
        self.rng, self.builder = np.random.default_rng(0), ModelBuilder()

    def graph(self) -> Graph:
        return Graph(self)

    def bytes(self) -> bytes:
        return self.builder.write()


# What an iteration makes of the counter, the state and the list.
Body = Callable[[Graph, str, str, str], str]


def loop(body: Body, state: Sequence[int], rows: Sequence[int], count: int | None) -> bytes:
    """`body` `count` times, or as often as an input says: main, condition and body."""
    model = Builder()
    main, condition, inside = model.graph(), model.graph(), model.graph()
    integer = (), TensorType.INT32
    start = main.constant(0)
    bound = main.input(*integer) if count is None else main.constant(count)
    given = [start, bound, main.input(state), main.input(rows)]
    results = [main.tensor(*integer) for _ in range(2)] + [main.tensor(state), main.tensor(rows)]
    main.subgraph.operator(Op.WHILE, given, results, WhileOptions(condition.index, inside.index))
    main.subgraph.outputs(results[2])
    i, n = condition.input(*integer), condition.input(*integer)
    condition.input(state)
    condition.input(rows)
    last = n if count is None else condition.constant(count)
    condition.subgraph.outputs(condition.op(Op.LESS, i, last, type=TensorType.BOOL))
    i, n = inside.input(*integer), inside.input(*integer)
    x, xs = inside.input(state), inside.input(rows)
    following = inside.add(i, inside.constant(1))
    inside.subgraph.outputs(following, n, body(inside, i, x, xs), xs)
    return model.bytes()


def small(g: Graph, i: str, x: str, xs: str) -> str:
    return g.add(g.mul(g.op(Op.TANH, x), g.constant(0.9)), g.constant(0.1))


def large(g: Graph, i: str, x: str, xs: str) -> str:
    return g.op(Op.TANH, g.product(g.op(Op.TANH, g.product(x, 512)), 256))


def row(g: Graph, i: str, xs: str) -> str:
    shape = g.shape(xs)[1:]
    return g.op(Op.GATHER, xs, i, options=GatherOptions(), shape=shape)


def listed(g: Graph, i: str, x: str, xs: str) -> str:
    """A running sum of what a product makes of the rows."""
    return g.add(g.mul(x, g.constant(0.5)), g.op(Op.TANH, g.product(row(g, i, xs), UNITS)))


def gated(g: Graph, i: str, x: str, xs: str) -> str:
    """Gated recurrent units."""
    given, state = (g.split(g.product(t, 3 * UNITS), 3) for t in (row(g, i, xs), x))
    z, r = (g.op(Op.LOGISTIC, g.add(given[k], state[k])) for k in (0, 1))
    new = g.op(Op.TANH, g.add(given[2], g.mul(r, state[2])))
    rest = g.op(Op.SUB, g.constant(1.0), z, options=SubOptions(), shape=g.shape(x))
    return g.add(g.mul(z, x), g.mul(rest, new))


def branch() -> bytes:
    """IF with two operators on one side and one on the other."""
    model, shape = Builder(), (4, 8)
    main, then, otherwise = model.graph(), model.graph(), model.graph()
    flag, x = main.input((), TensorType.BOOL), main.input(shape)
    chosen = IfOptions(then.index, otherwise.index)
    main.subgraph.outputs(main.op(Op.IF, flag, x, options=chosen, shape=shape))
    a, b = then.input(shape), otherwise.input(shape)
    then.subgraph.outputs(then.add(then.op(Op.TANH, a), then.constant(1.0)))
    otherwise.subgraph.outputs(otherwise.mul(b, otherwise.constant(2.0)))
    return model.bytes()


# Name -> body, state, list, and whether it has to meet the bar.
BODIES: dict[str, tuple[Body, Sequence[int], Callable[[int], Sequence[int]], bool]] = {
    "small body": (small, (4, 8), lambda _: (1,), False),
    "two products": (large, (1, 256), lambda _: (1,), True),
    "rows of a list": (listed, (1, UNITS), lambda n: (n, 1, FEATURES), False),
    "recurrent layer": (gated, (1, UNITS), lambda n: (n, 1, FEATURES), True),
}


def measure(name: str, model: bytes, rounds: int, given: int, has_bar: bool) -> dict[str, Any]:
    """Median microseconds of both, and LiteRT's over ours.

    Args:
        given: what integers among the inputs are.
    """
    rng = np.random.default_rng(0)
    runtimes = [LiteRT(model_content=model, num_threads=1)]
    runtimes.append(Interpreter(model_content=model, num_threads=1))
    runtimes[0].allocate_tensors()
    runtimes[1].allocate_tensors()
    for detail in runtimes[0].get_input_details():
        dtype, shape = np.dtype(detail["dtype"]), detail["shape"]
        feed = rng.normal(0, 0.5, shape) if dtype.kind == "f" else np.full(shape, given)
        for runtime in runtimes:
            runtime.set_tensor(detail["index"], feed.astype(dtype))
    times = interleaved([runtime.invoke for runtime in runtimes], rounds, min_time=0.01)
    theirs, ours = (statistics.median(seconds) * 1e6 for seconds in times)
    print(
        f"{name:44} {theirs:9.1f} us, ours {ours:9.1f} us: {theirs / ours:5.2f} times"
        + (f", at least {BAR}" if has_bar else "")
    )
    return {
        "name": name,
        "litert_us": round(theirs, 2),
        "ours_us": round(ours, 2),
        "ratio": round(theirs / ours, 2),
        "bar": BAR if has_bar else None,
    }


def per_iteration(rows: Sequence[dict[str, Any]], key: str) -> float:
    """Microseconds of one more iteration, from the shortest and the longest of `rows`."""
    fewest, *_, most = ITERATIONS
    return float(rows[-1][key] - rows[0][key]) / (most - fewest)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--json", type=Path)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL")
    arguments = parser.parse_args()
    results = [
        measure(path.stem, path.read_bytes(), arguments.rounds, 1, True)
        for path in arguments.models
    ]
    results.append(measure("branch of one or two", branch(), arguments.rounds, 1, False))
    for name, (body, state, rows, has_bar) in BODIES.items():
        for known in (True, False):
            group = []
            for count in ITERATIONS:
                model = loop(body, state, rows(count), count if known else None)
                label = f"{name}, {count} times{'' if known else ' by an input'}"
                has = has_bar and known
                group.append(measure(label, model, arguments.rounds, count, has))
            costs = [per_iteration(group, key) for key in ("litert_us", "ours_us")]
            print(f"    an iteration: {costs[0]:.2f} us, ours {costs[1]:.2f} us")
            results += group
    if arguments.json:
        write_text(arguments.json, json.dumps({**machine(), "results": results}, indent=2) + "\n")


if __name__ == "__main__":
    main()
