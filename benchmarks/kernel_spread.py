"""How far LiteRT's kernels are from each other: what the tolerances of `verify` are set by.

    python -m benchmarks.kernel_spread [--models FOLDER] [NAME...]

LiteRT's optimized and reference kernels are compared with its default ones, operator by operator,
each fed the same, and at the outputs of networks. Models: $TFLITE_ORT_MODELS, else
../shared/models.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.how_close import MODELS
from tflite_ort import BridgeError
from tflite_ort.schema import TensorType, read_model
from tflite_ort.schema.values.resolve import operator_view, tensor_views
from tflite_ort.verification import Difference, Random, Report, verify
from tflite_ort.verification.reading import as_verified

KERNELS = ("litert-optimized", "litert-reference")
SEEDS = (0, 100)


@dataclass
class Found:
    """Differences by operator name, and at outputs: the spread of one seed beside another's."""

    floats: dict[str, list[Difference]] = field(default_factory=lambda: defaultdict(list))
    codes: dict[str, list[Difference]] = field(default_factory=lambda: defaultdict(list))
    outputs: list[tuple[str, Difference, Difference]] = field(default_factory=list)

    def add(self, path: Path, reports: Sequence[Report]) -> None:
        """Of one network, a report for each seed."""
        name, hybrid = path.stem, hybrid_operators(path)
        for result in reports[0].runtimes:
            types = {each.index: each for each in result.tensors}
            for op in result.operators:
                if op.isolated is None or not op.isolated.finite:
                    continue
                scaled = any(types[index].scales for index in op.outputs if index in types)
                if op.isolated.quanta is None:
                    kind = f"{op.name} of integer weights" if op.index in hybrid else op.name
                    self.floats[kind].append(op.isolated)
                elif scaled:
                    self.codes[op.name].append(op.isolated)
        for first, second in zip(*(each.runtimes for each in reports), strict=True):
            for a, b in zip(first.outputs, second.outputs, strict=True):
                if a.difference.finite and b.difference.finite:
                    self.outputs.append((f"{name} {first.runtime}", a.difference, b.difference))


def hybrid_operators(path: Path) -> set[int]:
    """Those that multiply float activations by integer weights."""
    model = as_verified(read_model(path))
    views = tensor_views(model, 0)
    found = set()
    for index in range(len(model.subgraphs[0].operators)):
        inputs = operator_view(model, 0, index, views).present_inputs()
        weights = any(each.is_quantized and each.is_constant for each in inputs)
        if weights and any(each.type is TensorType.FLOAT32 for each in inputs[:1]):
            found.add(index)
    return found


def quantiles(values: Iterable[float]) -> str:
    """The median, what 99 % do not exceed, and the largest."""
    found = np.array(sorted(values))
    if not found.size:
        return "- | - | -"
    return " | ".join(f"{np.quantile(found, q):.2g}" for q in (0.5, 0.99, 1.0))


def table(
    title: str,
    found: dict[str, list[Difference]],
    measures: dict[str, Callable[[Difference], float]],
) -> None:
    heads = " | ".join(f"{name}: median | 99 % | largest" for name in measures)
    print(f"\n{title}\n\n| operator | count | exact | {heads} |")
    print("|---|---|---|" + "---|" * 3 * len(measures))
    rows = {**dict(sorted(found.items())), "all": [d for each in found.values() for d in each]}
    for name, each in rows.items():
        cells = " | ".join(quantiles(map(measure, each)) for measure in measures.values())
        exact = sum(d.exact for d in each) / max(1, len(each))
        print(f"| {name} | {len(each)} | {exact:.0%} | {cells} |")


def outputs(found: Found) -> None:
    floats = [d.relative for _, *pair in found.outputs for d in pair if d.quanta is None]
    steps = [d.quanta for _, *pair in found.outputs for d in pair if d.quanta is not None]
    print("\nOutputs of networks, median | 99 % | largest\n")
    print(f"floats, relative to the largest value ({len(floats)}): {quantiles(floats)}")
    print(f"codes, quanta ({len(steps)}): {quantiles(steps)}")
    ratios = []
    for name, a, b in found.outputs:
        sizes = sorted(d.relative if d.quanta is None else d.quanta for d in (a, b))
        if sizes[0]:
            ratios.append(sizes[1] / sizes[0])
        elif sizes[1]:
            print(f"differs with one seed alone: {name}: {sizes[1]:.2g}")
    print(f"spread of one seed over that of another ({len(ratios)}): {quantiles(ratios)}")
    for limit in (1.25, 1.5, 2.0, 3.0):
        print(f"  within {limit:g}: {np.mean(np.array(ratios) <= limit):.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of file names")
    parser.add_argument("--models", type=Path, default=MODELS)
    arguments = parser.parse_args()
    names, found = arguments.names or [""], Found()
    for path in sorted(arguments.models.glob("*.tflite")):
        if not any(name in path.stem for name in names):
            continue
        try:
            reports = [
                verify(path, runtimes=KERNELS, reference="litert", inputs=Random(2, seed=seed))
                for seed in SEEDS
            ]
        except (BridgeError, OSError) as error:
            print(f"{path.stem}: {str(error).splitlines()[0]}", file=sys.stderr)
            continue
        found.add(path, reports)
    relative = {"relative": lambda d: d.relative}
    table("Operators alone, floats", found.floats, relative)
    shares = {
        "quanta": lambda d: d.quanta or 0.0,
        "share of elements": lambda d: d.changed,
        "share of a channel": lambda d: d.crowded,
    }
    table("Operators alone, codes", found.codes, shares)
    outputs(found)


if __name__ == "__main__":
    main()
