"""How far networks with 8-bit weights are from the same networks in floats, ours and LiteRT's.

    python -m benchmarks.rounding [--models FOLDER] [--draws 5] [NAME...]

LiteRT rounds the activations of their products to 8 bits. `hybrid="auto"`, the default here, does
so where that is faster. A figure is the root of the mean square of what differs from
`hybrid="float"`, which does not round, as a part of that of all results; over all float outputs of
a signature and some drawn inputs. The last column compares ours with the worst of LiteRT's kernel
sets.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.signatures import FOLDER, KERNELS, litert, ours
from benchmarks.transformers import drawn

Array = npt.NDArray[Any]
Call = Callable[[Mapping[str, Array]], Mapping[str, Array]]
_COLUMNS = (*KERNELS, "ours")


def distance(results: Sequence[Mapping[str, Array]], true: Sequence[Mapping[str, Array]]) -> float:
    """The root of the mean square of the differences, as a part of that of the true results."""
    squares = whole = 0.0
    for got, want in zip(results, true, strict=True):
        for name, array in want.items():
            if array.dtype.kind != "f":
                continue
            shown = np.isfinite(array) & np.isfinite(got[name])
            squares += float(((got[name] - array)[shown].astype(np.float64) ** 2).sum())
            whole += float((array[shown].astype(np.float64) ** 2).sum())
    return float(np.sqrt(squares / whole)) if whole else 0.0


def distances(path: Path, entry: Mapping[str, Any], signature: str, draws: int) -> list[float]:
    """Of LiteRT's kernel sets and of ours, over some inputs."""
    inputs = [drawn(entry, signature, seed) for seed in range(draws)]
    true = [ours(path, "float")(signature)(each) for each in inputs]
    calls = [litert(path, kernels)(signature) for kernels in KERNELS.values()]
    calls.append(ours(path, "auto")(signature))
    return [distance([call(each) for each in inputs], true) for call in calls]


def main() -> None:
    """Print a line a signature."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=Path, default=FOLDER)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    print(f"{'model':34} {'signature':16}", *(f"{name:>9}" for name in _COLUMNS), "   share")
    for entry in json.loads((given.models / "index.json").read_text())["models"]:
        chosen = not given.names or any(name in entry["file"] for name in given.names)
        if not (entry.get("hybrid") and chosen):
            continue
        for signature in entry["signatures"]:
            found = distances(given.models / entry["file"], entry, signature, given.draws)
            *theirs, mine = found
            print(
                f"{entry['name']:34} {signature:16}",
                *(f"{each:9.1e}" for each in found),
                f"{mine / max(theirs):8.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
