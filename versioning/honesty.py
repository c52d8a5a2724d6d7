"""Whether a file's versions say what its operators need, and a file that does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tflite_ort.schema import Model, Op, OperatorCode
from tflite_ort.schema.file.metadata import with_metadata_text
from tflite_ort.versioning.known import KNOWN, known_versions
from tflite_ort.versioning.operator_signature import signature
from tflite_ort.versioning.rules import required_version
from tflite_ort.versioning.runtime import (
    METADATA,
    declared_runtime,
    minimum_runtime,
    release,
)


def required_versions(model: Model) -> Mapping[int, int]:
    """By index of operator code: the most that any operator with this code requires.

    Codes that no operator uses and those of custom operators are not in it.
    """
    required: dict[int, int] = {}
    for graph in model.subgraphs:
        for operator in graph.operators:
            index = operator.opcode_index
            if model.operator_codes[index].builtin_code is not Op.CUSTOM:
                version = required_version(signature(model, graph, operator))
                required[index] = max(version, required.get(index, version))
    return required


def update_versions(model: Model) -> Model:
    """`model` with each operator code at the version its operators require, and the minimum
    runtime in its metadata.

    A version is lowered as well as raised. Codes that nothing uses and custom ones stay. Where the
    rules ask for a version above all that TFLite registers, the last one registered is written.
    """
    required = required_versions(model)
    codes = tuple(
        replace(code, version=_writable(code, required[index])) if index in required else code
        for index, code in enumerate(model.operator_codes)
    )
    updated = replace(model, operator_codes=codes)
    runtime = minimum_runtime(updated)
    return updated if runtime is None else with_metadata_text(updated, METADATA, runtime)


def version_warnings(model: Model) -> list[str]:
    """What the versions of `model` promise and do not keep; the model runs all the same.

    One text per operator code whose version is lower than its operators require, and one when
    the metadata promises a runtime too old.
    """
    warnings = [
        _too_low(model.operator_codes[index], required)
        for index, required in required_versions(model).items()
        if model.operator_codes[index].version < _writable(model.operator_codes[index], required)
    ]
    declared, minimum = declared_runtime(model), minimum_runtime(update_versions(model))
    if declared and minimum and release(declared) < release(minimum):
        warnings.append(f"The file promises to run on TFLite {declared}, it needs {minimum}.")
    return warnings


def _writable(code: OperatorCode, required: int) -> int:
    """`required`, or the last version that TFLite registers when that is lower."""
    known = known_versions(code.builtin_code)
    return min(required, known[-1]) if known else required


def _too_low(code: OperatorCode, required: int) -> str:
    known = KNOWN.get((code.builtin_code, required))
    why = f" ({known.brings}, TFLite {known.runtime})" if known and known.brings else ""
    return (
        f"{code.builtin_code.name} says version {code.version} and needs {required}{why}: "
        "TFLite runs it, but an older release may run it wrongly instead of refusing it."
    )
