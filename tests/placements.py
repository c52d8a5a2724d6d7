"""Where the interpreters of a test run put their operators, held against the recorded placements.

`bridge/command/placements.json` is the record, and docs/operators.md is made from it. It says what
was measured, not what was meant.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tflite_ort.base.files import write_text
from tflite_ort.opmap import lower, translator
from tflite_ort.plan.build import Plan
from tflite_ort.plan.context import PlanContext
from tflite_ort.plan.placements import Placement
from tflite_ort.providers.delegates import ExecutionProviderDelegate
from tflite_ort.providers.session import ORT_RELEASE
from tflite_ort.schema import BridgeError, Op, OperatorView, TensorType
from tflite_ort.schema.values.operators import data_input

FILE = Path(__file__).parents[1] / "bridge" / "command" / "placements.json"
WRITE = "python -m pytest --write-placements"

# The release of ONNX Runtime with which the record was made, and what is said of earlier ones.
RECORDED_WITH = (1, 31)
_OF_RELEASES = re.compile(r"wrong in ONNX Runtime |Could not find an implementation for ")

Runs = dict[str, list[str]]  # where an operator runs, with the reasons against what came earlier
Record = dict[str, dict[str, Runs]]  # by operator and type

_COMPLEX = (TensorType.COMPLEX64, TensorType.COMPLEX128)
_FLOATS = (
    *(TensorType.FLOAT32, TensorType.FLOAT16, TensorType.FLOAT64, TensorType.BFLOAT16),
    *(TensorType.FLOAT8_E4M3FN, TensorType.FLOAT8_E5M2),
)

# By operator and type: where it ran, with the reasons against what came earlier.
Seen = dict[tuple[str, str], dict[str, set[str]]]


def where(row: Placement) -> str:
    """Where an operator runs; in ONNX Runtime, if it is only kept from an early release of it.

    What releases before the one of the record lack, or compute wrongly, numpy does there.
    """
    early = ORT_RELEASE < RECORDED_WITH and row.runs_on == "numpy"
    return "ort" if early and _OF_RELEASES.search(row.reason) else row.runs_on


def note(seen: Seen, plan: Plan, context: PlanContext) -> None:
    """Add the operators of a plan that ran on the default delegates."""
    if list(context.delegates) != [ExecutionProviderDelegate("CPUExecutionProvider")]:
        return
    graph = plan.graph
    operators = {op.index: op for op in (*graph.operators, *graph.folded)}
    for row in plan.placements:
        known = row.operator in Op.__members__ and not _is_of_a_resolver(row)
        if known and row.subgraph == graph.subgraph and row.index in operators:
            op = operators[row.index]
            if where(row) != row.runs_on:
                continue
            places = seen.setdefault((row.operator, data_type(op).name), {})
            places.setdefault(row.runs_on, set()).add(_general(row.reason))
            if row.runs_on == "numpy" and "exported" not in places and _is_exported(op):
                places["exported"] = set()


def merge(seen: Seen, more: Seen) -> None:
    """Add what another process saw."""
    for key, places in more.items():
        for place, reasons in places.items():
            seen.setdefault(key, {}).setdefault(place, set()).update(reasons)


def _is_exported(op: OperatorView[Any]) -> bool:
    """Whether an exported file has it all the same."""
    inputs = [tensor for tensor in op.present_inputs() if not tensor.is_constant]
    try:
        return not lower([op], inputs, op.outputs, translator).refusals
    except BridgeError:
        return False


def _is_of_a_resolver(row: Placement) -> bool:
    """Whether a test took away the translator that there is, or has an operator of its own."""
    missing = re.search(r"no translator for (\S+) version", row.reason)
    if missing is None:
        return False
    op = Op.__members__.get(missing[1])
    return op is None or bool(translator.versions(op))


def data_type(op: OperatorView[Any]) -> TensorType:
    """The type by which an operator is known: of quantised codes if it computes with such, else of
    complex numbers, else of floats, else of the operand that holds the data."""
    if op.op in (Op.CAST, Op.DEQUANTIZE):
        return op.present_inputs()[0].type
    tensors = [*op.present_inputs(), *op.outputs]
    computed = [tensor for tensor in tensors if not tensor.is_constant] or tensors
    place = data_input(op.op)
    data = [tensor for tensor in op.inputs[place : place + 1] if tensor is not None]
    types = [tensor.type for tensor in computed]
    codes = [tensor.type for tensor in computed if tensor.is_quantized]
    complexes = [type for type in types if type in _COMPLEX]
    floats = [type for type in types if type in _FLOATS]
    return (codes or complexes or floats or [tensor.type for tensor in data] or types)[0]


def _general(reason: str) -> str:
    """A reason without the numbers and names of one model."""
    return re.sub(r"(?<![A-Z_\d])-?\d[\d.e+-]*|'[^']*'", "...", reason)


def record_of(seen: Seen) -> Record:
    """What was seen, in the order of the file."""
    record: Record = {}
    for (operator, type), runs in sorted(seen.items()):
        places = {place: sorted(reasons - {""}) for place, reasons in sorted(runs.items())}
        record.setdefault(operator, {})[type] = places
    return record


def recorded() -> Record:
    record: Record = json.loads(FILE.read_text(encoding="utf-8"))
    return record


def contradictions(seen: Seen) -> list[str]:
    """What was seen and the file does not say; and, if every operator was seen in every type, the
    other way round."""
    saw, said = _places(record_of(seen)), _places(recorded())
    whole = {key[:2] for key in said} <= {key[:2] for key in saw}
    unsaid = [f"{op} {type} runs on {place}" for op, type, place in sorted(saw - said)]
    unseen = [f"{op} {type} no more on {place}" for op, type, place in sorted(said - saw)]
    return unsaid + (unseen if whole else [])


def _places(record: Record) -> set[tuple[str, str, str]]:
    """Without those that are computed at load: that says something of a model, such as a drawn one
    whose results have no elements, and nothing of an operator."""
    return {
        (operator, type, place)
        for operator, types in record.items()
        for type, places in types.items()
        for place in places
        if place != "constant"
    }


def write(seen: Seen) -> None:
    """Write the file anew, a line for each operator."""
    lines = (f"{json.dumps(op)}: {json.dumps(types)}" for op, types in record_of(seen).items())
    write_text(FILE, "{\n" + ",\n".join(lines) + "\n}\n")
