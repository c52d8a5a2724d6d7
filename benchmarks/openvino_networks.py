"""OpenVINO by this library beside OpenVINO's own reader of TFLite files.

    python -m benchmarks.openvino_networks measure RECORD [--precision bf16] [--seconds S]
        [--limit SECONDS] [--models FOLDER]... [NAME...]
    python -m benchmarks.openvino_networks page RECORD [--page docs/delegates.md]

For each network of floats, in processes of its own: the least milliseconds of an invoke, measured
alternately, here and there, and in ONNX Runtime's CPU provider; how far the results in the
precision are from LiteRT's, as a share of the largest value; what OpenVINO leaves; the time of a
load, and of that in a second process, which finds what the first one has compiled. A NAME is a part
of file names. A second run goes on where the first one ended. `page` writes a table.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.on_provider import drawn, farthest, in_processes, litert, paths, runs
from tflite_ort import Interpreter, load_delegate
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.providers.traits import CPU

OPENVINO = "OpenVINOExecutionProvider"
LEAST_MS = 1.0
LIMIT = 120.0
MARK = "<!-- table of openvino -->"
_HINTS = {"full": "f32", "bf16": "bf16", "fp16": "f16"}
_SHOWN = 3


def measured(path: Path, precision: str, seconds: float, cache: Path) -> dict[str, Any]:
    """What is found of one network; with 0 `seconds` the time of a load alone."""
    record: dict[str, Any] = {"network": path.stem}
    cpu = Interpreter(path, num_threads=1)
    cpu.allocate_tensors()
    feeds = list(drawn(cpu))
    calls: dict[str, Callable[[], Any]] = {"cpu": cpu.invoke}
    if seconds:
        runs(cpu, feeds[:1])
        try:  # before the plug-in, whose own libraries read no such files
            record["own_load"], calls["own"] = _own(path, precision, feeds[0])
        except RuntimeError as error:
            record["own_refuses"] = str(error).strip().splitlines()[-1][:200]
    choice = {"providers": [OPENVINO, CPU], "precision": precision, "num_threads": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_delegate(OPENVINO)  # the time that the plug-in takes is not the network's
        if seconds:
            started = time.perf_counter()
            Interpreter(path, **choice, cache=False).allocate_tensors()
            record["load_alone"] = _ms(started)
        started = time.perf_counter()
        ours = Interpreter(path, **choice, cache=cache)
        ours.allocate_tensors()
        record["load"] = _ms(started)
    if not seconds:
        return record
    rows = [row for row in ours.delegation() if row.runs_on != "constant"]
    left = [row for row in rows if row.provider != OPENVINO]
    record |= {"operators": len(rows), "sessions": len({row.partition for row in rows})}
    record["left"] = sorted({f"{row.operator}: {row.reason[:120]}" for row in left})
    wanted = runs(litert(path, "default"), feeds)
    codes = [0.0] * len(wanted[0])
    record["share"] = float(f"{farthest(runs(ours, feeds), wanted, codes)[1]:.2g}")
    return record | {"times": _least(calls | {"ours": ours.invoke}, seconds)}


def _own(path: Path, precision: str, feed: Sequence[Any]) -> tuple[float, Callable[[], Any]]:
    """The milliseconds of a load by OpenVINO's own reader of TFLite files, and an invoke."""
    import openvino

    hints = {"INFERENCE_PRECISION_HINT": _HINTS[precision], "INFERENCE_NUM_THREADS": 1}
    core, started = openvino.Core(), time.perf_counter()
    compiled, load = core.compile_model(str(path), "CPU", hints), _ms(started)
    request = compiled.create_infer_request()
    for place, array in enumerate(feed):
        request.set_input_tensor(place, openvino.Tensor(array, shared_memory=True))
    request.infer()
    return load, request.infer


def _least(calls: dict[str, Callable[[], Any]], seconds: float) -> dict[str, float]:
    """The least milliseconds of each call, which take turns."""
    least, end = dict.fromkeys(calls, float("inf")), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            least[name] = min(least[name], _ms(started))
    return {name: round(value, 4) for name, value in least.items()}


def _ms(started: float) -> float:
    return round(1000 * (time.perf_counter() - started), 3)


