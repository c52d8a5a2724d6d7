"""How close every network of a folder comes to LiteRT, as a page of the documentation.

    python benchmarks/how_close.py [--models FOLDER] [NAME...] > docs/how_close.md

Models: $TFLITE_ORT_MODELS, else ../shared/models.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tflite_ort import BridgeError
from tflite_ort.verification import Random, Report, RuntimeResult, Verdict, verify

MODELS = Path(
    os.environ.get("TFLITE_ORT_MODELS") or Path(__file__).parents[2] / "shared" / "models"
)
HEAD = """# How close

This page shows how far the outputs of networks are from LiteRT's, on random inputs.
`python benchmarks/how_close.py > docs/how_close.md` makes it. [verify.md](verify.md) explains the
verdicts, and how to get one for your own model.

- "Largest difference" is the difference from LiteRT's default kernels. A quantum is one step of a
  quantised value.
- "Spread" is the largest difference between LiteRT's other kernels and its default ones.
- "export" is the exported file in ONNX Runtime. It is listed if its verdict is another one than the
  interpreter's.
- Networks with float activations and integer weights can be off, since LiteRT rounds the
  activations to 8 bits, and this library does so only if that is faster. With `hybrid="xnnpack"`
  the library rounds as LiteRT does ([numbers.md](numbers.md#weights)), and tf__lstm_seq_dr is not
  off.

"""


@dataclass(frozen=True)
class Row:
    """One network."""

    name: str
    report: Report | None = None
    error: str = ""


def measured(path: Path) -> Row:
    started = time.perf_counter()
    try:
        report = verify(path, inputs=Random(samples=2))
    except (BridgeError, OSError) as error:
        row = Row(path.stem, error=str(error).splitlines()[0])
    else:
        row = Row(path.stem, report)
    seconds = time.perf_counter() - started
    verdict = row.error[:80] if row.report is None else row.report.verdict
    print(f"{path.stem}: {verdict}, {seconds:.1f} s", file=sys.stderr, flush=True)
    return row


def table(rows: Sequence[Row]) -> str:
    lines = [
        "| network | runtime | verdict | largest difference | spread | operator that is off |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        if row.report is None:
            lines.append(f"| {row.name} | | not run: {_cell(row.error)} | | | |")
        elif row.report.reference != "litert":
            reason = row.report.skipped.get("litert", "")
            lines.append(f"| {row.name} | | not compared: {_cell(reason)} | | | |")
        else:
            lines += [_line(row.name, each) for each in shown(row.report)]
    return "\n".join(lines) + "\n"


def shown(report: Report) -> list[RuntimeResult]:
    """The interpreter, and the export where it differs from it."""
    first, *others = report.runtimes
    return [first, *(each for each in others if each.verdict is not first.verdict)]


def _line(name: str, result: RuntimeResult) -> str:
    if result.error or not result.outputs:
        return f"| {name} | {result.runtime} | {_cell(result.reason)} | | | |"
    far = max(
        result.outputs, key=lambda each: (not each.difference.finite, each.difference.relative)
    )
    spread = "" if far.spread is None else far.spread.words
    apart = "" if far.difference.exact else far.difference.words
    named = "" if result.named is None else result.named.label
    return f"| {name} | {result.runtime} | {result.verdict} | {apart} | {spread} | {named} |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "/").split())[:160]


def summary(rows: Sequence[Row]) -> str:
    compared = [row.report for row in rows if row.report and row.report.reference == "litert"]
    counts = Counter(report.runtimes[0].verdict for report in compared)
    parts = [f"{counts[verdict]} {verdict}" for verdict in Verdict]
    return f"{len(compared)} networks that LiteRT runs: {', '.join(parts)}.\n\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of file names")
    parser.add_argument("--models", type=Path, default=MODELS)
    arguments = parser.parse_args()
    names = arguments.names or [""]
    paths = sorted(arguments.models.glob("*.tflite"))
    rows = [measured(path) for path in paths if any(name in path.stem for name in names)]
    print(HEAD + summary(rows) + table(rows), end="")


if __name__ == "__main__":
    main()
