"""Where each operator runs, by element type: what the test suite measured, at TFLite's versions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from tflite_ort.base.shipped import shipped
from tflite_ort.base.suggestions import suggestion
from tflite_ort.schema import Op, TensorType
from tflite_ort.schema.file.flow import INLINED
from tflite_ort.versioning.known import KNOWN, known_versions, span
from tflite_ort.versioning.operator_signature import Signature, TensorSignature
from tflite_ort.versioning.rules import required_version

Runs = Mapping[str, Sequence[str]]  # where it ran, with the reasons against what came earlier
Record = Mapping[str, Mapping[str, Runs]]  # by operator and type

ORT, MIXED, NUMPY = "ONNX Runtime", "ONNX Runtime or numpy", "numpy"
EXPORTED = "exported"  # what the interpreter leaves to numpy, and a file has all the same
# TFLite's rules are asked about operators with tensors like these.
SHAPE = (1, 1, 1, 1)
INPUTS, OUTPUTS = 5, 2
PLAIN = {"dilation_w_factor": 1, "dilation_h_factor": 1}  # options that are not 0


@dataclass(frozen=True, slots=True)
class TypeStatus:
    """Where an operator runs on data of one type, in every version that it has.

    Args:
        since: the version that TFLite's rules ask for; a file that says an earlier one runs all the
            same, as in TFLite.
        runs_on: ``ORT``, ``NUMPY``, or ``MIXED`` where it depends on more than the type.
        exported: whether models were translated, if not for the interpreter then for a file.
        reasons: why numpy.
    """

    type: TensorType
    since: int
    runs_on: str
    exported: bool
    reasons: tuple[str, ...]


def read_record() -> Record:
    """What the test suite measured, by ``python -m pytest --write-placements``."""
    record: Record = json.loads(shipped("tflite_ort.command", "placements.json"))
    return record


def type_statuses(op: Op, record: Record) -> list[TypeStatus]:
    """One for each type of which the test suite has a model; those of the first version first."""
    statuses = []
    for name, runs in record.get(op.name, {}).items():
        type = TensorType[name]
        place = MIXED if {"ort", "numpy"} <= runs.keys() else NUMPY if "numpy" in runs else ORT
        exported, reasons = place != NUMPY or EXPORTED in runs, tuple(runs.get("numpy", ()))
        statuses.append(TypeStatus(type, first_version(op, type), place, exported, reasons))
    return sorted(statuses, key=lambda status: (status.since, status.type.name))


def find_operator(name: str) -> Op | None:
    """The operator of this name, in any case, if TFLite has a kernel for it."""
    op = Op.__members__.get(name.upper())
    return op if op is not None and known_versions(op) else None


def near_operator(name: str) -> str:
    """``; did you mean 'NAME'?`` of an operator, where a name is near one."""
    return suggestion(name, [op.name for op in Op if known_versions(op)])


def operator_text(op: Op, record: Record) -> str:
    """Versions and types of one operator, for people."""
    return "\n".join(_lines(op, record))


def operator_dict(op: Op, record: Record) -> dict[str, Any]:
    """The same for JSON."""
    known = (KNOWN[op, version] for version in known_versions(op))
    return {
        "operator": op.name,
        "versions": [
            {"version": row.number, "runtime": row.runtime, "brings": row.brings} for row in known
        ],
        "types": [
            {**asdict(status), "type": status.type.name} for status in type_statuses(op, record)
        ],
        "inlined": op in INLINED,
    }


def _lines(op: Op, record: Record) -> Iterator[str]:
    yield f"{op.name}: {span(known_versions(op))}, any other is refused"
    for version in known_versions(op):
        row = KNOWN[op, version]
        yield f"  {version}  TFLite {row.runtime}  {row.brings}".rstrip()
    if op in INLINED:
        yield "replaced by the subgraph that it names"
        return
    yield "on data of these types it runs, in every version, on"
    for status in type_statuses(op, record):
        place = f"{status.runs_on}, {EXPORTED}" if status.exported else status.runs_on
        yield f"  {status.type.name.lower():<13} (from {status.since})  {place}"
        yield from (f"{'':>15} numpy: {reason}" for reason in status.reasons)
    yield "data of other types is refused"


def first_version(op: Op, type: TensorType) -> int:
    """The version that an operator needs all of whose tensors are of `type`; a later one may be
    needed for what else it does."""
    tensors = (TensorSignature(type, SHAPE, quantized=quantized) for quantized in (False, True))
    required = (
        required_version(Signature(op, (tensor,) * INPUTS, (tensor,) * OUTPUTS, PLAIN))
        for tensor in tensors
    )
    return min(*required, known_versions(op)[-1])
