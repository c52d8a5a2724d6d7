"""The verb ``tune``: times the lowerings of the layers of models, and keeps the fastest."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tflite_ort.command.activity import activity
from tflite_ort.command.arguments import (
    AsJson,
    BudgetNumbers,
    ExternalRoots,
    ResolverName,
    budgets,
    resolver_of,
)
from tflite_ort.command.compile import called_subgraphs
from tflite_ort.command.terminal import complain, count_text, say, say_json
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.schema import BridgeError
from tflite_ort.tuning.table import TuningTable, is_other_file
from tflite_ort.tuning.tuner import KNOWN, LEFT, TIMED, Tuning


def tune(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help=".tflite files.")],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep the results here, for Interpreter(tune=FILE)."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads within an operator.")] = 1,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.0,
            help="The most seconds for each model; the cost model chooses for layers that are not "
            "timed by then.",
        ),
    ] = 20.0,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
    as_json: AsJson = False,
) -> None:
    """Time the lowerings of each layer on this machine, once, and keep the fastest.

    Interpreter(tune=True) reads what was found. Layers that were timed before take no time. The
    exit code is 1 if the results cannot be kept.
    """
    if out is not None and is_other_file(out):
        raise typer.BadParameter(f"{out} is no table of tuned layers", param_hint="--out")
    roots, failed, rows = tuple(map(str, external_root or ())), False, []
    for model in models:
        started = time.perf_counter()
        try:
            counts, table = _timed(
                model,
                Tuning(out, seconds),
                num_threads=threads,
                resolver=resolver_of(resolver),
                external_roots=roots,
                budgets=budgets(budget),
            )
        except (BridgeError, OSError, MemoryError, RecursionError) as error:
            complain(error, model)
            failed = True
            continue
        took = time.perf_counter() - started
        layers = {f"layers_{how}": counts[how] for how in (TIMED, KNOWN, LEFT)}
        rows.append({"model": str(model), **layers, "seconds": took, "file": str(table.path)})
        failed = failed or not table.is_saved
        if not as_json:
            say(f"{model.name}: {_summary(counts, took, table)}")
    if as_json:
        say_json(rows)
    raise typer.Exit(int(failed))


def _summary(counts: Mapping[str, int], took: float, table: TuningTable) -> str:
    """What was timed, and where the results are."""
    if not counts:
        return "no layer has several lowerings"
    said = [f"{count_text(counts[TIMED], 'layer')} timed in {took:.1f} s"]
    said += [f"{counts[KNOWN]} timed before"] if counts[KNOWN] else []
    said += [f"{counts[LEFT]} left for want of time (--seconds)"] if counts[LEFT] else []
    if not table.is_saved:
        return ", ".join(said) + "; not kept"
    where = f"; kept in {table.path}" if counts[TIMED] or counts[KNOWN] else ""
    return ", ".join(said) + where


def _timed(model: Path, settings: Tuning, **options: Any) -> tuple[Mapping[str, int], TuningTable]:
    """Tune a model, and show the layer that is being timed; how the lowerings of its layers were
    found, and the table of the results."""

    def progress(label: str) -> None:
        activity.tell(f"{model.name}: {label}")

    activity.tell(model.name)
    tuning = replace(settings, progress=progress)
    # A plan from the cache would not say what was timed.
    with Interpreter(model, tune=tuning, cache=False, **options) as interpreter:
        for number in called_subgraphs(interpreter):
            interpreter._subgraph(number).allocate()
        tuner = interpreter._shared.context().tuner
        assert tuner is not None
        return Counter(tuner.found.values()), tuner.table
