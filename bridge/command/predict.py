"""The verb ``predict``: a model over many files and tables, with results in one file."""

from __future__ import annotations

import hashlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tflite_ort.command.activity import activity
from tflite_ort.command.arguments import (
    AsJson,
    BudgetNumbers,
    ExternalRoots,
    Hybrid,
    HybridOption,
    Mean,
    ModelFile,
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    Rate,
    ResolverName,
    Std,
    budgets,
    choices_of,
    normalization_of,
    refuse_unused,
    refuse_unused_preparation,
    resolver_of,
)
from tflite_ort.command.found import Labels
from tflite_ort.command.terminal import INTERRUPTED, count_text, new_console, say, say_json
from tflite_ort.decode.pixel_range import METADATA
from tflite_ort.model.opening import opened_model
from tflite_ort.prediction.answers import read_labels
from tflite_ort.prediction.array_files import InputError
from tflite_ort.prediction.images import pillow_module
from tflite_ort.prediction.job import Job, locked, opened_job
from tflite_ort.prediction.local import Tell, run_processes, run_threads
from tflite_ort.prediction.pictures import picture_text
from tflite_ort.prediction.pool import cores
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.ray_engine import Cluster, run_ray
from tflite_ort.prediction.record_files import RECORD_FILES, check_records
from tflite_ort.prediction.results import Done
from tflite_ort.prediction.units import IMAGES, SOUND, WITH_COLUMNS, Unit, suffix_of, units_of
from tflite_ort.prediction.wanted import Wanted
from tflite_ort.prediction.work import Setup, Worker
from tflite_ort.prediction.writers import writer_for
from tflite_ort.schema import with_own_data
from tflite_ort.version import __version__

# Does what is left of a job, and tells how far it is.
Work = Callable[[Tell], None]


class Engine(StrEnum):
    """What the workers are."""

    THREADS = "threads"
    PROCESSES = "processes"
    RAY = "ray"


Inputs = Annotated[
    list[str],
    typer.Argument(help="Files, folders and patterns: images, .wav, .npy, .npz, .parquet, .csv."),
]


def _named(out: Path | None) -> Path | None:
    if out is None:
        raise typer.BadParameter(
            "add --out results.csv (or .parquet, .jsonl, .npz); what is in one file, "
            "tflite-ort run MODEL FILE shows"
        )
    return out


