"""The speed of networks that nobody chose, beside LiteRT's: classes, and the slowest tenth.

    python benchmarks/drawn_makers.py FOLDER            # with TensorFlow: makes the networks
    python -m benchmarks.drawn_networks FOLDER [--threads N] [--json RECORD] [--against RECORD]

Prints LiteRT / ours by class, by family and by kind of numbers; the tenth of the networks with the
smallest ratios, each with its operators, nodes of ONNX and sessions; and what differs from LiteRT
by more than `--off` of a result's largest value. `--against` compares with an older record of the
same networks. Each network has a process of its own. Nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections import Counter
from collections.abc import Sequence
from functools import partial
from math import exp, log
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tflite_ort import BridgeError, Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.bench_suite import classes, kind_of, print_classes
from tflite_ort.command.benchmark import Difference, Result, Settings, machine, measure
from tflite_ort.providers import graph_session
from tflite_ort.schema import Op, read_model

Row = dict[str, Any]


def main() -> int:
    """Measure all networks of a folder and print what they show."""
    options = _options()
    names = [row["file"] for row in json.loads((options.folder / "index.json").read_text())]
    rows: list[Row] = []
    settings = Settings(options.rounds, options.turn, check=True, memory=False)
    run, results = partial(_measured, options.threads, settings), list[Result]()
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for row, result in pool.imap(run, [options.folder / name for name in names]):
            rows.append(row)
            results += [] if result is None else [result]
    kinds = {each.model: kind_of(options.folder / each.model) for each in results}
    print_classes(classes(results, kinds))
    for column in ("family", "numbers"):
        print(f"\n{column}: " + ", ".join(_means(rows, column)))
    _print_slowest(rows)
    _print_odd(rows, options.off)
    if options.json:
        record = {**machine(), "threads": options.threads, "networks": rows}
        write_text(options.json, json.dumps(record, indent=1) + "\n")
    if options.against:
        _compare(json.loads(options.against.read_text())["networks"], rows)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drawn_networks", description=__doc__
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turn", type=float, default=0.01, help="seconds of a turn")
    parser.add_argument("--off", type=float, default=0.02, help="of the largest value of a result")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--against", type=Path)
    return parser.parse_args()


def _measured(threads: int, settings: Settings, path: Path) -> tuple[Row, Result | None]:
    _, family, numbers = path.stem.split("_", 2)
    row: Row = {"file": path.name, "family": family, "numbers": numbers}
    try:
        result = measure(path, threads, settings)
        row |= _contents(path)
    except BridgeError as error:
        return row | {"error": str(error).splitlines()[0]}, None
    if result.litert is not None:
        row |= {"litert_us": 1e3 * result.litert.invoke_ms, "ours_us": 1e3 * result.ours.invoke_ms}
        row["ratio"] = result.ratio
        row["off"] = max((_off(each) for each in result.differences), default=0.0)
    return row, result


def _off(found: Difference) -> float:
    """In parts of the largest magnitude, or of the 255 steps of 8 bits."""
    return (found.max_steps or 0) / 255 if found.relative is None else found.relative


def _contents(path: Path) -> Row:
    """The operators of a network, and what ONNX Runtime gets for them."""
    nodes: list[Counter[str]] = []
    lowered = graph_session.serialized

    def noted(graph: Any, **others: Any) -> bytes:
        nodes.append(Counter(node.op_type for node in graph.graph.nodes))
        return lowered(graph, **others)

    with patch.object(graph_session, "serialized", noted):
        Interpreter(str(path), num_threads=1, cache=False).allocate_tensors()
    model = read_model(path)
    codes = [Op(code.builtin_code).name for code in model.operator_codes]
    operators = Counter(codes[each.opcode_index] for each in model.subgraphs[0].operators)
    return {
        "operators": dict(operators.most_common()),
        "nodes": dict(sum(nodes, Counter[str]()).most_common()),
        "sessions": len(nodes),
    }


def _means(rows: Sequence[Row], column: str) -> list[str]:
    timed = [row for row in rows if "ratio" in row]
    found = sorted({row[column] for row in timed})
    return [f"{name} {_mean([r for r in timed if r[column] == name])}" for name in found]


def _mean(rows: Sequence[Row]) -> str:
    mean = exp(sum(log(row["ratio"]) for row in rows) / max(1, len(rows)))
    return f"{mean:.2f} ({len(rows)})"


def _slowest(rows: Sequence[Row]) -> list[Row]:
    timed = sorted((row for row in rows if "ratio" in row), key=lambda row: float(row["ratio"]))
    return timed[: -(-len(timed) // 10)]


def _print_slowest(rows: Sequence[Row]) -> None:
    slowest = _slowest(rows)
    print(f"\nThe slowest tenth: {_mean(slowest)}")
    for row in slowest:
        more = row["ours_us"] - row["litert_us"]
        print(
            f"{row['ratio']:.2f} {row['file']}: {row['litert_us']:.0f} and {row['ours_us']:.0f} us,"
            f" {more:.0f} more; {row['sessions']} sessions\n"
            f"     operators {_counts(row['operators'])}\n     nodes {_counts(row['nodes'])}"
        )


def _counts(counts: dict[str, int]) -> str:
    first = [f"{name} {count}" for name, count in list(counts.items())[:9]]
    return f"{sum(counts.values())}: {', '.join(first)}"


def _print_odd(rows: Sequence[Row], off: float) -> None:
    for row in rows:
        if "error" in row:
            print(f"{row['file']}: {row['error']}")
        elif row.get("off", 0) > off:
            print(f"{row['file']}: {row['off']:.3g} off")


def _compare(before: Sequence[Row], rows: Sequence[Row]) -> None:
    """How the slowest tenth of the older record is now."""
    now = {row["file"]: row for row in rows if "ratio" in row}
    slowest = [row for row in _slowest(before) if row["file"] in now]
    print(f"\nThe slowest tenth of the record was {_mean(slowest)}", end="")
    print(f", it is {_mean([now[row['file']] for row in slowest])}")


if __name__ == "__main__":
    raise SystemExit(main())
