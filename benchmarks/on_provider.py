"""Networks on an execution provider: what it takes of each, how far its numbers are from LiteRT's,
and what it costs, as a table or as JSON.

    python -m benchmarks.on_provider PROVIDER [--precision P] [--only quantized|floats]
        [--seconds S] [--json FILE] [--models FOLDER]... [NAME...]

Each network runs in a process of its own, so that a provider which crashes ends that one alone. A
NAME is a part of file names. Models: $TFLITE_ORT_MODELS, else ../shared/models, models2, models3.

Distances are from LiteRT's default kernels, on random inputs: in quanta of a quantised output, as a
share of the largest value of a float one. "spread" is how far LiteRT's other kernels are from its
default ones. "right" is a network within two quanta, or 1 % of the largest value of floats, or 1.5
times as far as the spread. With --seconds the times of an invoke are measured, alternately: the
provider's, the CPU provider's and LiteRT's with one thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort import BridgeError, Interpreter
from tflite_ort.base import files
from tflite_ort.providers.delegates import OpResolverType, chosen_delegates
from tflite_ort.providers.traits import CPU
from tflite_ort.schema import Model, Op, TensorType, read_model

Array = npt.NDArray[Any]

SHARED = Path(__file__).parents[2] / "shared"
FOLDERS = [SHARED / name for name in ("models", "models2", "models3")]
# Fewer operators are a test of one, not a network.
LEAST_OPERATORS = 6
QUANTA, SHARE = 2.0, 0.01
SEED, STEPS = 0, 2
_SHOWN = 4
# So many times the spread, which is of two kernels alone, as in tests/test_models.py.
SPREAD = 1.5
# A process that takes longer is ended.
LIMIT_SECONDS = 600
_CODES = (TensorType.INT8, TensorType.UINT8, TensorType.INT16)


def paths(folders: Sequence[Path], names: Sequence[str], only: str = "") -> list[Path]:
    """The networks of folders whose names have one of `names` in them."""
    named = os.environ.get("TFLITE_ORT_MODELS")
    places = list(folders) or ([Path(named)] if named else FOLDERS)
    found = [path for folder in places for path in sorted(folder.glob("*.tflite"))]
    found = [path for path in found if any(name in path.name for name in names or [""])]
    return [path for path in found if is_network(path, only)]


def is_network(path: Path, only: str = "") -> bool:
    """Whether a file has several operators, and its activations the type that is asked for."""
    try:
        model = read_model(path)
    except (BridgeError, OSError):
        return False
    if sum(len(graph.operators) for graph in model.subgraphs) < LEAST_OPERATORS:
        return False
    return not only or (only == "quantized") == is_quantized(model)


def is_quantized(model: Model) -> bool:
    """Whether half of the results in the primary subgraph or more are codes with a scale."""
    graph = model.subgraphs[0]
    made = [graph.tensors[index] for op in graph.operators for index in op.outputs]
    codes = sum(each.type in _CODES and bool(scales_of(each)) for each in made)
    return codes * 2 >= len(made) > 0


def scales_of(tensor: Any) -> list[float]:
    """The scales of a tensor of a file; none where it is not quantised."""
    found = tensor.quantization and tensor.quantization.scale
    return [] if found is None else list(found)


# One network, in its process ----------------------------------------------------------------------


def measured(path: Path, provider: str, precision: str, seconds: float) -> dict[str, Any]:
    """What is found of one network."""
    record: dict[str, Any] = {"network": path.stem}
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ours = Interpreter(path, providers=[provider, CPU], precision=precision)
        ours.allocate_tensors()
    record["load_seconds"] = round(time.perf_counter() - started, 2)
    record["warnings"] = sorted({str(each.message)[:300] for each in said})
    rows = ours.delegation()
    (first,) = chosen_delegates(OpResolverType.AUTO, (), [provider])[:1]
    inside = [row for row in rows if row.provider == first.name]
    ran = [row for row in rows if row.runs_on != "constant" and not _runs_once(row)]
    elsewhere = Counter((row.operator, row.runs_on, row.reason[:200]) for row in ran)
    elsewhere -= Counter((row.operator, row.runs_on, row.reason[:200]) for row in inside)
    record |= {"operators": len(ran), "inside": len(inside)}
    record["sessions"] = len({row.partition for row in inside})
    record["elsewhere"] = [[*key, count] for key, count in elsewhere.most_common()]
    try:
        feeds = list(drawn(ours))
        wanted = runs(litert(path, "default"), feeds)
    except (RuntimeError, ValueError) as error:
        return record | {"not_compared": str(error)[:300]}
    record |= distances(ours, runs(ours, feeds), wanted, path, feeds)
    if seconds:
        record["times"] = times(path, ours, feeds[0], seconds)
    return record


def _runs_once(row: Any) -> bool:
    """Whether an operator runs before the first invoke alone, as CALL_ONCE does."""
    return bool(row.runs_on == "numpy" and "once" in row.reason)


def litert(path: Path, kernels: str) -> Any:
    """LiteRT's interpreter with one thread."""
    from ai_edge_litert import interpreter as runtime

    kind = {"default": "AUTO", "optimized": "BUILTIN_WITHOUT_DEFAULT_DELEGATES"}.get(kernels)
    chosen = getattr(runtime.OpResolverType, kind or "BUILTIN_REF")
    made = runtime.Interpreter(str(path), experimental_op_resolver_type=chosen, num_threads=1)
    made.allocate_tensors()
    return made


