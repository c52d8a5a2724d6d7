"""Makes docs/operators.md: ``python -m tflite_ort.command.operators_page > docs/operators.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from tflite_ort.command.operator_status import (
    MIXED,
    NUMPY,
    ORT,
    Record,
    Runs,
    TypeStatus,
    read_record,
    type_statuses,
)
from tflite_ort.fallback_kernels import custom_kernel
from tflite_ort.opmap import custom_translator
from tflite_ort.schema import Op
from tflite_ort.schema.file.flow import INLINED
from tflite_ort.versioning.disagreements import DISAGREEMENTS
from tflite_ort.versioning.known import KNOWN, known_versions

# Registered operators that are never translated.
UNTRANSLATED = {
    Op.CALL_ONCE: "run once, when the model is made ready",
    Op.VAR_HANDLE: "names a variable; there is nothing to compute",
    Op.HASHTABLE: "names a table; there is nothing to compute",
    Op.HASHTABLE_IMPORT: "of a table that is known before the run nothing is left to import",
    Op.HASHTABLE_SIZE: "a constant, where the table is known before the run",
    Op.LSH_PROJECTION: "ONNX has no operator that hashes numbers",
    Op.SKIP_GRAM: "ONNX joins no words that are not neighbours",
}

_HEAD = """# Operators

Made by `python -m tflite_ort.command.operators_page` from `bridge/command/placements.json`. That
record says where the interpreter ran the operators of the test suite, with results that were
compared with LiteRT's. `python -m pytest --write-placements` measures it. A test holds both against
the code.

The operators that TFLite has kernels for, and where each runs on data of which type:

- **ONNX Runtime**: translated, in every case of the tests.
- **both**: translated, but some models are left to numpy; the reasons are
  [below](#what-numpy-runs-and-why).
- **numpy**: left to numpy. Types with a `*` are exported to ONNX all the same, the others are not.

`2: int8` says that TFLite's rules put int8 data at version 2: such an operator runs in the versions
from 2 up. (In a file that says an earlier one it runs all the same, as in TFLite; `tflite-ort
versions` warns of it.) **Versions** lists all that there are, with the first TFLite release and
what it brought. What is not in a row is refused: a version that is not listed, and types for which
TFLite has no kernel. `tflite-ort versions CONV_2D` shows one row on the command line.

The type is that of the codes of a quantised tensor, else of complex numbers, floats, or of the
operand that holds the data; weights of fewer bits are told by the version. An operator that is
*inlined* is replaced by the subgraph that it names. Custom operators are last;
[custom_operators.md](custom_operators.md) says more of them.

"""

_TABLE = """
| operator | ONNX Runtime | both | numpy | versions |
|---|---|---|---|---|
"""

_REASONS = """
## What numpy runs, and why

Numbers and names are left out of the reasons. "a shape depends on data" and constants that are
asked for mean: where it is not known when the graph is made.

| operator | types | reason |
|---|---|---|
"""

_DISAGREEMENTS = """
## Where TFLite's tables disagree

| operator | version | registered | required by a rule | first runtime | here |
|---|---|---|---|---|---|
"""


def operators_page(record: Record) -> str:
    """The whole page, in Markdown; `record` is what is in placements.json."""
    operators = [op for op in Op if known_versions(op)]
    rows = [_row(op, record) for op in operators]
    rows += [
        f"| `{name}` | {_range(custom_translator.versions(name))} | "
        f"| {_range(custom_kernel.versions(name))} | custom |\n"
        for name in sorted(_custom_names())
    ]
    reasons = [line for op in operators for line in _reasons(op, record.get(op.name, {}))]
    exceptions = [
        f"| {row.op.name} | {row.version} | {_yes(row.registered)} | {_yes(row.required)} "
        f"| {row.runtime or '-'} | {row.here} |\n"
        for row in DISAGREEMENTS
    ]
    registered = {op.name: record.get(op.name, {}) for op in operators}
    parts = [_HEAD, shares(registered), _TABLE, *rows, _REASONS, *reasons]
    return "".join([*parts, _DISAGREEMENTS, *exceptions])


def shares(record: Record) -> str:
    """How many operators ONNX Runtime runs, in float32 and over all types."""
    places = [(type, set(runs)) for types in record.values() for type, runs in types.items()]
    lines = []
    for what, found in (
        ("operators that were measured in float32", [on for of, on in places if of == "FLOAT32"]),
        ("pairs of operator and type", [on for _, on in places]),
    ):
        run = sum("numpy" not in on or "ort" in on for on in found)
        wholly = sum("numpy" not in on for on in found)
        lines.append(
            f"- Of {len(found)} {what}, ONNX Runtime runs {run} ({run / max(len(found), 1):.1%}), "
            f"{wholly} of them ({wholly / max(len(found), 1):.1%}) in every case of the tests.\n"
        )
    return "".join(lines)


def _row(op: Op, record: Record) -> str:
    cells = [_types(op, place, record) for place in (ORT, MIXED, NUMPY)]
    if op in INLINED:
        cells[0] = "inlined"
    return f"| {op.name} | {' | '.join(cells)} | {_history(op)} |\n"


def _types(op: Op, place: str, record: Record) -> str:
    """The types that run there, such as ``1: float32 uint8<br>2: int8``."""
    found = [status for status in type_statuses(op, record) if status.runs_on == place]
    groups = groupby(found, key=attrgetter("since"))
    return "<br>".join(f"{since}: {' '.join(map(_name, group))}" for since, group in groups)


def _name(status: TypeStatus) -> str:
    mark = "\\*" if status.runs_on == NUMPY and status.exported else ""
    return status.type.name.lower() + mark


def _reasons(op: Op, types: Mapping[str, Runs]) -> list[str]:
    if op in UNTRANSLATED:
        return [f"| {op.name} | all | {UNTRANSLATED[op]} |\n"]
    grouped: dict[str, list[str]] = {}
    for type, runs in types.items():
        for reason in runs.get("numpy", ()):
            grouped.setdefault(reason, []).append(type.lower())
    return [f"| {op.name} | {' '.join(of)} | {reason} |\n" for reason, of in grouped.items()]


def _custom_names() -> set[str]:
    pairs = (*custom_translator.pairs(), *custom_kernel.pairs())
    return {key for key, _ in pairs if not isinstance(key, Op)}


def _history(op: Op) -> str:
    """Such as ``1 (1.5.0), 2 (1.14.0): int8``."""
    known = [KNOWN[op, version] for version in known_versions(op)]
    return "<br>".join(
        f"{row.number} ({row.runtime})" + (f": {row.brings}" if row.brings else "") for row in known
    )


def _range(versions: Sequence[int]) -> str:
    if not versions:
        return "-"
    if list(versions) != list(range(versions[0], versions[-1] + 1)):
        return ", ".join(map(str, versions))
    return f"{versions[0]}-{versions[-1]}" if len(versions) > 1 else str(versions[0])


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


if __name__ == "__main__":
    print(operators_page(read_record()), end="")
