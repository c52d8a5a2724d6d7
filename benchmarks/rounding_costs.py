"""How good the costs are by which float rows are rounded before they meet 8-bit weights.

    python -m benchmarks.rounding_costs [--seconds 1] [--copies 4]

Layers of 2 to 1,000 rows and 32 to 1,024 columns, one thread. Microseconds: a product of floats,
one of rounded rows with the nodes that round them, and one of three products that share rounded
rows. `auto` is the faster one by the costs of `opmap/graph/costs.json`. At the end the
geometric mean of what `auto`, floats and rounded rows take, over the faster one of each layer.
Wants a quiet machine: a run of several milliseconds is interrupted on a busy one, which makes the
longest graphs, those of shared rows, look twice as slow.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping

import numpy as np

from benchmarks.product_floors import Copies, gemm, rounded_rows, weighted
from tflite_ort.opmap import Target
from tflite_ort.opmap.rules.lowerings.rounded_products import is_enough
from tflite_ort.providers.trials import exact_weight_type

_ROWS = (2, 4, 8, 16, 32, 64, 128, 256, 1000)
# Depth and units.
_WEIGHTS = (
    *((64, 64), (128, 128), (64, 256), (256, 64), (384, 128), (128, 384), (256, 256)),
    *((32, 128), (320, 320), (512, 512), (384, 1024), (1024, 384), (1024, 1024)),
)
_MOST, _SHARED = 2**26, 3


def graph_of(kind: str, rows: int, depth: int, units: int, copies: int) -> Copies:
    """A graph of equal layers; `kind` is ``"floats"``, or how many products share rounded rows."""
    g = Copies()
    for _ in range(copies):
        if kind == "floats":
            g.outputs.append(gemm(g, rows, depth, units))
            continue
        rounded, steps = rounded_rows(g, rows, depth)
        g.outputs += [weighted(g, rounded, steps, depth, units) for _ in range(int(kind))]
    return g


def times(sizes: tuple[int, int, int], copies: int, seconds: float) -> Mapping[str, float]:
    """The microseconds of a layer: as floats, rounded, and as one of three that share rows."""
    kinds = ("floats", "1", str(_SHARED))
    runs = {kind: graph_of(kind, *sizes, copies).run() for kind in kinds}
    taken: dict[str, list[float]] = {kind: [] for kind in kinds}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(taken["floats"]) < 12:
        for kind, run in runs.items():
            started = time.perf_counter()
            run()
            taken[kind].append(time.perf_counter() - started)
    return {kind: float(np.quantile(each, 0.3)) * 1e6 / copies for kind, each in taken.items()}


def main() -> None:
    """Print a line for each layer, and the means."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1, help="of each layer")
    parser.add_argument("--copies", type=int, default=4)
    given, target = parser.parse_args(), Target(exact_weight_type(), cpu_kernels=True)
    losses = []
    for rows in _ROWS:
        for depth, units in _WEIGHTS:
            if rows * depth * units > _MOST:
                continue
            us = times((rows, depth, units), given.copies, given.seconds)
            for sharing in (1, _SHARED):
                floats, rounded = us["floats"], us[str(sharing)] / sharing
                rounds = is_enough(target, (rows, units, depth), sharing)
                chosen, least = rounded if rounds else floats, min(floats, rounded)
                losses.append([chosen / least, floats / least, rounded / least])
                said = f"{floats:8.1f} floats {rounded:8.1f} rounded, {chosen / least:.2f}"
                print(f"{rows:4} x {depth} x {units}, {sharing} sharing: {said}", flush=True)
    means = np.exp(np.log(losses).mean(axis=0))
    names = ("auto", "floats", "rounded")
    print(", ".join(f"{name} {mean:.3f}" for name, mean in zip(names, means, strict=True)))


if __name__ == "__main__":
    main()
