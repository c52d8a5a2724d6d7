"""The verb ``bench``: the time and memory of models, beside LiteRT's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from tflite_ort.base.files import write_text
from tflite_ort.command.activity import activity
from tflite_ort.command.arguments import (
    BudgetNumbers,
    ExternalRoots,
    Hybrid,
    HybridOption,
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    ResolverName,
    Seed,
    SignatureKey,
    budgets,
    check_written,
    choices_of,
    refuse_unused,
    resolver_of,
)
from tflite_ort.command.bench_suite import (
    ModelKind,
    classes,
    kind_of,
    models_of,
    print_classes,
    suite_record,
    to_html,
)
from tflite_ort.command.bench_tables import (
    PROFILED_RUNS,
    print_profile,
    print_results,
    profile_record,
)
from tflite_ort.command.benchmark import Result, Settings, measure
from tflite_ort.command.benchmark import profile as profile_of
from tflite_ort.command.called import called_model
from tflite_ort.command.terminal import complain, say_json
from tflite_ort.plan.profiling import OperatorTime
from tflite_ort.schema import BridgeError

Models = Annotated[list[Path] | None, typer.Argument(metavar="MODEL", help=".tflite files.")]
Suite = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Time all models of a folder, and sum them up in classes by LiteRT's time.",
    ),
]
Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Write a page with the tables and plots.")
]
ThreadCounts = Annotated[
    str, typer.Option(metavar="N,...", help="Numbers of threads, with commas between.")
]
Rounds = Annotated[int, typer.Option(min=1, help="Turns of each runtime.")]
MinTime = Annotated[float, typer.Option(min=0.0, help="Seconds of one turn.")]
Check = Annotated[bool, typer.Option("--check", help="Compare the outputs too.")]
Litert = Annotated[bool, typer.Option(help="Measure LiteRT if it is installed.")]
Memory = Annotated[bool, typer.Option(help="Measure peak memory.")]
JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="[FILE]", help="Write the numbers as JSON; without FILE, print them."
    ),
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Time each operator and its nodes instead.")
]

# What --profile does not do.
_OF_ROUNDS = ("html", "rounds", "min_time", "check", "litert", "memory")


def bench(
    context: typer.Context,
    models: Models = None,
    suite: Suite = None,
    html: Html = None,
    signature: SignatureKey = None,
    json_file: JsonFile = None,
    threads: ThreadCounts = "1,2",
    rounds: Rounds = 15,
    min_time: MinTime = 0.05,
    check: Check = False,
    litert: Litert = True,
    memory: Memory = True,
    profile: Profile = False,
    seed: Seed = 0,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    precision: PrecisionOption = Precision.FULL,
    resolver: ResolverName = None,
    hybrid: HybridOption = Hybrid.AUTO,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Time models, beside LiteRT where ai-edge-litert is installed.

    Both runtimes take turns; the ratio is LiteRT's time over ours, the median over the rounds.
    Memory is the growth of a fresh process (Linux only).
    """
    counts = _thread_counts(threads)
    _refuse_unused(context, len(counts), profile=profile, litert=litert)
    _check_written(json_file, html)
    resolver_of(resolver)
    providers = choices_of(provider, provider_option)
    roots = tuple(map(str, external_root or ()))
    limits: dict[str, Any] = {"external_roots": roots, "budgets": budgets(budget)}
    settings = Settings(
        *(rounds, min_time, seed, litert, check, memory, providers, resolver, hybrid.value, roots),
        *(tuple(budget or ()), precision.value),
    )
    results, kinds, failed = list[Result](), dict[str, ModelKind](), False
    profiles = dict[str, Sequence[OperatorTime]]()
    files = _files(models, suite)
    for number, model in enumerate(files):
        activity.tell(f"bench {model.name}", number, len(files))
        try:
            with called_model(model, signature, **limits) as (file, _):
                if profile:
                    profiles[model.name] = profile_of(file, counts[0], settings, PROFILED_RUNS)
                    continue
                measured = [measure(file, count, settings) for count in counts]
                kinds |= {each.model: kind_of(file, **limits) for each in measured}
            results += measured
        except (BridgeError, OSError, MemoryError, RecursionError) as error:
            complain(error, model)
            failed = True
    if profile:
        _show_profiles(profiles, json_file)
    else:
        _show(results, kinds, check, json_file, html, with_classes=suite is not None)
    raise typer.Exit(int(failed))


def _refuse_unused(context: typer.Context, counts: int, *, profile: bool, litert: bool) -> None:
    if profile:
        refuse_unused(context, "not with --profile", *_OF_ROUNDS)
        if counts > 1:
            refuse_unused(context, "takes one number with --profile", "threads")
    elif not litert:
        refuse_unused(context, "compares with LiteRT", "check")


def _check_written(json_file: str | None, html: Path | None) -> None:
    check_written(json_file, "--json")
    check_written(html, "--html")


def _files(models: Sequence[Path] | None, suite: Path | None) -> list[Path]:
    found = [] if suite is None else models_of(suite)
    if suite is not None and not found:
        raise typer.BadParameter(f"{suite} has no .tflite files", param_hint="--suite")
    files = [*(models or ()), *found]
    if not files:
        raise typer.BadParameter("no model is given", param_hint="MODEL")
    return files


def _show(
    results: Sequence[Result],
    kinds: Mapping[str, ModelKind],
    check: bool,
    json_file: str | None,
    html: Path | None,
    *,
    with_classes: bool,
) -> None:
    """Print the results, or write them to the files that were asked for."""
    if json_file is not None:
        _write_json(json_file, suite_record(results, kinds))
    if results and json_file != "-":
        print_results(results, check)
        if with_classes and (found := classes(results, kinds)):
            print_classes(found)
    if html is not None:
        write_text(html, to_html(results, kinds))


def _show_profiles(profiles: Mapping[str, Sequence[OperatorTime]], json_file: str | None) -> None:
    """Print the times of operators by model, or write them to the file that was asked for."""
    if json_file is not None:
        _write_json(json_file, {name: profile_record(rows) for name, rows in profiles.items()})
    if json_file != "-":
        for name, rows in profiles.items():
            print_profile(name, rows)


def _write_json(file: str, record: Any) -> None:
    """To a file, or with ``-`` to standard output."""
    if file == "-":
        say_json(record)
    else:
        write_text(file, json.dumps(record, indent=2) + "\n")


def _thread_counts(text: str) -> list[int]:
    if not all(part.isdecimal() and int(part) > 0 for part in text.split(",")):
        raise typer.BadParameter(
            f"{text!r} is not numbers above 0 with commas between", param_hint="--threads"
        )
    return [int(part) for part in text.split(",")]
