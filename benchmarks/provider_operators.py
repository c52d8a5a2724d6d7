"""Which operators of real networks run on an execution provider, and how far each is from LiteRT.

    python -m benchmarks.provider_operators measure PROVIDER [--precision P]
        [--only quantized|floats] [NAME...]
    python -m benchmarks.provider_operators page > docs/provider_operators.md

`measure` runs each operator alone, with LiteRT's values as its inputs (`verify`), and notes where
the operator runs in its network. Each network has a process of its own. The record of a provider,
`benchmarks/results/provider_operators_NAME.json`, is made anew. Options as of
`benchmarks.on_provider`.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.on_provider import in_processes, paths
from tflite_ort import Interpreter
from tflite_ort.base.files import write_text
from tflite_ort.providers.delegates import OpResolverType, chosen_delegates
from tflite_ort.providers.names import short_name
from tflite_ort.providers.traits import CPU
from tflite_ort.verification import Random, Settings, verify

RESULTS = Path(__file__).parent / "results"
PREFIX = "provider_operators_"
# Farther than this an operator is wrong: quanta of 8-bit and 16-bit codes, a share of the largest
# value of floats.
QUANTA, QUANTA_OF_16_BITS, SHARE = 2.0, 64.0, 1e-3
_HEAD = """# Operators by provider

Made by `python -m benchmarks.provider_operators page` from the records of
`python -m benchmarks.provider_operators measure PROVIDER`. Each operator of the shared networks ran
alone on the provider, with LiteRT's values as its inputs.

- "on it" counts the operators that the provider ran in their networks, of all of this type.
- "farthest" is the largest difference of one operator from LiteRT: in quanta (steps of its scale)
  for quantized results, as a share of the largest value for floats.
- "why not" is the most frequent reason why an operator ran elsewhere.

[delegates.md](delegates.md) says how to choose a provider.
"""


def measured(path: Path, provider: str, precision: str) -> dict[str, Any]:
    """What is found of the operators of one network."""
    choice = [provider, CPU]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        interpreter = Interpreter(path, providers=choice, precision=precision)
        interpreter.allocate_tensors()
        settings = Settings(choice, precision=precision)
        report = verify(path, runtimes=["interpreter"], inputs=Random(samples=1), settings=settings)
    (first,) = chosen_delegates(OpResolverType.AUTO, (), [provider])[:1]
    rows = {row.index: row for row in interpreter.delegation() if row.subgraph == 0}
    details = {each["index"]: each for each in interpreter.get_tensor_details()}
    found = []
    for op in report.runtimes[0].operators:
        row = rows.get(op.index)
        if row is None or row.operator != op.name or row.runs_on == "constant":
            continue
        apart = op.isolated
        found.append(
            {
                "operator": op.name,
                "type": _type_of(details.get(op.outputs[0]) if op.outputs else None),
                "on": row.provider == first.name,
                "reason": row.reason or (row.provider and f"in {row.provider}"),
                "quanta": None if apart is None else apart.quanta,
                "share": None if apart is None else apart.relative,
            }
        )
    return {"network": path.stem, "found": found}


def _type_of(detail: Any) -> str:
    if detail is None:
        return "?"
    name = detail["dtype"].__name__
    return f"{name} codes" if detail["quantization"][0] else name


def summed(networks: Sequence[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """By operator and type, what all networks say."""
    rows: dict[str, dict[str, Any]] = {}
    for network in networks:
        for each in network.get("found", ()):
            key = f"{each['operator']} {each['type']}"
            row = rows.setdefault(key, {"all": 0, "on": 0, "farthest": 0.0, "why": {}})
            row["all"] += 1
            row["on"] += each["on"]
            if not each["on"]:
                reason = each["reason"][:160]
                row["why"][reason] = row["why"].get(reason, 0) + 1
                continue
            apart = each["quanta"] if each["quanta"] is not None else each["share"]
            if apart is not None and apart > row["farthest"]:
                row |= {"farthest": apart, "network": network["network"]}
    return dict(sorted(rows.items()))


def is_wrong(key: str, row: dict[str, Any]) -> bool:
    """Whether an operator is farther from LiteRT than rounding explains."""
    if not key.endswith(" codes"):
        return bool(row["farthest"] > SHARE)
    wide = "int16" in key
    return bool(row["farthest"] > (QUANTA_OF_16_BITS if wide else QUANTA))


def page() -> str:
    """The text of the page, from all records."""
    parts = [_HEAD]
    for path in sorted(RESULTS.glob(f"{PREFIX}*.json")):
        record = json.loads(path.read_text())
        parts += [f"\n## {record['provider']}, precision {record['precision']}\n", record["about"]]
        parts += ["", "| operator | type | on it | farthest | why not |", "|---|---|---|---|---|"]
        for key, row in record["operators"].items():
            operator, _, kind = key.partition(" ")
            why = max(row["why"], key=row["why"].get, default="").replace("|", "/")
            apart = f"{row['farthest']:.2g}" if row["on"] else ""
            apart += " (wrong)" if row["on"] and is_wrong(key, row) else ""
            cells = [operator, kind, f"{row['on']} of {row['all']}", apart, why]
            parts.append(f"| {' | '.join(cells)} |")
    return "\n".join(parts) + "\n"


def measure(provider: str, precision: str, names: Sequence[str], only: str = "") -> None:
    """Write the record of a provider."""
    networks = paths([], names, only)
    found = []
    for record in in_processes("benchmarks.provider_operators", networks, provider, precision):
        print(record["network"], record.get("error", ""), file=sys.stderr, flush=True)
        found.append(record)
    rows = summed(found)
    failed = [f"{each['network']}: {each['error']}" for each in found if "error" in each]
    about = f"{len(found) - len(failed)} of {len(found)} networks were measured."
    record = {"provider": provider, "precision": precision, "about": about, "failed": failed}
    text = json.dumps(record | {"operators": rows}, indent=1) + "\n"
    write_text(RESULTS / f"{PREFIX}{short_name(provider)}.json", text)
    for key, row in rows.items():
        if row["on"] and is_wrong(key, row):
            print(f"wrong: {key} is {row['farthest']:.3g} off in {row['network']}")
    print(about, *failed, sep="\n")


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        path, provider, precision = sys.argv[2:]
        print(json.dumps(measured(Path(path), provider, precision)))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["measure", "page"])
    parser.add_argument("provider", nargs="?", default="")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of file names")
    parser.add_argument("--precision", default="full")
    parser.add_argument("--only", choices=["quantized", "floats"], default="")
    given = parser.parse_args()
    if given.action == "page":
        print(page(), end="")
    elif given.provider:
        measure(given.provider, given.precision, given.names, given.only)
    else:
        parser.error("measure needs a PROVIDER")


if __name__ == "__main__":
    main()
