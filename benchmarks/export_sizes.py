"""How large exports are, in parts of the `.tflite`: of every network of a folder.

    python benchmarks/export_sizes.py [--models FOLDER] [NAME...]

Models: ../shared/models and ../shared/models2, or $TFLITE_ORT_MODELS and $TFLITE_ORT_MODELS2. A
network of several signatures counts with the ones that `export_onnx` writes.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tflite_ort import BridgeError, export_onnx

SHARED = Path(__file__).parents[2] / "shared"
FOLDERS = [
    Path(os.environ.get("TFLITE_ORT_MODELS") or SHARED / "models"),
    Path(os.environ.get("TFLITE_ORT_MODELS2") or SHARED / "models2"),
]


@dataclass(frozen=True)
class Size:
    """Bytes of a network, and of its export."""

    name: str
    before: int
    after: int

    @property
    def ratio(self) -> float:
        """The export's part of the file."""
        return self.after / self.before


def sizes(paths: Sequence[Path]) -> Iterator[Size]:
    """Of every network that can be exported."""
    for path in paths:
        try:
            model = export_onnx(path, stateful=True)
        except BridgeError:
            continue
        yield Size(path.stem, path.stat().st_size, model.ByteSize())


def main() -> None:
    """Print a line a network, and for each folder the geometric mean and the worst."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--models", type=Path, nargs="*", default=FOLDERS)
    parser.add_argument("--least", type=int, default=0, help="leave out smaller files")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    for folder in given.models:
        paths = [
            path
            for path in sorted(folder.glob("*.tflite"))
            if path.stat().st_size >= given.least
            and (not given.names or any(name in path.name for name in given.names))
        ]
        found = list(sizes(paths))
        for size in found:
            print(f"{size.ratio:7.2f} {size.before:9} {size.after:9} {size.name}", flush=True)
        if found:
            mean = statistics.geometric_mean(size.ratio for size in found)
            worst = max(found, key=lambda size: size.ratio)
            print(
                f"{folder.name}: {mean:.2f} over {len(found)}, "
                f"largest {worst.ratio:.2f} ({worst.name})"
            )


if __name__ == "__main__":
    main()