def drawn(interpreter: Any) -> Iterator[list[Array]]:
    """Random inputs for each step."""
    rng = np.random.default_rng(SEED)
    for _ in range(STEPS):
        feed = []
        for detail in interpreter.get_input_details():
            dtype, shape = np.dtype(detail["dtype"]), tuple(detail["shape"])
            if dtype.kind == "f":
                feed.append(rng.uniform(-1, 1, shape).astype(dtype))
            elif dtype.kind in "iu" and dtype.itemsize < 4:
                ends = np.iinfo(dtype)
                feed.append(rng.integers(ends.min, ends.max + 1, shape).astype(dtype))
            else:
                feed.append(rng.integers(0, 2, shape).astype(dtype))
        yield feed


def runs(interpreter: Any, feeds: Sequence[Sequence[Array]]) -> list[list[Array]]:
    """The outputs of each step."""
    found = []
    for feed in feeds:
        for detail, array in zip(interpreter.get_input_details(), feed, strict=True):
            interpreter.set_tensor(detail["index"], array)
        interpreter.invoke()
        details = interpreter.get_output_details()
        found.append([np.array(interpreter.get_tensor(each["index"])) for each in details])
    return found


def distances(
    ours: Any,
    got: Any,
    wanted: Any,
    path: Path,
    feeds: Sequence[Sequence[Array]],
    near: tuple[float, float] = (QUANTA, SHARE),
) -> dict[str, Any]:
    """How far the outputs are from LiteRT's, and its own kernels from each other.

    Args:
        near: the quanta and the share within which outputs are right, whatever the spread is.
    """
    codes = [step_of(each, path) for each in ours.get_output_details()]
    quanta, share = farthest(got, wanted, codes)
    record = {"quanta": quanta, "share": share, "right": quanta <= near[0] and share <= near[1]}
    if record["right"]:
        return record
    spread = [0.0, 0.0]
    for kernels in ("optimized", "reference"):
        try:
            other = farthest(runs(litert(path, kernels), feeds), wanted, codes)
        except (RuntimeError, ValueError):
            continue
        spread = list(np.maximum(spread, other).tolist())
    most = [max(least, SPREAD * far) for least, far in zip(near, spread, strict=True)]
    right = quanta <= most[0] and share <= most[1]
    return record | {"spread_quanta": spread[0], "spread_share": spread[1], "right": right}


def step_of(detail: Any, path: Path) -> float:
    """What a quantum of an output is: 1 of codes, the scale of codes that are dequantised at the
    end; 0 of floats."""
    if np.dtype(detail["dtype"]).kind in "iu":
        return float(bool(detail["quantization"][0]))
    model = read_model(path)
    graph = model.subgraphs[0]
    for op in graph.operators:
        code = model.operator_codes[op.opcode_index].builtin_code
        if code is Op.DEQUANTIZE and graph.tensors[op.outputs[0]].name == detail["name"]:
            scales = scales_of(graph.tensors[op.inputs[0]])
            return float(scales[0]) if len(scales) == 1 else 0.0
    return 0.0


def farthest(got: Any, wanted: Any, codes: Sequence[float]) -> tuple[float, float]:
    """Of all steps the farthest, in quanta and as a share of the largest value.

    Args:
        codes: of each output, what a quantum is; 0 of floats.
    """
    quanta = share = 0.0
    for ours, theirs in zip(got, wanted, strict=True):
        for a, b, code in zip(ours, theirs, codes, strict=True):
            if a.shape != b.shape:
                return float("inf"), float("inf")
            if not a.size or a.dtype.kind not in "fiub":
                continue
            a, b = a.astype(np.float64), b.astype(np.float64)
            apart = np.where((np.isnan(a) & np.isnan(b)) | (a == b), 0, np.abs(a - b))
            most = float(np.nan_to_num(apart, nan=np.inf).max())
            if code:
                quanta = max(quanta, round(most / code, 2))
            else:
                share = max(share, most / (float(np.abs(b).max()) or 1.0))
    return quanta, share


