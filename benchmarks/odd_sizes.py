"""Real models with one size of one input at 0, 1, 2 or 2^31 - 1, beside LiteRT.

    python -m benchmarks.odd_sizes [--sizes 1,2] [MODEL_OR_FOLDER...]

Each is resized, allocated, fed and invoked in a process that may take 4 GiB and 60 seconds. What
no model may do ends the command with 1: end the process, hang, raise an error that is none of the
library's, or give another result than LiteRT. Networks round differently layer after layer: where
LiteRT's own sets of kernels do not differ as much, the numpy kernels have to give its result.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.budgets import MODELS, models_in
from tests.fuzz.compare import difference, severity
from tests.fuzz.judge import Finding, Record
from tests.fuzz.limits import deadline
from tests.fuzz.litert import Array, LiteRT, Question
from tests.fuzz.mutate import Mutant
from tests.fuzz.pool import judge_all
from tests.fuzz.steps import run
from tflite_ort import BridgeError
from tflite_ort.schema import read_model

SIZES = (0, 1, 2, 2**31 - 1)
PATIENCE = (30.0, 60.0)
KERNELS = ("default", "optimized", "reference")
# Of networks, whose layers each differ in the last bits.
_CLOSE = severity("1e-3")
_CLOSE_CODES = ("2 quanta", "4 quanta")
_LISTED = 40
# What inputs are drawn from: no NaN and no infinity is among them.
_SEED = 25


@dataclass(frozen=True)
class Attempt:
    """A model with another shape of one input."""

    path: Path
    position: int
    shape: tuple[int, ...]
    size: int

    def __str__(self) -> str:
        return f"{self.path.name} input {self.position} {list(self.shape)}"


def attempts(models: list[Path], sizes: list[int]) -> Iterator[Attempt]:
    """Every size in the place of every size of every input."""
    for path in models_in(models):
        try:
            graph = read_model(path).subgraphs[0]
        except (BridgeError, IndexError):
            continue
        for position, index in enumerate(graph.inputs):
            shape = graph.tensors[index].shape
            for axis in range(len(shape)):
                for size in sizes:
                    odd = (*shape[:axis], size, *shape[axis + 1 :])
                    yield Attempt(path, position, odd, size)


def judged(mutant: Mutant, litert: LiteRT | None, seconds: float) -> Record:
    """Where both end, and how the results differ from the nearest of LiteRT's kernels."""
    assert litert is not None
    content, seed, shapes = mutant.content, mutant.inputs, mutant.shapes
    deadline(seconds)
    outcome = run(content, seed, shapes=shapes)
    deadline(0)
    if outcome.untyped:
        return Record(mutant.number, outcome.stage, findings=(Finding("untyped", outcome.untyped),))
    answer = litert.ask(Question(content, seed, seconds=seconds, shapes=shapes))
    if not outcome.stage == answer.stage == "done":
        said = Finding("said", f"{outcome.error} | LiteRT: {answer.error}")
        return Record(mutant.number, outcome.stage, litert=answer.stage, findings=(said,))
    kinds, results = [], list[tuple[Array, ...]]()
    for kernels in KERNELS:
        each = litert.ask(Question(content, seed, kernels, seconds=seconds, shapes=shapes))
        if each.stage == "done":
            results.append(each.outputs)
            kinds.append(difference(outcome.outputs, each.outputs, outcome.quantised))
    least = min(kinds, key=severity, default="")
    own = [difference(results[0], each, outcome.quantised) for each in results[1:]]
    close = _is_close(least) or severity(least) <= max(map(severity, own), default=0)
    found = least and not close and not _rounded(mutant, results, seconds)
    findings = (Finding("difference", least),) if found else ()
    return Record(mutant.number, "done", litert="done", findings=findings, compared=True)


def _is_close(kind: str) -> bool:
    return severity(kind) <= _CLOSE or kind in _CLOSE_CODES


def _rounded(mutant: Mutant, results: list[tuple[Array, ...]], seconds: float) -> bool:
    """Whether the difference comes from rounding, layer after layer: the numpy kernels, which round
    codes and activations as LiteRT's reference kernels do, give LiteRT's result."""
    deadline(seconds)
    numpy = run(
        *(mutant.content, mutant.inputs), shapes=mutant.shapes, providers=[], hybrid="dynamic"
    )
    deadline(0)
    kinds = [difference(numpy.outputs, each, numpy.quantised) for each in results]
    return numpy.stage == "done" and any(map(_is_close, kinds))


@dataclass
class Sweep:
    """What was found, by size."""

    every: list[Attempt]
    counts: defaultdict[int, Counter[str]]
    faults: list[str]
    apart: list[str]

    def add(self, record: Record) -> None:
        attempt, said = self.every[record.number], record.findings
        found = said[0] if said else Finding("", "")
        text = f"{attempt}: {found.bucket} {found.kind}"
        if record.stage in ("death", "hang") or found.bucket in ("untyped", "difference"):
            kind = found.bucket
            self.faults.append(text)
        elif record.stage == record.litert == "done":
            kind = "LiteRT's result"
        elif record.stage == "done":
            kind = "runs, LiteRT refuses"
            self.apart.append(f"{kind}: {text}")
        elif record.litert == "done":
            kind = "refused, LiteRT runs"
            self.apart.append(f"{kind}: {text}")
        elif record.litert in ("died", "hung"):
            kind = f"refused, LiteRT {record.litert}"
        else:
            kind = "too large to feed" if record.stage == "too large" else "both refuse"
        self.counts[attempt.size][kind] += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="*", default=MODELS)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--seconds", type=float, help="when to stop")
    parser.add_argument("--start", type=int, default=0, help="the first attempt")
    options = parser.parse_args()
    sizes = [int(size) for size in options.sizes.split(",")]
    sweep = Sweep(list(attempts(options.models, sizes)), defaultdict(Counter), [], [])

    def make(number: int) -> Mutant:
        attempt = sweep.every[number]
        shapes = ((attempt.position, attempt.shape),)
        return Mutant(number, attempt.path.read_bytes(), _SEED, shapes=shapes)

    numbers = iter(range(options.start, len(sweep.every)))
    judge_all(make, numbers, sweep.add, 1, options.seconds, patience=PATIENCE, judge=judged)
    models = len({attempt.path for attempt in sweep.every})
    print(f"{sum(map(Counter.total, sweep.counts.values()))} of {len(sweep.every)} attempts")
    print(f"on {models} models")
    for size, counts in sorted(sweep.counts.items()):
        print(f"{size}: " + ", ".join(f"{n} {kind}" for kind, n in counts.most_common()))
    print(*sweep.apart[:_LISTED], *sweep.faults, sep="\n")
    return 1 if sweep.faults else 0


if __name__ == "__main__":
    sys.exit(main())
