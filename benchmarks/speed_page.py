"""The speed of real networks beside LiteRT's: measured, and as the page docs/benchmarks.md.

    python benchmarks/speed_page.py measure FOLDER... [--threads 1,2] [--json RECORD]
    python benchmarks/speed_page.py page RECORD [--other]

The networks are those that the ``index.json`` of a folder calls so. `measure` prints the classes.
`page` writes the tables of docs/benchmarks.md and the plots in docs/pictures; with ``--other`` the
record is of another processor, which has a table of classes alone.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from tflite_ort import BridgeError
from tflite_ort.base.files import write_text
from tflite_ort.command.bench_suite import (
    ModelKind,
    classes,
    kind_of,
    print_classes,
    read_suite,
    speed_plot,
    suite_record,
)
from tflite_ort.command.benchmark import Result, Settings, measure

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "benchmarks.md"
RESOLVER = "tflite_ort:WellKnownOpResolver"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    verbs = parser.add_subparsers(required=True)
    measuring = verbs.add_parser("measure")
    measuring.add_argument("folders", nargs="+", type=Path)
    measuring.add_argument("--threads", default="1")
    measuring.add_argument("--rounds", type=int, default=15)
    measuring.add_argument("--min-time", type=float, default=0.02)
    measuring.add_argument("--json", type=Path)
    measuring.set_defaults(run=measured)
    writing = verbs.add_parser("page")
    writing.add_argument("record", type=Path)
    writing.add_argument("--other", action="store_true")
    writing.set_defaults(run=written)
    given = parser.parse_args()
    given.run(given)


def measured(given: argparse.Namespace) -> None:
    """Measure all networks, print the classes, keep the record."""
    settings = Settings(given.rounds, given.min_time, memory=False, resolver=RESOLVER)
    results: list[Result] = []
    kinds: dict[str, ModelKind] = {}
    for path in networks(given.folders):
        try:
            for threads in given.threads.split(","):
                results.append(measure(path, int(threads), settings))
            kinds[path.name] = kind_of(path)
        except BridgeError as error:
            print(f"{path.name}: {str(error).splitlines()[0]}", file=sys.stderr)
    print_classes(classes(results, kinds))
    if given.json is not None:
        write_text(given.json, json.dumps(suite_record(results, kinds), indent=1) + "\n")


def networks(folders: list[Path]) -> list[Path]:
    """The networks of folders with an ``index.json``."""
    found = []
    for folder in folders:
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        rows = [each for each in index if each.get("kind", "network") == "network"]
        found += [folder / each["file"] for each in rows if each["file"].endswith(".tflite")]
    return found


def written(given: argparse.Namespace) -> None:
    """The page with the record's tables, and the plots."""
    record = json.loads(given.record.read_text(encoding="utf-8"))
    results, kinds = read_suite(record)
    if given.other:
        tables = {"other": _classes(results, kinds), "other machine": _machine(record)}
    else:
        tables = {"classes": _classes(results, kinds), "networks": _networks(results, kinds)}
        tables["machine"] = _machine(record)
        for threads in sorted({each.threads for each in results}):
            plot = speed_plot(results, kinds, threads)
            write_text(DOCS / "pictures" / f"speed_{threads}.svg", plot + "\n")
    text = PAGE.read_text(encoding="utf-8")
    for name, rows in tables.items():
        between = re.compile(f"(<!-- {name} -->\n).*?(<!-- /{name} -->)", re.DOTALL)
        text, count = between.subn(lambda found, rows=rows: found[1] + rows + found[2], text)
        if count != 1:
            raise ValueError(f"{PAGE} has no place for the table {name!r}")
    write_text(PAGE, text)


def _classes(results: list[Result], kinds: dict[str, ModelKind]) -> str:
    heads = ("LiteRT takes", "threads", "networks", "LiteRT / ours", "worst", "most more, µs")
    rows = [
        (
            *(each.name, each.threads, each.count),
            *(f"{each.mean:.2f}", f"{each.worst:.2f}", f"{each.most_more:.0f}"),
        )
        for each in classes(results, kinds)
    ]
    return _table(heads, rows)


def _networks(results: list[Result], kinds: dict[str, ModelKind]) -> str:
    heads = ("network", "numbers", "threads", "LiteRT, ms", "ours, ms", "LiteRT / ours")
    rows = [
        (
            *(Path(each.model).stem, kinds[each.model].numbers, each.threads),
            *(f"{each.litert.invoke_ms:.4f}", f"{each.ours.invoke_ms:.4f}", f"{each.ratio:.2f}"),
        )
        for each in sorted(results, key=lambda each: (each.threads, each.model))
        if each.litert is not None
    ]
    return _table(heads, rows)


def _machine(record: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record["packages"].items())
    return f"{record['processor']}, {record['cores']} cores. {versions}.\n"


def _table(heads: tuple[str, ...], rows: list[tuple[Any, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "".join(f"| {' | '.join(map(str, line))} |\n" for line in lines)


if __name__ == "__main__":
    main()
