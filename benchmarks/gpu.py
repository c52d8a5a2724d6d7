"""All that is to be known of providers for a GPU, in the quarter of an hour in which there is one.

    python -m benchmarks.gpu measure RECORD [--provider cuda]... [--minutes 14] [--networks 40]
        [--onnx FOLDER] [--tests]
    python -m benchmarks.gpu page RECORD

`measure` goes on after every failure, stops in time, and writes RECORD, a JSON file, after every
step, so that what is there when the time is over can be used. The steps, the most wanted first:

- networks: what the provider takes of each, its distance from LiteRT, and the least times of an
  invoke beside the CPU provider's and LiteRT's with one thread, by `benchmarks.on_provider`;
- batches: the time of a sample in a batch of 1 and of 32;
- files: with --onnx, of NAME.onnx that another converter made of a network, the time in plain ONNX
  Runtime with the same provider;
- tests: with --tests, `pytest -m cuda tests/providers`, and the tests of all operators on the
  provider; which of them fail.

`page` prints the section of docs/delegates.md. Rehearse it where there is no GPU: ``--provider cpu
--networks 3``.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

import numpy as np

from benchmarks.on_provider import drawn, in_processes, paths, records, runs
from tflite_ort import Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.providers.available import provider_reports
from tflite_ort.providers.delegates import OpResolverType, chosen_delegates
from tflite_ort.providers.names import named_provider
from tflite_ort.providers.settings import chosen
from tflite_ort.providers.traits import CPU, TRAITS

PROVIDERS = ("cuda", "tensorrt", "tensorrt-rtx")
BATCHES = (1, 32)
# Networks of which all classes of sizes have some come first.
FIRST = ("mobilenet", "hand_landmark", "yolo", "efficientdet", "bert", "deeplab", "movenet")
_SECONDS = 0.3
_CLASSES = ((5.0, "above 5 ms"), (1.0, "1 to 5 ms"), (0.2, "0.2 to 1 ms"), (0.0, "below 0.2 ms"))
_SUITES = (
    ("providers", ["-m", "cuda", "tests/providers"]),
    ("operators", ["-W", "default", "tests/ops", "tests/across"]),
)


class Record:
    """What is known by now, in a file."""

    def __init__(self, path: Path, minutes: float) -> None:
        self.path, self.end = path, time.monotonic() + 60 * minutes
        self.found: dict[str, Any] = {"machine": machine(), "gpu": _gpu(), "providers": {}}
        self.found["installed"] = [
            [each.name, each.version, list(each.devices), each.problem]
            for each in provider_reports()
        ]

    @property
    def left(self) -> float:
        """Seconds until the time is over."""
        return self.end - time.monotonic()

    def of(self, provider: str) -> dict[str, Any]:
        """What is known of a provider."""
        found: dict[str, Any] = self.found["providers"].setdefault(provider, {})
        return found

    def save(self) -> None:
        """Write the file."""
        write_text(self.path, json.dumps(self.found, indent=1) + "\n")


def _gpu() -> str:
    """Name, driver and memory of the first GPU; why they are not known."""
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"none: {error}"
    return done.stdout.strip() or done.stderr.strip()


def measure(record: Record, providers: Sequence[str], count: int, folder: Path | None) -> None:
    """The steps that need no tests."""
    networks = sorted(paths([], []), key=_place)[:count]
    for provider in providers:
        rows = record.of(provider).setdefault("networks", [])
        for row in _in_time(record, records(networks, provider, "full", _SECONDS)):
            rows.append(row)
            record.save()
    for provider in providers:
        rows = record.of(provider).setdefault("batches", [])
        known = record.of(provider)["networks"]
        names = {row["network"] for row in known if row.get("right") and row["inside"]}
        some = [path for path in networks if path.stem in names]
        extra = (provider, "" if folder is None else str(folder))
        for row in _in_time(record, in_processes("benchmarks.gpu", some, *extra)):
            rows.append(row)
            record.save()


def _place(path: Path) -> tuple[int, str]:
    """Where a network stands in the order of measurement."""
    places = (number for number, name in enumerate(FIRST) if name in path.stem)
    return next(places, len(FIRST)), path.stem


def _in_time(record: Record, rows: Iterator[Any]) -> Iterator[Any]:
    """The rows until the time is over."""
    while record.left > 0:
        row = next(rows, None)
        if row is None:
            return
        print(json.dumps(row)[:200], file=sys.stderr, flush=True)
        yield row


def in_batches(path: Path, provider: str, folder: str) -> dict[str, Any]:
    """Milliseconds of a sample on the provider and on the CPU, by size of the batch; of another
    converter's file in plain ONNX Runtime."""
    found: dict[str, Any] = {"network": path.stem}
    for batch in BATCHES:
        for name, choice in (("provider", [provider, CPU]), ("cpu", [CPU])):
            interpreter = Interpreter(path, providers=choice, batch=batch)
            interpreter.allocate_tensors()
            runs(interpreter, [next(drawn(interpreter))])
            found[f"{name}_{batch}"] = _least(interpreter.invoke) / batch
    file = Path(folder) / f"{path.stem}.onnx"
    if folder and file.exists():
        found["file"] = _of_file(file, provider)
    return found


