"""The speed of networks that nobody chose, beside LiteRT's: classes, and the slowest tenth of each.

    python benchmarks/drawn_makers.py FOLDER            # with TensorFlow: makes the networks
    python -m benchmarks.drawn_networks FOLDER... [--threads N] [--json RECORD] [--against RECORD]

Prints LiteRT / ours by class, by family and by kind of numbers; of each class the tenth of the
networks with the smallest ratios, with the operators and the idioms that they have more often than
the other networks of the class; the nodes of ONNX Runtime for each operator; and what differs from
LiteRT by more than `--off` of a result's largest value. An idiom is an operator and one that reads
its result. The record is written after each network, and networks that are in it are not measured
again: to go on with a record that was interrupted, or to add a folder to it, give it once more.
`--against` compares with an older record of the same networks. Each network has a process of its
own. Nothing else may run on the machine.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from math import exp, log
from pathlib import Path
from typing import Any

from benchmarks.node_floors import optimized_graphs
from tflite_ort import BridgeError, Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.bench_suite import ModelKind, classes, grouped, kind_of, print_classes
from tflite_ort.command.benchmark import Difference, Result, Settings, Timing, machine, measure
from tflite_ort.schema import Op, read_model

Row = dict[str, Any]
_LISTED = 4  # operators and idioms of a class, and networks of its slowest tenth
_SEVERAL = 3  # an idiom is listed if so many slow networks have it


def main() -> int:
    """Measure all networks of the folders and print what they show."""
    options = _options()
    paths = [path for folder in options.folders for path in sorted(folder.glob("*.tflite"))]
    rows = _read(options.json, options.threads)
    settings = Settings(options.rounds, options.turn, check=True, memory=False)
    run = partial(_measured, options.threads, settings)
    with multiprocessing.get_context("fork").Pool(1, maxtasksperchild=1) as pool:
        for row in pool.imap(run, [path for path in paths if path.name not in rows]):
            rows[row["file"]] = row
            if options.json:
                record = {"threads": options.threads, "networks": list(rows.values())}
                write_text(options.json, json.dumps({**machine(), **record}, indent=1) + "\n")
    kinds = {path.name: kind_of(path) for path in paths}
    _print(options, [rows[name] for name in kinds], kinds)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drawn_networks", description=__doc__
    )
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--turn", type=float, default=0.01, help="seconds of a turn")
    parser.add_argument("--off", type=float, default=0.02, help="of the largest value of a result")
    parser.add_argument("--json", type=Path, help="the record, which is read if it is there")
    parser.add_argument("--against", type=Path)
    return parser.parse_args()


def _read(record: Path | None, threads: int) -> dict[str, Row]:
    """The rows of a record by file; none where there is no record yet."""
    if record is None or not record.exists():
        return {}
    found = json.loads(record.read_text())
    if found["threads"] != threads:
        raise SystemExit(f"{record} is a record of {found['threads']} threads")
    return {row["file"]: row for row in found["networks"]}


# Measuring ---------------------------------------------------------------------------------------


def _measured(threads: int, settings: Settings, path: Path) -> Row:
    _, family, numbers = path.stem.split("_", 2)
    row: Row = {"file": path.name, "family": family, "numbers": numbers}
    try:
        result = measure(path, threads, settings)
        row |= _contents(path)
    except BridgeError as error:
        return row | {"error": str(error).splitlines()[0]}
    if result.litert is not None:
        row |= {"litert_us": 1e3 * result.litert.invoke_ms, "ours_us": 1e3 * result.ours.invoke_ms}
        row["ratio"] = result.ratio
        row["off"] = max((_off(each) for each in result.differences), default=0.0)
    return row


def _off(found: Difference) -> float:
    """In parts of the largest magnitude, or of the 255 steps of 8 bits."""
    return (found.max_steps or 0) / 255 if found.relative is None else found.relative


def _contents(path: Path) -> Row:
    """The operators and idioms of a network, and the nodes that ONNX Runtime runs for them."""
    graphs = optimized_graphs(Interpreter(path, num_threads=1, cache=False).allocate_tensors)
    nodes = Counter(node.op_type for graph in graphs for node in graph.graph.node)
    model = read_model(path)
    codes = [Op(code.builtin_code).name for code in model.operator_codes]
    makers: dict[int, str] = {}
    operators, idioms = Counter[str](), Counter[str]()
    for each in model.subgraphs[0].operators:
        name = codes[each.opcode_index]
        operators[name] += 1
        idioms.update(f"{makers[index]} > {name}" for index in each.inputs if index in makers)
        makers.update(dict.fromkeys(each.outputs, name))
    return {
        "operators": dict(operators.most_common()),
        "idioms": dict(idioms.most_common()),
        "nodes": dict(nodes.most_common()),
        "sessions": len(graphs),
    }


# Printing ----------------------------------------------------------------------------------------


def _print(options: argparse.Namespace, rows: Sequence[Row], kinds: dict[str, ModelKind]) -> None:
    timed = {row["file"]: row for row in rows if "ratio" in row}
    results = [_result(row, options.threads) for row in timed.values()]
    kinds = {name: kind for name, kind in kinds.items() if name in timed}
    print_classes(classes(results, kinds))
    for column in ("family", "numbers"):
        print(f"\n{column}: " + ", ".join(_means(list(timed.values()), column)))
    for name, some in grouped(results, kinds):
        _print_slowest(name, [timed[each.model] for each in some])
    _print_odd(rows, options.off)
    if options.against:
        _compare(json.loads(options.against.read_text())["networks"], rows)


def _result(row: Row, threads: int) -> Result:
    """What the classes ask of a measurement."""
    ours, litert = (Timing(row[key] / 1e3, 0, None) for key in ("ours_us", "litert_us"))
    return Result(row["file"], threads, ours, 0, 0, 0, litert, row["ratio"])


def _means(rows: Sequence[Row], column: str) -> list[str]:
    found = sorted({row[column] for row in rows})
    return [f"{name} {_mean([r for r in rows if r[column] == name])}" for name in found]


def _mean(rows: Sequence[Row]) -> str:
    mean = exp(sum(log(row["ratio"]) for row in rows) / max(1, len(rows)))
    return f"{mean:.2f} ({len(rows)})"


def _slowest(rows: Iterable[Row]) -> list[Row]:
    timed = sorted((row for row in rows if "ratio" in row), key=lambda row: float(row["ratio"]))
    return timed[: -(-len(timed) // 10)]


def _print_slowest(name: str, rows: Sequence[Row]) -> None:
    """The slowest tenth of a class, and what its networks have in common."""
    if not rows:
        return
    slowest, counts = _slowest(rows), [_count(rows, column) for column in ("nodes", "operators")]
    print(f"\n{name}: {counts[0] / counts[1]:.2f} nodes an operator; slowest {_mean(slowest)}")
    for row in slowest[:_LISTED]:
        more = row["ours_us"] - row["litert_us"]
        print(
            f"  {row['ratio']:.2f} {row['file']}: {row['litert_us']:.0f} and {row['ours_us']:.0f}"
            f" us, {more:.0f} more; {row['sessions']} sessions\n"
            f"       operators {_counts(row['operators'])}\n       nodes {_counts(row['nodes'])}"
        )
    for column in ("operators", "idioms", "nodes"):
        print(f"  {column} of slow ones: {', '.join(_frequent(rows, column)) or '-'}")


def _count(rows: Sequence[Row], column: str) -> int:
    return sum(sum(row[column].values()) for row in rows)


def _frequent(rows: Sequence[Row], column: str) -> Iterator[str]:
    """What slow networks have more often than others: those below the mean of the class. With each
    the number of networks that have it, and their mean."""
    middle = sum(log(row["ratio"]) for row in rows) / len(rows)
    slow = [row for row in rows if log(row["ratio"]) < middle]
    counts, of_slow = (
        Counter(name for row in some for name in row[column]) for some in (rows, slow)
    )
    common = [name for name, count in of_slow.items() if count >= _SEVERAL]
    for name in sorted(common, key=lambda name: (-of_slow[name] / counts[name], name))[:_LISTED]:
        yield f"{name} {_mean([row for row in rows if name in row[column]])}"


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
