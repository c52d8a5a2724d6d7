"""Which operators of real networks run on an execution provider, and how far each is from LiteRT.

    python -m benchmarks.provider_operators measure PROVIDER [--precision P]
        [--only quantized|floats] [--sample N] [--cover] [--limit SECONDS] [--again] [NAME...]
    python -m benchmarks.provider_operators page > docs/provider_operators.md

`measure` holds each operator of a network against LiteRT's on the inputs that it got there
(`benchmarks.followed`). Each network has a process of its own, which is ended after `--limit`. The
record of a provider, `benchmarks/results/provider_operators_NAME.json`, is written after each
network. A second run goes on where the first one ended; `--again` measures anew. `--sample` takes
so many networks, of all sizes; `--cover` takes a network, the small ones first, if it has an
operator of a type that those before it do not have. A NAME is a part of file names.

It fails if an operator is farther from LiteRT than the provider's row in
`tflite_ort.providers.traits` allows.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.followed import type_of
from benchmarks.on_provider import in_processes, paths
from tflite_ort.base.files import write_text
from tflite_ort.command.benchmark import machine
from tflite_ort.providers.names import short_name
from tflite_ort.schema import read_model
from tflite_ort.schema.values.resolve import operator_view, tensor_views

RESULTS = Path(__file__).parent / "results"
PREFIX = "provider_operators_"
LIMIT = 300.0
_REASON = 160
_HEAD = """# Operators by provider

Made by `python -m benchmarks.provider_operators page` from the records of
`python -m benchmarks.provider_operators measure PROVIDER`. Each operator of the shared networks ran
in its network on the provider. LiteRT ran it alone on the same inputs.

- "on it" counts the operators that the provider ran, of all of this type.
- "farthest" is the largest difference of one operator from LiteRT: in quanta (steps of its scale)
  for quantized results, as a part of the largest value for others.
- "allowed" is what the provider's row in the table of traits says, for the operator that comes
  nearest to it.
- "why not" is the most frequent reason why an operator ran elsewhere.

[delegates.md](delegates.md) says how to choose a provider, and what each computes otherwise.
"""


def by_type(operators: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By operator and type, what one network says."""
    rows: dict[str, dict[str, Any]] = {}
    for each in operators:
        key = f"{each['operator']} {each['type']}"
        row = rows.setdefault(key, {"all": 0, "on": 0, "apart": 0.0, "most": 0.0, "why": {}})
        row["all"] += 1
        row["on"] += each["on"]
        if not each["on"]:
            reason = each["reason"][:_REASON]
            row["why"][reason] = row["why"].get(reason, 0) + 1
        elif each["apart"] is not None:
            _keep_farthest(row, each["apart"], each["most"])
    return rows


def _keep_farthest(row: dict[str, Any], apart: float, most: float) -> None:
    """Let a row have what is farther beyond what is allowed, or nearer to it."""
    if apart * (row["most"] or 1e-30) >= row["apart"] * (most or 1e-30):
        row |= {"apart": float(f"{apart:.3g}"), "most": float(f"{most:.3g}")}