Out = Annotated[
    Path,
    typer.Option(callback=_named, metavar="PATH", help="Results: .parquet, .csv, .jsonl or .npz."),
]
Rows = Annotated[
    bool, typer.Option("--rows", help="The first axis of .npy and .npz files is rows.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        metavar="INPUT=COLUMN",
        help="The column of a table that an input reads; several of numbers make one row.",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="The most rows in a batch; without, chosen by the size of the results, at most 32.",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(min=1, help="How many workers; without, one for each core, or one on a device."),
]
EngineOption = Annotated[
    Engine,
    typer.Option("--engine", help="Whether the workers are threads, processes or actors of Ray."),
]
Address = Annotated[
    str | None, typer.Option(help="Address of the Ray cluster; without, a new one on this machine.")
]
Gpus = Annotated[
    float,
    typer.Option(
        "--gpus-per-worker", min=0, help="GPUs for each actor of Ray; with 0.5 two share one."
    ),
]
SaveEvery = Annotated[
    float,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="Keep the results of so many seconds at a time: a kill loses no more.",
    ),
]
Keep = Annotated[
    str | None,
    typer.Option(
        "--keep",
        metavar="COLUMNS",
        help="Columns of the tables that the results have too, with commas between.",
    ),
]
Best = Annotated[
    int,
    typer.Option("--top", min=1, help="So many classes stand for a vector of more than 16 scores."),
]
RawVectors = Annotated[bool, typer.Option("--raw", help="Write such vectors whole.")]
Draw = Annotated[
    Path | None,
    typer.Option(
        "--draw", metavar="FOLDER", help="Write each picture here with what was found drawn on it."
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Begin anew, and replace results that are there.")
]


def predict(
    context: typer.Context,
    model: ModelFile,
    inputs: Inputs,
    out: Out = None,  # type: ignore[assignment]  # the option says what to add
    rows: Rows = False,
    column: Columns = None,
    mean: Mean = None,
    std: Std = None,
    rate: Rate = None,
    keep: Keep = None,
    labels: Labels = None,
    top: Best = 5,
    raw: RawVectors = False,
    draw: Draw = None,
    batch_size: BatchSize = None,
    workers: Workers = None,
    engine: EngineOption = Engine.THREADS,
    address: Address = None,
    gpus: Gpus = 0.0,
    save_every: SaveEvery = 5.0,
    overwrite: Overwrite = False,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    precision: PrecisionOption = Precision.FULL,
    resolver: ResolverName = None,
    hybrid: HybridOption = Hybrid.FLOAT,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
    as_json: AsJson = False,
) -> None:
    """Run a model over many inputs. The same command goes on with a job that was interrupted."""
    if engine is not Engine.RAY:
        refuse_unused(context, "needs --engine ray", "address", "gpus")
    arguments = {
        "providers": choices_of(provider, provider_option),
        "precision": precision.value,
        "resolver": resolver_of(resolver),
        "hybrid": hybrid.value,
        "external_roots": external_root or (),
        "budgets": budgets(budget),
    }
    preparation = Preparation(normalization=normalization_of(mean, std), rate=rate)
    wanted = _wanted(keep, labels, 0 if raw else top, draw)
    setup = Setup(os.fspath(model), batch_size, arguments, preparation, _columns(column), wanted)
    worker = Worker(setup)
    refuse_unused_preparation(context, preparation, worker.inputs)
    given = {"inputs": inputs, "rows": rows, "provider": [provider, provider_option]}
    given |= {"mean": mean, "std": std, "rate": rate, "hybrid": hybrid.value, "budget": budget}
    given |= {"resolver": resolver, "external roots": list(map(str, external_root or ()))}
    given |= {"precision": precision.value, **_description(model, setup, worker)}
    units = units_of(inputs, rows=rows, names=_read_names(worker, setup), out=out)
    units = _with_columns(context, list(units)) if column else units
    notes, here = dict(_notes(worker, preparation)), engine is not Engine.RAY
    cluster = Cluster(workers or (cores() if worker.on_cpu else 1), address, gpus)
    with locked(out):
        writer, noted = writer_for(out, worker.columns), _noted(units, worker, notes, here=here)
        job = opened_job(out, writer, given, noted, overwrite=overwrite, save_seconds=save_every)
        _run(job, _work_of(engine, job, setup, worker, cluster), as_json=as_json)


def _wanted(keep: str | None, labels: Path | None, top: int, draw: Path | None) -> Wanted:
    kept = tuple(name.strip() for name in (keep or "").split(",") if name.strip())
    return Wanted(kept, tuple(read_labels(labels)), top, "" if draw is None else os.fspath(draw))


def _with_columns(context: typer.Context, units: list[Unit]) -> Iterator[Unit]:
    """`units`, of which some have columns.

    Raises:
        BadParameter: none has.
    """
    if not any(suffix_of(each.path) in WITH_COLUMNS for each in units):
        refuse_unused(context, f"needs an input of {', '.join(WITH_COLUMNS)}", "column")
    return iter(units)


def _work_of(engine: Engine, job: Job, setup: Setup, worker: Worker, cluster: Cluster) -> Work:
    if engine is Engine.PROCESSES:
        return partial(run_processes, job, setup, cluster.workers, worker.rows_at_once)
    if engine is Engine.RAY:
        return partial(run_ray, job, setup, cluster)
    return partial(run_threads, job, worker, cluster.workers)


def _description(model: Path, setup: Setup, worker: Worker) -> dict[str, Any]:
    """What results depend on besides the options."""
    wanted = setup.wanted
    return {
        "keep": list(wanted.keep),
        "labels": list(wanted.labels),
        "top": wanted.top,
        "draw": wanted.draw,
        "version of tflite-ort": __version__,
        "model": _digest(model, setup),
        "folder": os.getcwd(),  # where the names of inputs are looked up
        "columns": {name: list(listed) for name, listed in setup.columns.items()},
        "batch size": worker.rows_at_once,
    }


def _digest(path: Path, setup: Setup) -> str:
    """A digest of a model file and of the other files that hold its constants."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256")
    budgets, roots = setup.arguments["budgets"], setup.arguments["external_roots"]
    model = opened_model(path, None, budgets, roots)
    for buffer in with_own_data(model).buffers[len(model.buffers) :]:
        if buffer.data is not None:
            digest.update(buffer.data.data)
    return digest.hexdigest()


def _run(job: Job, work: Work, *, as_json: bool) -> None:
    """Do what is left, and say how it went.

    Raises:
        InputError: no row has a result.
    """
    if job.left < job.total:
        say(f"going on: {job.total - job.left} of {job.total} inputs are done", error=True)
    started, rows = time.monotonic(), 0
    with _progress(job) as tell:

        def told(done: Done) -> None:
            nonlocal rows
            rows += done.rows
            tell(done)

        try:
            work(told)
        except KeyboardInterrupt:
            job.refresh()
            say(
                f"interrupted: results of {job.total - job.left} of {job.total} inputs are kept in "
                f"{job.folder}; the same command goes on with it, and --overwrite begins anew",
                error=True,
            )
            raise typer.Exit(INTERRUPTED) from None
    done = job.finish()
    seconds = time.monotonic() - started
    if as_json:
        counts = {"rows": done.rows, "errors": done.failed, "inputs": done.units}
        first = {"first_error": done.error or None, "seconds": seconds}
        say_json({"file": str(job.out), **counts, **first})
    error = f"an error (column 'error'), such as: {done.error}"
    none = 0 < done.rows == done.failed
    if not as_json:
        count = count_text(done.rows, "row") if rows == done.rows else f"{rows} of {done.rows} rows"
        rate = f"{count} in {seconds:.1f} s ({rows / max(seconds, 1e-9):.0f} rows/s)"
        some = f", {done.failed} with {error}" if done.failed and not none else ""
        say(f"wrote {job.out}: {rate}{some}")
    if none:
        all_of_them = "the only row has" if done.rows == 1 else f"all {done.rows} rows have"
        raise InputError(f"{all_of_them} {error}")


@contextmanager
def _progress(job: Job) -> Iterator[Tell]:
    """A bar with the rate and the time left, on a terminal; elsewhere nothing."""
    if sys.stdout.isatty():
        activity.end()
    console = new_console()
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not sys.stdout.isatty()) as progress:
        bar = progress.add_task("", total=job.total, completed=job.total - job.left, rate="")
        started, done = time.monotonic(), 0

        def tell(now: Done) -> None:
            nonlocal done
            done += now.rows
            rate = done / max(time.monotonic() - started, 1e-9)
            progress.update(bar, advance=now.units, rate=f"{rate:.0f} rows/s")

        yield tell


def _notes(worker: Worker, how: Preparation) -> Iterator[tuple[str, str]]:
    """(suffix, what is said of the first file with it) where the model does not tell what it
    takes."""
    if len(worker.inputs) != 1:
        return
    (column,) = worker.inputs
    picture = how.picture_of(column)
    if picture is not None and how.normalization is None and picture.source != METADATA:
        yield from ((suffix, f"pictures: {picture_text(picture)}") for suffix in IMAGES)
    if how.hears(column) and how.ear_of(column).rate is None:
        yield SOUND, "sound keeps the rate of its file, since the model names none (--rate does)"


def _noted(
    units: Iterator[Unit], worker: Worker, notes: Mapping[str, str], *, here: bool
) -> Iterator[Unit]:
    """The units; what there is to say of them is said once, and a table that does not fit ends it.

    Args:
        here: they are read on this machine.

    Raises:
        InputError: the package that reads them is not installed, or no row of a table fits.
    """
    said, suffixes, table = set[str](), set[str](), ""
    for unit in units:
        suffix = suffix_of(unit.path)
        if here and suffix not in suffixes:
            _check_package(suffix)
            suffixes.add(suffix)
        if here and unit.table and unit.path != table:
            table = unit.path
            worker.check(unit)
        note = notes.get(suffix)
        if note is not None and note not in said:
            say(f"note: {note}", error=True)
            said.add(note)
        yield unit


def _check_package(suffix: str) -> None:
    """Say before the job that no file of this suffix can be read, not of each row."""
    if suffix in IMAGES:
        pillow_module("reading images")
    if suffix in RECORD_FILES:
        check_records(suffix)


def _read_names(worker: Worker, setup: Setup) -> list[str]:
    """What the columns of tables that the inputs read are called."""
    return [name for each in worker.inputs for name in setup.columns.get(each.name, [each.name])]


def _columns(given: list[str] | None) -> dict[str, list[str]]:
    found = dict[str, list[str]]()
    for name, column in map(_named_column, given or ()):
        found.setdefault(name, []).append(column)
    return found


def _named_column(text: str) -> tuple[str, str]:
    """The input and the column that ``INPUT=COLUMN`` stands for."""
    name, equals, column = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not INPUT=COLUMN", param_hint="--column")
    return name, column
