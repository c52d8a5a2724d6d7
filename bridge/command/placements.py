"""Where the operators of a model run, counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tflite_ort.command.advice import on_the_command_line
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.plan.placements import Placement
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.providers.traits import FULL_PRECISION, traits_of
from tflite_ort.schema import BridgeError, Budgets, Model, Op
from tflite_ort.versioning.resolver import OpResolver

# Operator, version, place, and why not elsewhere.
Row = tuple[str, int, str, str]


def placed(
    path: Path,
    providers: ProviderChoices | None,
    resolver: OpResolver | None,
    budgets: Budgets | None = None,
    external_roots: Sequence[Path] = (),
    name: str | None = None,
    precision: str = FULL_PRECISION,
) -> tuple[Counter[Row], str, str]:
    """The rows of a model, of a bundle of the one called `name`, or why it cannot run; and why it
    runs on these providers, if they were chosen here."""
    try:
        interpreter = Interpreter(
            path,
            providers=providers,
            precision=precision,
            resolver=resolver,
            external_roots=external_roots,
            budgets=budgets,
            model=name,
        )
        interpreter.allocate_tensors()
    except BridgeError as error:
        return Counter(), on_the_command_line(str(error)), ""
    found = interpreter.delegation()
    rows = Counter((row.operator, row.version, _runner_text(row), row.reason) for row in found)
    return rows, "", found[0].choice if found else ""


def _runner_text(row: Placement) -> str:
    """The delegate, the providers of its session where they are not the delegate's alone, and the
    precision of floats where the delegate has a choice."""
    said = [] if row.provider in ("", row.delegate) else [row.provider]
    if row.precision and len(traits_of(row.delegate).precisions) > 1:
        said.append(row.precision)
    place = row.delegate or row.runs_on
    return f"{place} ({', '.join(said)})" if said else place


def unplaced(model: Model) -> Counter[Row]:
    """The rows of a model that cannot run here."""
    rows: Counter[Row] = Counter()
    for graph in model.subgraphs:
        for op in graph.operators:
            code = model.operator_codes[op.opcode_index]
            custom = code.builtin_code is Op.CUSTOM and code.custom_code
            rows[custom or code.builtin_code.name, code.version, "-", ""] += 1
    return rows
