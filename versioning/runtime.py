"""The first TFLite release that can run an operator or a model."""

from __future__ import annotations

from collections.abc import Iterable

from tflite_ort.schema import Model, Op
from tflite_ort.schema.file.metadata import metadata_text
from tflite_ort.versioning.disagreements import DISAGREEMENTS
from tflite_ort.versioning.known import KNOWN

METADATA = "min_runtime_version"

_UNREGISTERED = {
    (row.op, row.version): row.runtime
    for row in DISAGREEMENTS
    if row.runtime and not row.registered
}


def runtime_version(op: Op, version: int) -> str | None:
    """The first release with this version of `op`, such as "2.3.0"; None if no table has it."""
    known = KNOWN.get((op, version))
    return known.runtime if known is not None else _UNREGISTERED.get((op, version))


def release(text: str) -> tuple[int, ...]:
    """ "2.14.4" as numbers that compare: a prefix comes before what it is a prefix of."""
    return tuple(int(part) for part in text.split(".") if part.isdecimal())


def latest(releases: Iterable[str | None]) -> str | None:
    """The highest of `releases`, None among none."""
    return max((text for text in releases if text), key=release, default=None)


def minimum_runtime(model: Model) -> str | None:
    """The first release that has every operator `model` uses in the version its file says.

    Operators without a row in the tables, such as custom ones, do not count.
    """
    used = {operator.opcode_index for graph in model.subgraphs for operator in graph.operators}
    codes = [model.operator_codes[index] for index in used]
    return latest(runtime_version(code.builtin_code, code.version) for code in codes)


def declared_runtime(model: Model) -> str | None:
    """What the file's metadata says its minimum runtime is; None if it does not."""
    return metadata_text(model, METADATA) or None