def _of_file(file: Path, provider: str) -> float | str:
    import onnxruntime

    (delegate,) = chosen_delegates(OpResolverType.AUTO, (), [provider])
    options = onnxruntime.SessionOptions()
    choice = chosen(delegate.provider, options, 0)
    try:
        session = onnxruntime.InferenceSession(file, options, providers=choice)
        feeds = {
            each.name: np.zeros([x if isinstance(x, int) else 1 for x in each.shape], np.float32)
            for each in session.get_inputs()
        }
        session.run(None, feeds)
    except (RuntimeError, ValueError) as error:
        return str(error)[:200]
    return _least(lambda: session.run(None, feeds))


def _least(run: Any) -> float:
    """The least milliseconds of a call."""
    run()
    least, end = float("inf"), time.perf_counter() + _SECONDS
    while least == float("inf") or time.perf_counter() < end:
        started = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - started)
    return round(1000 * least, 4)


def test(record: Record, provider: str) -> None:
    """Run the tests on a provider; which fail."""
    full = named_provider(provider, TRAITS) or provider
    for name, arguments in _SUITES:
        on = [] if name == "providers" else ["--provider", full]
        command = [sys.executable, "-m", "pytest", "-q", "--tb=no", "-rf", *on, *arguments]
        limit = max(1.0, record.left)
        here = Path(__file__).parents[1]
        try:
            done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=limit)
            text = done.stdout
        except subprocess.TimeoutExpired as error:
            text = (error.stdout or b"").decode(errors="replace") + "\nstopped: no time left"
        failed = re.findall(r"^FAILED (\S+)", text, re.MULTILINE)
        last = (text.strip().splitlines() or [""])[-1]
        record.of(provider).setdefault("tests", {})[name] = {"failed": failed, "last": last}
        record.save()


# The page ----------------------------------------------------------------------------------------


def page(found: dict[str, Any]) -> str:
    """The section of docs/delegates.md."""
    lines = [
        "## On a GPU",
        "",
        f"Measured on {found['gpu']} by `python -m benchmarks.gpu`. Times are the least ones of an "
        "invoke. The CPU's and LiteRT's have one thread.",
    ]
    for provider, row in found["providers"].items():
        lines += ["", f"### {provider}", ""]
        lines += _networks(row.get("networks", []))
        lines += _batches(row.get("batches", []))
        for name, suite in row.get("tests", {}).items():
            lines += ["", f"Tests of {name}: {suite['last']}", ""]
            lines += [f"- {each}" for each in suite["failed"]]
    return "\n".join(lines) + "\n"


def _networks(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    ran = [row for row in rows if "operators" in row]
    wrong = [row["network"] for row in ran if row.get("right") is False]
    whole = sum(row["inside"] == row["operators"] for row in ran)
    yield f"- {len(ran)} of {len(rows)} networks load, {whole} of them wholly on it."
    yield f"- {len(wrong)} are farther from LiteRT than its own kernels: {', '.join(wrong) or '-'}."
    for row in rows:
        if "error" in row:
            yield f"- {row['network']}: {row['error']}"
    timed = [row["times"] | {"network": row["network"]} for row in ran if "times" in row]
    if not timed:
        return
    yield from (
        "",
        "| class by LiteRT's time | networks | LiteRT / it | CPU / it |",
        "|---|---|---|---|",
    )
    above = float("inf")
    for least, name in _CLASSES:
        some = [each for each in timed if least <= each["litert"] < above]
        above = least
        if some:
            ratios = (
                median(each[other] / each["provider"] for each in some)
                for other in ("litert", "cpu")
            )
            yield f"| {name} | {len(some)} | {' | '.join(f'{each:.2f}' for each in ratios)} |"


def _batches(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    for batch in BATCHES:
        some = [row for row in rows if f"provider_{batch}" in row]
        if some:
            ratio = geometric_mean(row[f"cpu_{batch}"] / row[f"provider_{batch}"] for row in some)
            yield f"- In batches of {batch}: {ratio:.2f} times as fast as the CPU ({len(some)})."
    files = [row for row in rows if isinstance(row.get("file"), float)]
    if files:
        ratio = geometric_mean(row["file"] / row["provider_1"] for row in files)
        yield f"- {ratio:.2f} times as fast as another converter's file there ({len(files)})."


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        path, provider, folder = sys.argv[2:]
        print(json.dumps(in_batches(Path(path), provider, folder)))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["measure", "page"])
    parser.add_argument("record", type=Path)
    parser.add_argument("--provider", action="append")
    parser.add_argument("--minutes", type=float, default=14.0)
    parser.add_argument("--networks", type=int, default=40)
    parser.add_argument("--onnx", type=Path, help="NAME.onnx of another converter")
    parser.add_argument("--tests", action="store_true")
    given = parser.parse_args()
    if given.action == "page":
        print(page(json.loads(given.record.read_text())), end="")
        return
    record = Record(given.record, given.minutes)
    record.save()
    providers = given.provider or PROVIDERS
    measure(record, providers, given.networks, given.onnx)
    for provider in providers if given.tests else ():
        test(record, provider)


if __name__ == "__main__":
    main()
