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
from tflite_ort.schema.values.operators import is_flex
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

This page lists every operator that TFLite has kernels for, its versions, and where this library
runs it. `tflite-ort versions CONV_2D` shows one operator on the command line, and `tflite-ort
inspect MODEL` those of a model. A model is refused if it needs a version that is not listed, or a
type for which TFLite has no kernel.

The columns of the table:

- **ONNX Runtime**: the element types that are translated to ONNX, in every case of the tests.
- **both**: types that are translated, except in some models. Those run in numpy; the reasons are
  [below](#what-numpy-runs-and-why).
- **numpy**: types that run in numpy. Those with a `*` can be exported to ONNX all the same, the
  others cannot.
- **versions**: all versions, each with the first TFLite release that has it and with what it
  brought.

In the first three columns a version stands before the types. `2: int8` means that TFLite's rules
ask for version 2 or later for int8 data. A file with int8 data and an earlier version runs all the
same, as in TFLite; `tflite-ort versions` warns of it. The type is the type of the data operand.
For a quantized tensor it is the type of the stored integers. Weights of fewer bits are part of a
version.

An operator that is *inlined* is replaced by the subgraph that it names. Custom operators are at
the end of the table; [custom_operators.md](custom_operators.md) tells more.

The page is made from the test suite. `python -m pytest --write-placements` records where the
interpreter ran each operator, with results that were compared with LiteRT's
(`bridge/command/placements.json`). `python -m tflite_ort.command.operators_page` writes the page
from that record. A test compares the page with the record and the code.

"""

_TABLE = """
| operator | ONNX Runtime | both | numpy | versions |
|---|---|---|---|---|
"""

_REASONS = """
## What numpy runs, and why

These are the reasons that the library gives, without numbers and names. "A shape depends on data"
means that the shape is not known when the graph is made. A constant is missing if the model
computes the value.

| operator | types | reason |
|---|---|---|
"""

_DISAGREEMENTS = """
## Where TFLite's tables disagree

TFLite has three tables of versions: the kernels that are registered, the rules that say which
version an operator needs, and the first release that runs a version. They disagree on these
versions.

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
    """Without TensorFlow's, which have a page of their own."""
    pairs = (*custom_translator.pairs(), *custom_kernel.pairs())
    return {key for key, _ in pairs if not isinstance(key, Op) and not is_flex(key)}


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
