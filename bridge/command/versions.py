"""What ``tflite-ort versions`` says of a model: versions in the file and required, runtimes."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tflite_ort.base.files import write_bytes
from tflite_ort.command.operator_status import (
    find_operator,
    near_operator,
    operator_dict,
    operator_text,
    read_record,
)
from tflite_ort.command.terminal import shown
from tflite_ort.metadata import associated_files
from tflite_ort.model.missing_operators import lacking_signatures, missing_operators
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.schema import (
    Model,
    ModelError,
    Op,
    UnknownOperator,
    read_model,
    with_own_data,
    write_model,
)
from tflite_ort.versioning.honesty import required_versions, update_versions, version_warnings
from tflite_ort.versioning.known import KNOWN
from tflite_ort.versioning.resolver import OpResolver, operator_key
from tflite_ort.versioning.runtime import declared_runtime, minimum_runtime, runtime_version

# The exit code of a model with operators that are not known.
REFUSED = 3


@dataclass(frozen=True, slots=True)
class OperatorVersion:
    """One operator code of a model.

    Args:
        operator: its TFLite name, or a custom operator's own.
        count: how many operators have this code.
        required: what they need; None for a custom operator and for a code that nothing uses.
        runtime: the first release with `version`; None if no table has it.
        brings: what `version` added.
        refused: why the library does not run it; empty when it does.
    """

    operator: str
    count: int
    version: int
    required: int | None
    runtime: str | None
    brings: str
    refused: str


@dataclass(frozen=True, slots=True)
class VersionReport:
    """What the versions of a model say.

    Args:
        minimum_runtime: the first release that has all (operator, version) of the file.
        required_runtime: the same, were the versions those the operators require.
        declared_runtime: what the file's metadata says.
    """

    operators: tuple[OperatorVersion, ...]
    minimum_runtime: str | None
    required_runtime: str | None
    declared_runtime: str | None
    warnings: tuple[str, ...]

    @property
    def refused(self) -> bool:
        """Whether some operator is not known in its version, so that what needs it cannot run."""
        return any(row.refused for row in self.operators)

    def as_dict(self) -> dict[str, Any]:
        """For JSON: the fields, and `refused`."""
        return {**asdict(self), "refused": self.refused}

    def __str__(self) -> str:
        """A table of the operators, then the runtimes, the warnings, and what is refused."""
        heads = ("operator", "count", "version", "required", "first runtime", "brings")
        rows = [tuple(map(shown, _cells(row))) for row in self.operators]
        widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in (heads, *rows)
        ]
        declared = self.declared_runtime or "nothing"
        lines.append(f"minimum runtime: {self.minimum_runtime or '-'} (the file says {declared})")
        lines += [f"warning: {shown(text)}" for text in self.warnings]
        lines += [f"refused: {shown(row.refused)}" for row in self.operators if row.refused]
        return "\n".join(lines)


def versions_command(
    path: str | os.PathLike[str],
    as_json: bool = False,
    fix: str | os.PathLike[str] | None = None,
    external_roots: Sequence[str | os.PathLike[str]] = (),
) -> tuple[str, int]:
    """What ``tflite-ort versions`` prints, and its exit code: 3 for a model that is refused.

    Args:
        path: of a model, or an operator's name: its versions, and where it runs on which types.
        fix: where to write the model with the versions that its operators require.
        external_roots: folders in which the model may have constants besides its own.

    Raises:
        ModelError: the file is not a valid TFLite model, or `fix` is given for an operator.
        OSError: it cannot be read, or `fix` not written.
    """
    op = find_operator(os.fspath(path))
    if op is not None and not Path(path).exists():
        if fix is not None:
            raise ModelError(f"{path} is an operator; --fix takes a model")
        return _operator_answer(op, as_json), 0
    if not Path(path).exists() and not Path(path).suffix and (near := near_operator(str(path))):
        raise ModelError(f"{path} is no operator{near}")
    try:
        model = read_model(path, external_roots=external_roots)
    except UnknownOperator as error:
        return _refusal(error, as_json), REFUSED
    report = version_report(model)
    if fix is not None:
        write_bytes(fix, _fixed(model, Path(path), Path(fix)))
    written = "" if fix is None else f"\nwrote {os.fspath(fix)}"
    text = json.dumps(report.as_dict(), indent=2) if as_json else f"{report}{written}"
    return text, REFUSED if report.refused else 0


def _fixed(model: Model, path: Path, out: Path) -> bytes:
    """The bytes of `model` with the versions that it requires, and with the files behind it. In
    another folder it has the constants of files beside it too."""
    files = associated_files(path, model.budgets)
    beside = path.resolve().parent == out.resolve().parent
    stream = io.BytesIO()
    stream.write(write_model(update_versions(model if beside else with_own_data(model))))
    if files:
        with zipfile.ZipFile(stream, "a") as archive:
            for name, content in files.items():
                archive.writestr(name, content)
    return stream.getvalue()


def _operator_answer(op: Op, as_json: bool) -> str:
    record = read_record()
    if as_json:
        return json.dumps(operator_dict(op, record), indent=2)
    return operator_text(op, record)


def _refusal(error: UnknownOperator, as_json: bool) -> str:
    return json.dumps({"refused": True, "error": str(error)}, indent=2) if as_json else str(error)


def version_report(model: Model, resolver: OpResolver | None = None) -> VersionReport:
    """The versions of `model`, against TFLite's tables and what `resolver` has.

    Examples:
        >>> from tflite_ort.command.demo import digits_model
        >>> from tflite_ort.schema import read_model
        >>> report = version_report(read_model(digits_model("float32")))
        >>> report.refused, report.warnings
        (False, ())
    """
    resolver = BuiltinOpResolver() if resolver is None else resolver
    return VersionReport(
        _operators(model, _refusals(model, resolver)),
        minimum_runtime(model),
        minimum_runtime(update_versions(model)),
        declared_runtime(model),
        tuple(version_warnings(model)),
    )


def _refusals(model: Model, resolver: OpResolver) -> dict[tuple[Op, str, int], str]:
    """By operator, name and version, why nothing runs it; and which signatures need it, where there
    are others."""
    lacking = lacking_signatures(model, resolver)
    refusals = {}
    for item in missing_operators(model, resolver):
        place = item.op, item.name, item.version
        keys = [
            key
            for key, rows in lacking.items()
            if place in [(row.op, row.name, row.version) for row in rows]
        ]
        others = len(keys) < len(model.signature_defs)
        names = ", ".join(map(repr, keys))
        where = f"; needed by the signatures {names} alone" if keys and others else ""
        refusals[place] = f"{item}{where}"
    return refusals


def _operators(
    model: Model, refusals: Mapping[tuple[Op, str, int], str]
) -> tuple[OperatorVersion, ...]:
    uses = Counter(op.opcode_index for graph in model.subgraphs for op in graph.operators)
    required = required_versions(model)
    rows = []
    for index, code in enumerate(model.operator_codes):
        op, version, key = code.builtin_code, code.version, operator_key(code)
        name = key.name if isinstance(key, Op) else key
        known = KNOWN.get((op, version))
        rows.append(
            OperatorVersion(
                name,
                uses[index],
                version,
                required.get(index),
                runtime_version(op, version),
                known.brings if known is not None else "",
                refusals.get((op, name, version), ""),
            )
        )
    return tuple(rows)


def _cells(row: OperatorVersion) -> tuple[str, ...]:
    required = "-" if row.required is None else str(row.required)
    cells = row.operator, str(row.count), str(row.version), required, row.runtime or "-", row.brings
    return cells
