"""Networks on OpenVINO: how far their results are from LiteRT's, beside OpenVINO's own reader of
TFLite files.

    python -m benchmarks.openvino_networks measure RECORD [--precision bf16] [--seconds S]
        [--limit SECONDS] [--models FOLDER]... [NAME...]
    python -m benchmarks.openvino_networks page benchmarks/results/openvino_networks_*.json \\
        > docs/openvino_networks.md

For each network, in a process of its own: how far its results are from LiteRT's, and LiteRT's own
kernels from each other (`benchmarks.on_provider`), and what OpenVINO leaves. In less than full
precision only networks of floats are measured that take a millisecond or more in ONNX Runtime's CPU
provider.

Of such networks of floats also, unless S is 0: the time of an invoke here, by OpenVINO's own reader
and in the CPU provider, which take turns; and the time of a load in a new process, and in a second
one from what a first one has cached. All times are the processor's, which other work on the machine
changes least, on one thread. A NAME is a part of file names. A second run goes on where the first
one ended.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.on_provider import (
    SPREAD,
    distances,
    drawn,
    in_processes,
    is_quantized,
    litert,
    paths,
    runs,
)
from tflite_ort import Interpreter, WellKnownOpResolver, load_delegate
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.providers.traits import CPU, FULL_PRECISION
from tflite_ort.schema import read_model

OPENVINO = "OpenVINOExecutionProvider"
LEAST_MS = 1.0
LIMIT = 300.0
# A network that is nearer to LiteRT is right, whatever LiteRT's spread is.
RIGHT = (1.0, 1e-5)
_HINTS = {FULL_PRECISION: "f32", "bf16": "bf16", "fp16": "f16"}
_TURNS, _LAST_TURNS = 11, 400
_REASON, _SHOWN = 120, 6
_HEAD = """# Networks on OpenVINO

Made by `python -m benchmarks.openvino_networks page` from the records of
`python -m benchmarks.openvino_networks measure`, on random inputs. "Off by" is the largest
difference from LiteRT's results: in quanta (steps of the scale) of quantized results, as a part of
the largest value of others; of networks with operators that LiteRT does not have, from the results
of ONNX Runtime's CPU provider. "LiteRT's spread" is how far LiteRT's other kernels are from its
default ones, of networks that are more than a quantum or 1e-5 off. An output that is near 0 for
random inputs is off by a large part of itself. Times are milliseconds of processor time, on one
thread.

