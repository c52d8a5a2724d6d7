"""The verb ``compile``: makes models ready, so that the next process finds them in the cache."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from tflite_ort.command.activity import activity
from tflite_ort.command.arguments import (
    AsJson,
    BudgetNumbers,
    ExternalRoots,
    Hybrid,
    HybridOption,
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    ResolverName,
    budgets,
    choices_of,
    resolver_of,
)
from tflite_ort.command.terminal import complain, say, say_json
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.plan.stored import StoredPlan
from tflite_ort.schema import BridgeError


def compile_models(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL", help=".tflite files.")],
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    precision: PrecisionOption = Precision.FULL,
    threads: Annotated[int, typer.Option(min=1, help="Threads within an operator.")] = 1,
    batch: Annotated[
        int | None, typer.Option(min=1, help="Samples in a batch, for Interpreter(batch=N).")
    ] = None,
    hybrid: HybridOption = Hybrid.AUTO,
    tune: Annotated[
        bool, typer.Option("--tune", help="Time lowerings first, for Interpreter(tune=True).")
    ] = False,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--cache", metavar="DIR", help="Folder of the cache; without, the one of cache=True."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make models ready and keep them in the cache, for interpreters with the same choices.

    The exit code is 1 if one cannot be kept.
    """
    rows, failed = [], False
    for number, model in enumerate(models):
        activity.tell(f"compile {model.name}", number, len(models))
        started = time.perf_counter()
        try:
            found, problem = _compiled(
                model,
                cache=True if folder is None else folder,
                providers=choices_of(provider, provider_option),
                precision=precision.value,
                num_threads=threads,
                batch=batch,
                hybrid=hybrid.value,
                tune=tune,
                resolver=resolver_of(resolver),
                external_roots=tuple(map(str, external_root or ())),
                budgets=budgets(budget),
            )
        except (BridgeError, OSError, MemoryError, RecursionError) as error:
            complain(error, model)
            failed = True
            continue
        failed = failed or bool(problem)
        said = f"not kept: {problem}" if problem else "was there" if found else "kept"
        seconds = time.perf_counter() - started
        rows.append({"model": str(model), "seconds": seconds, "cache": said})
        if not as_json:
            say(f"{model.name}: ready in {seconds:.2f} s, {said}")
    if as_json:
        say_json(rows)
    raise typer.Exit(int(failed))


def called_subgraphs(interpreter: Interpreter) -> list[int]:
    """The subgraphs that callers run: the first one, and those of signatures."""
    return sorted({0, *(each.subgraph for each in interpreter._signatures.values())})


def _compiled(model: Path, **options: Any) -> tuple[bool, str]:
    """Make a model ready; whether it was there, and why it cannot be kept, empty where it is."""
    if options["tune"]:  # what the layers get is part of the key
        with Interpreter(model, **options | {"cache": False}) as interpreter:
            for number in called_subgraphs(interpreter):
                interpreter._subgraph(number).allocate()
    with Interpreter(model, **options) as interpreter:
        cache = interpreter._shared.cache
        executors = [interpreter._subgraph(number) for number in called_subgraphs(interpreter)]
        problem = "" if cache else "its operators are code of its user, or the folder is not usable"
        found = True
        for executor in executors:
            executor.allocate()
            found = found and isinstance(executor.executor.plan, StoredPlan)
            problem = problem or (cache.problem if cache else "")
    return found, problem