def summed(networks: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """By operator and type, what all networks say."""
    rows: dict[str, dict[str, Any]] = {}
    for name, network in networks.items():
        for key, each in network.get("operators", {}).items():
            row = rows.setdefault(
                key, {"all": 0, "on": 0, "apart": 0.0, "most": 0.0, "why": {}, "network": name}
            )
            row["all"] += each["all"]
            row["on"] += each["on"]
            before = row["apart"]
            _keep_farthest(row, each["apart"], each["most"])
            row["network"] = name if row["apart"] != before else row["network"]
            for reason, count in each["why"].items():
                row["why"][reason] = row["why"].get(reason, 0) + count
    return dict(sorted(rows.items()))


def is_wrong(row: Mapping[str, Any]) -> bool:
    """Whether an operator is farther from LiteRT than the row of the provider allows."""
    return bool(row["on"] and row["apart"] > row["most"])


def page() -> str:
    """The text of the page, from all records."""
    parts = [_HEAD]
    for path in sorted(RESULTS.glob(f"{PREFIX}*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        rows = summed(record["networks"])
        parts += [f"\n## {record['provider']}, precision {record['precision']}\n", told(record), ""]
        parts += ["| operator | type | on it | farthest | allowed | why not |"]
        parts += ["|---|---|---|---|---|---|"]
        for key, row in rows.items():
            operator, _, kind = key.partition(" ")
            why = max(row["why"], key=row["why"].get, default="").replace("|", "/")
            far, most = (f"{row[each]:.2g}" if row["on"] else "" for each in ("apart", "most"))
            wrong = " (wrong)" if is_wrong(row) else ""
            cells = [operator, kind, f"{row['on']} of {row['all']}", far + wrong, most, why]
            parts.append(f"| {' | '.join(cells)} |")
    return "\n".join(parts) + "\n"


def told(record: Mapping[str, Any]) -> str:
    """How many networks were measured, as a sentence."""
    networks = record["networks"]
    failed = sorted(name for name, each in networks.items() if "error" in each)
    changed = sorted(name for name, each in networks.items() if each.get("changed"))
    says = f"{len(networks) - len(failed)} of {len(networks)} networks were measured."
    for names, what in ((failed, "did not end"), (changed, "gave other results when read")):
        says += f" {what.capitalize()}: {', '.join(names)}." if names else ""
    return says


def measure(given: argparse.Namespace) -> int:
    """Write the record of a provider; the number of operators that are wrong."""
    file = RESULTS / f"{PREFIX}{short_name(given.provider)}.json"
    record = {"provider": given.provider, "precision": given.precision, "networks": {}}
    if file.exists() and not given.again:
        before = json.loads(file.read_text(encoding="utf-8"))
        record = before if before["precision"] == given.precision else record
    known: dict[str, Any] = record["networks"]
    found = [path for path in _sampled(given) if path.stem not in known]
    settings = given.provider, given.precision
    for each in in_processes("benchmarks.followed", found, *settings, limit=given.limit):
        name = each.pop("network")
        print(name, each.get("error", ""), file=sys.stderr, flush=True)
        if "operators" in each:
            each["operators"] = by_type(each["operators"])
        known[name] = each
        write_text(file, json.dumps(record | machine(), indent=1, sort_keys=True) + "\n")
    rows = summed(known)
    wrong = [key for key, row in rows.items() if is_wrong(row)]
    for key in wrong:
        row = rows[key]
        print(f"wrong: {key}: {row['apart']:.3g} for {row['most']:.3g} in {row['network']}")
    print(told(record))
    return len(wrong)


def _sampled(given: argparse.Namespace) -> Sequence[Path]:
    """The networks that are asked for, the small ones first."""
    found = sorted(paths([], given.names, given.only), key=lambda path: path.stat().st_size)
    found = list(_covering(found)) if given.cover else found
    return found[:: max(1, len(found) // given.sample)] if given.sample else found


def _covering(found: Sequence[Path]) -> Iterator[Path]:
    """The networks that have an operator of a type that those before them do not have."""
    seen = set[str]()
    for path in found:
        model = read_model(path)
        tensors, count = tensor_views(model, 0), len(model.subgraphs[0].operators)
        views = (operator_view(model, 0, index, tensors) for index in range(count))
        kinds = {f"{op.name} {type_of(op)}" for op in views}
        if kinds - seen:
            yield path
        seen |= kinds


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=["measure", "page"])
    parser.add_argument("provider", nargs="?", default="")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of file names")
    parser.add_argument("--precision", default="full")
    parser.add_argument("--only", choices=["quantized", "floats"], default="")
    parser.add_argument("--sample", type=int, default=0, metavar="N")
    parser.add_argument("--cover", action="store_true", help="networks for each operator and type")
    parser.add_argument(
        "--limit", type=float, default=LIMIT, metavar="SECONDS", help="of a network"
    )
    parser.add_argument("--again", action="store_true", help="forget the record that there is")
    given = parser.parse_intermixed_args()
    if given.action == "page":
        print(page(), end="")
        return 0
    if not given.provider:
        parser.error("measure needs a PROVIDER")
    return min(measure(given), 1)


if __name__ == "__main__":
    sys.exit(main())