[delegates.md](delegates.md#openvino) says how to choose OpenVINO, and what it computes otherwise.
"""


def measured(path: Path, precision: str, seconds: float) -> dict[str, Any]:
    """What is found of one network."""
    record: dict[str, Any] = {"network": path.stem}
    quantized = is_quantized(read_model(path))
    cpu = Interpreter(path, num_threads=1, resolver=WellKnownOpResolver())
    cpu.allocate_tensors()
    feeds = list(drawn(cpu))
    runs(cpu, feeds)
    record["cpu"] = min(_turn({"cpu": cpu.invoke})["cpu"] for _ in range(3))
    slow = record["cpu"] >= LEAST_MS and not quantized
    if not slow and precision != FULL_PRECISION:
        return record
    calls: dict[str, Callable[[], Any]] = {"cpu": cpu.invoke}
    if slow and seconds:
        try:  # before the plug-in, whose own libraries read no such files
            record["own_load"], calls["own"] = _own(path, precision, feeds[0])
        except RuntimeError as error:
            record["own_refuses"] = str(error).strip().splitlines()[-1][:200]
    _, ours = loaded(path, precision)
    rows = [row for row in ours.delegation() if row.runs_on != "constant"]
    left = Counter(
        f"{row.operator}: {row.reason[:_REASON]}" for row in rows if row.provider != OPENVINO
    )
    record |= {"operators": len(rows), "sessions": len({row.partition for row in rows})}
    record["left"] = dict(left)
    try:
        wanted = runs(litert(path, "default"), feeds)
    except (RuntimeError, ValueError):  # of operators that it does not have
        anew = Interpreter(path, num_threads=1, resolver=WellKnownOpResolver())
        anew.allocate_tensors()
        wanted, record["beside_cpu"] = runs(anew, feeds), True
    found = distances(ours, runs(ours, feeds), wanted, path, feeds, RIGHT)
    record |= {key: each if key == "right" else _short(each) for key, each in found.items()}
    if slow and seconds:
        record |= times(calls | {"ours": ours.invoke}, seconds)
    return record


def loaded(path: Path, precision: str, cache: str | bool = False) -> tuple[float, Interpreter]:
    """The milliseconds of a load, and the interpreter."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        load_delegate(OPENVINO)  # the time that the plug-in takes is not the network's
        started = time.process_time()
        choice = {"providers": [OPENVINO, CPU], "precision": precision, "num_threads": 1}
        interpreter = Interpreter(path, **choice, cache=cache, resolver=WellKnownOpResolver())
        interpreter.allocate_tensors()
        return _ms(started), interpreter


def _own(path: Path, precision: str, feed: Sequence[Any]) -> tuple[float, Callable[[], Any]]:
    """The milliseconds of a load by OpenVINO's own reader of TFLite files, and an invoke."""
    import openvino

    hints = {"INFERENCE_PRECISION_HINT": _HINTS[precision], "INFERENCE_NUM_THREADS": 1}
    core, started = openvino.Core(), time.process_time()
    compiled, load = core.compile_model(str(path), "CPU", hints), _ms(started)
    request = compiled.create_infer_request()
    for place, array in enumerate(feed):
        request.set_input_tensor(place, openvino.Tensor(array, shared_memory=True))
    request.infer()
    return load, request.infer


def times(calls: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, Any]:
    """The least milliseconds of each call, which take turns; and the median over the turns of our
    time over that of OpenVINO's own reader."""
    turns, end = list[dict[str, float]](), time.perf_counter() + seconds
    while len(turns) < _TURNS or (time.perf_counter() < end and len(turns) < _LAST_TURNS):
        turns.append(_turn(calls))
    record: dict[str, Any] = {
        "times": {name: round(min(turn[name] for turn in turns), 4) for name in calls}
    }
    if "own" in calls:
        record["beside"] = round(median(turn["ours"] / turn["own"] for turn in turns), 3)
        record["turns"] = len(turns)
    return record


def _turn(calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """The milliseconds of each call."""
    found = {}
    for name, call in calls.items():
        started = time.process_time()
        call()
        found[name] = _ms(started)
    return found


def _short(number: float) -> float:
    return float(f"{number:.2g}")


def _ms(started: float) -> float:
    """The milliseconds of processor time since then."""
    return round(1000 * (time.process_time() - started), 4)


def measure(given: argparse.Namespace) -> None:
    """Write the record."""
    record: dict[str, Any] = {"precision": given.precision, "networks": {}}
    if given.record.exists():
        before = json.loads(given.record.read_text(encoding="utf-8"))
        record = before if before["precision"] == given.precision else record
    only = "" if given.precision == FULL_PRECISION else "floats"
    found = paths(given.models, given.names, only)
    found = sorted((each for each in found if each.stem not in record["networks"]), key=_size)
    for path in found:
        (each,) = _in_process(path, given.precision, str(given.seconds), limit=given.limit)
        if "times" in each:
            each |= loads(path, given.precision, given.limit)
        print(path.stem, each.get("error", ""), file=sys.stderr, flush=True)
        record["networks"][each.pop("network")] = each
        write_text(given.record, json.dumps(record | machine(), indent=1, sort_keys=True) + "\n")


def _in_process(path: Path, *settings: str, limit: float) -> Iterator[dict[str, Any]]:
    return in_processes("benchmarks.openvino_networks", [path], *settings, limit=limit)


def loads(path: Path, precision: str, limit: float) -> dict[str, Any]:
    """The milliseconds of a load in a new process, and in one that finds what another one has
    cached."""
    with tempfile.TemporaryDirectory() as cache:
        folders = ("", cache, cache)
        first, _, second = (
            next(_in_process(path, precision, "0", folder, limit=limit)) for folder in folders
        )
    return {"load": first.get("load"), "second_load": second.get("load")}


def _size(path: Path) -> int:
    return path.stat().st_size


# The page ----------------------------------------------------------------------------------------


def page(records: Sequence[Mapping[str, Any]]) -> str:
    """The text of the page."""
    return "\n".join([_HEAD, *map(section, records)])


def section(record: Mapping[str, Any]) -> str:
    """The networks of a record, the farthest first."""
    rows = {name: each for name, each in record["networks"].items() if "share" in each}
    timed = any("times" in each for each in rows.values())
    cells = ["network", "off by", "LiteRT's spread", "on OpenVINO", "sessions"]
    cells += ["ms", "own reader", "CPU", "load", "second load"] if timed else []
    lines = [f"## Precision {record['precision']}\n", *told(record), ""]
    lines += [f"| {' | '.join(cells)} |", "|---" * len(cells) + "|"]
    for name, each in sorted(rows.items(), key=lambda row: _order(row[1])):
        cells = [name.partition("__")[2] or name, _far(each, ""), _far(each, "spread_")]
        left = sum(each["left"].values())
        cells += [f"{each['operators'] - left} of {each['operators']}", str(each["sessions"])]
        cells += _timed(each) if timed else []
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _order(each: Mapping[str, Any]) -> tuple[bool, float, float]:
    return bool(each["right"]), -each["quanta"], -each["share"]


def _far(each: Mapping[str, Any], kind: str) -> str:
    """A distance in words; empty where there is none."""
    if f"{kind}share" not in each:
        return ""
    quanta, share = each[f"{kind}quanta"], each[f"{kind}share"]
    return f"{quanta:.3g} quanta" if quanta else f"{share:.1g}"


def _timed(each: Mapping[str, Any]) -> list[str]:
    """The times of a network, in milliseconds."""
    if "times" not in each:
        return [""] * 5
    found = each["times"]
    own = f"{found['own']:.2f} ({_beside(each):.2f})" if "own" in found else "does not read it"
    loads = (f"{each[name]:.0f}" if each[name] else "" for name in ("load", "second_load"))
    return [f"{found['ours']:.2f}", own, f"{found['cpu']:.2f}", *loads]


def _beside(each: Mapping[str, Any]) -> float:
    """Our least time over that of OpenVINO's own reader."""
    return float(each["times"]["ours"] / each["times"]["own"])


def told(record: Mapping[str, Any]) -> Iterator[str]:
    """What the table says."""
    rows = record["networks"]
    failed = sorted(name for name, each in rows.items() if "error" in each)
    compared = {name: each for name, each in rows.items() if "share" in each}
    whole = sum(not each["left"] for each in compared.values())
    yield f"{len(compared)} networks were compared; {whole} run wholly on OpenVINO."
    if record["precision"] == FULL_PRECISION:
        off = sorted(name for name, each in compared.items() if not each["right"])
        yield (
            f"{len(off)} are farther from LiteRT than {SPREAD} times its own spread"
            f"{': ' if off else ''}{', '.join(off)}."
        )
    if failed:
        yield f"Not measured: {', '.join(failed)}."
    timed = [each for each in compared.values() if "times" in each]
    both = [each for each in timed if "beside" in each]
    if both:
        gains = [each["times"]["cpu"] / each["times"]["ours"] for each in timed]
        shares = [each["second_load"] / each["load"] for each in timed if each["second_load"]]
        yield (
            f"{len(timed)} take {LEAST_MS:g} ms or more in the CPU provider. Medians: OpenVINO "
            f"here takes {median(map(_beside, both)):.2f} times the time of its own reader, in "
            f"brackets by network ({len(both)} that it reads; "
            f"{median(each['beside'] for each in both):.2f}, if each turn is compared alone); the "
            f"CPU provider {median(gains):.2f} times that of OpenVINO here; a load in a second "
            f"process, from the cache, {median(shares):.2f} times a load without the cache."
        )
    reasons: dict[str, Counter[str]] = {}
    for each in compared.values():
        for text, count in each["left"].items():
            operator, _, reason = text.partition(": ")
            reasons.setdefault(reason or "it is in a loop on the CPU", Counter())[operator] += count
    if reasons:
        yield "\nWhat OpenVINO leaves, with the number of operators:\n"
    for reason, operators in sorted(reasons.items(), key=lambda row: -row[1].total()):
        some = ", ".join(f"{count} {name}" for name, count in operators.most_common(_SHOWN))
        more = ", ..." if len(operators) > _SHOWN else ""
        yield f"- {reason}: {some}{more}"


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        path, precision, seconds, *cache = sys.argv[2:]
        if cache:
            load, _ = loaded(Path(path), precision, cache[0] or False)
            print(json.dumps({"load": load}))
        else:
            print(json.dumps(measured(Path(path), precision, float(seconds))))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["measure", "page"])
    parser.add_argument("record", type=Path)
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of file names, or records")
    parser.add_argument("--precision", choices=list(_HINTS), default="bf16")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="measure times for so long each; 0: none"
    )
    parser.add_argument(
        "--limit", type=float, default=LIMIT, metavar="SECONDS", help="of a network"
    )
    parser.add_argument("--models", type=Path, action="append", default=[])
    given = parser.parse_intermixed_args()
    if given.action == "measure":
        measure(given)
        return
    records = [given.record, *map(Path, given.names)]
    print(page([json.loads(each.read_text(encoding="utf-8")) for each in records]), end="")


if __name__ == "__main__":
    main()