def measure(given: argparse.Namespace) -> None:
    """Write the record."""
    record: dict[str, Any] = {"precision": given.precision, "networks": {}}
    if given.record.exists():
        before = json.loads(given.record.read_text(encoding="utf-8"))
        record = before if before["precision"] == given.precision else record
    found = paths(given.models, given.names, "floats")
    found = sorted((each for each in found if each.stem not in record["networks"]), key=_size)
    for path in found:
        with tempfile.TemporaryDirectory() as cache:
            both = [
                next(
                    in_processes(
                        "benchmarks.openvino_networks",
                        [path],
                        *(given.precision, str(seconds), cache),
                        limit=given.limit,
                    )
                )
                for seconds in (given.seconds, 0.0)
            ]
        first = both[0] | {"second_load": both[1].get("load")}
        print(path.stem, first.get("error", ""), file=sys.stderr, flush=True)
        record["networks"][first.pop("network")] = first
        write_text(given.record, json.dumps(record | machine(), indent=1, sort_keys=True) + "\n")
    print(table(record))


def _size(path: Path) -> int:
    return path.stat().st_size


def table(record: dict[str, Any]) -> str:
    """The networks above `LEAST_MS` on the CPU."""
    rows = {name: each for name, each in record["networks"].items() if "times" in each}
    slow = {name: each for name, each in rows.items() if each["times"]["cpu"] >= LEAST_MS}
    lines = [
        "| network | CPU ms | OpenVINO ms | own reader ms | off by | load ms | second process |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, each in sorted(slow.items(), key=lambda row: -row[1]["share"]):
        times, second = each["times"], each["second_load"]
        own = f"{times['own']:.2f}" if "own" in times else "does not read it"
        lines.append(
            f"| {name.partition('__')[2] or name} | {times['cpu']:.2f} | {times['ours']:.2f} | "
            f"{own} | {each['share']:.1g} | {each['load_alone']:.0f} | {second or 0:.0f} |"
        )
    return "\n".join([*lines, "", summary(slow)])


def summary(rows: dict[str, Any]) -> str:
    """What the table says, and what OpenVINO leaves."""
    both = [each["times"] for each in rows.values() if "own" in each["times"]]
    if not both:
        return "No network takes a millisecond."
    beside = median(times["ours"] / times["own"] for times in both)
    gain = median(each["times"]["cpu"] / each["times"]["ours"] for each in rows.values())
    loads = [
        each["second_load"] / each["load_alone"] for each in rows.values() if each["second_load"]
    ]
    reasons: dict[str, int] = {}
    for each in rows.values():
        for reason in each["left"]:
            reasons[reason] = reasons.get(reason, 0) + 1
    most = sorted(reasons, key=reasons.__getitem__, reverse=True)[:_SHOWN]
    whole = sum(not each["left"] for each in rows.values())
    return (
        f"{len(rows)} networks take {LEAST_MS:g} ms or more. Medians: OpenVINO here takes "
        f"{beside:.2f} times the time of its own reader ({len(both)} networks), the CPU provider "
        f"{gain:.2f} times that of OpenVINO here. A second process loads in {median(loads):.2f} of "
        f"the time. {whole} run wholly on OpenVINO."
        + (f" It leaves most often {'; '.join(most)}." if most else "")
    )


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        path, precision, seconds, cache = sys.argv[2:]
        print(json.dumps(measured(Path(path), precision, float(seconds), Path(cache))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["measure", "page"])
    parser.add_argument("record", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of file names")
    parser.add_argument("--precision", choices=list(_HINTS), default="bf16")
    parser.add_argument("--seconds", type=float, default=1.0, help="measure times for so long each")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, metavar="SECONDS", help="of a network"
    )
    parser.add_argument("--models", type=Path, action="append", default=[])
    parser.add_argument("--page", type=Path, help="write the table between two marks of a page")
    given = parser.parse_intermixed_args()
    if given.action == "measure":
        measure(given)
        return
    text = table(json.loads(given.record.read_text(encoding="utf-8")))
    if given.page is None:
        print(text)
        return
    before, _, rest = given.page.read_text(encoding="utf-8").partition(MARK)
    after = rest.partition(MARK)[2]
    write_text(given.page, f"{before}{MARK}\n{text}\n{MARK}{after}")


if __name__ == "__main__":
    main()