def times(path: Path, ours: Any, feed: Sequence[Array], seconds: float) -> dict[str, float]:
    """The least milliseconds of an invoke, measured alternately."""
    cpu = Interpreter(path, num_threads=1)
    cpu.allocate_tensors()
    of = {"provider": ours, "cpu": cpu, "litert": litert(path, "default")}
    for each in of.values():
        runs(each, [feed])
    least = dict.fromkeys(of, float("inf"))
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for name, each in of.items():
            started = time.perf_counter()
            each.invoke()
            least[name] = min(least[name], time.perf_counter() - started)
    return {name: round(1000 * value, 4) for name, value in least.items()}


# All of them -------------------------------------------------------------------------------------


def records(
    found: Sequence[Path], provider: str, precision: str = "full", seconds: float = 0
) -> Iterator[dict[str, Any]]:
    """What is found of each network, in a process of its own."""
    return in_processes("benchmarks.on_provider", found, provider, precision, str(seconds))


def in_processes(
    module: str, found: Sequence[Path], *settings: str, limit: float = LIMIT_SECONDS
) -> Iterator[dict[str, Any]]:
    """What ``python -m module --one PATH SETTINGS`` prints of each network; it is ended after
    `limit` seconds."""
    for path in found:
        command = [sys.executable, "-m", module, "--one", str(path), *settings]
        here = Path(__file__).parents[1]
        try:
            done = subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            yield {"network": path.stem, "error": f"more than {limit:g} s"}
            continue
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if done.returncode or not lines:
            last = (done.stderr.strip().splitlines() or [""])[-1][:300]
            yield {"network": path.stem, "error": f"exit code {done.returncode}: {last}"}
            continue
        yield json.loads(lines[-1])


def table(found: Sequence[dict[str, Any]]) -> str:
    """The records as a table of Markdown."""
    lines = [
        "| network | on the provider | sessions | quanta | share | right | what it leaves |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in found:
        if "operators" not in row:
            lines.append(f"| {row['network']} | | | | | | {row['error']} |")
            continue
        left = "; ".join(_left(row["elsewhere"]))
        inside = f"{row['inside']} of {row['operators']}"
        far = [_pair(row, kind) for kind in ("quanta", "share")]
        right = {True: "yes", False: "NO", None: "-"}[row.get("right")]
        cells = [row["network"], inside, str(row["sessions"]), *far, right, left.replace("|", "/")]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", summary(found), ""])


def _left(elsewhere: Sequence[Any]) -> Iterator[str]:
    """What runs elsewhere, by reason."""
    reasons: dict[tuple[str, str], list[str]] = {}
    for operator, place, reason, count in elsewhere:
        reasons.setdefault((reason, place), []).append(f"{count} {operator}")
    for (reason, place), operators in reasons.items():
        some = ", ".join(operators[:_SHOWN]) + (", ..." if operators[_SHOWN:] else "")
        yield f"{some} in {place}" + (f" ({reason})" if reason else "")


def _pair(row: dict[str, Any], kind: str) -> str:
    if kind not in row:
        return ""
    spread = row.get(f"spread_{kind}")
    return f"{row[kind]:.3g}" + ("" if not spread else f" (spread {spread:.3g})")


def summary(found: Sequence[dict[str, Any]]) -> str:
    """How many networks are there, how many are mostly on the provider, and how many are right."""
    ran = [row for row in found if "operators" in row]
    most = sum(row["inside"] >= 0.9 * row["operators"] for row in ran)
    wrong = [row["network"] for row in ran if row.get("right") is False]
    parts = [
        f"{len(ran)} of {len(found)} networks load",
        f"{most} have nine tenths of their operators or more on the provider",
        f"{len(wrong)} are wrong{': ' if wrong else ''}{', '.join(wrong)}",
    ]
    return "; ".join(parts) + "."


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("provider", help="as `providers=` takes it")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of file names")
    parser.add_argument("--precision", default="full")
    parser.add_argument("--only", choices=["quantized", "floats"], default="")
    parser.add_argument("--seconds", type=float, default=0.0, help="measure times for so long each")
    parser.add_argument("--models", type=Path, action="append", default=[])
    parser.add_argument("--json", type=Path)
    if sys.argv[1:2] == ["--one"]:
        path, provider, precision, seconds = sys.argv[2:]
        print(json.dumps(measured(Path(path), provider, precision, float(seconds))))
        return
    given = parser.parse_intermixed_args()
    found = []
    networks = paths(given.models, given.names, given.only)
    for record in records(networks, given.provider, given.precision, given.seconds):
        print(record["network"], record.get("error", ""), file=sys.stderr, flush=True)
        found.append(record)
        if given.json:
            files.write_text(given.json, json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
