"""The verb ``verify``: which operator is off, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import numpy.typing as npt
import typer
from onnx import ModelProto

from tflite_ort.base.files import write_bytes, write_text
from tflite_ort.base.guard import protect
from tflite_ort.base.json_text import parsed
from tflite_ort.base.optional import late
from tflite_ort.command.activity import activity
from tflite_ort.command.arguments import (
    BudgetNumbers,
    BundledModel,
    ExternalRoots,
    Hybrid,
    HybridOption,
    Mean,
    ModelOrBundle,
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    Rate,
    ResolverName,
    Seed,
    SignatureKey,
    Std,
    Threads,
    beginning,
    budgets,
    check_written,
    choices_of,
    normalization_of,
    refuse_unused,
    refuse_unused_preparation,
    resolver_of,
)
from tflite_ort.command.arrays import read_inputs, write_outputs
from tflite_ort.command.called import called_model
from tflite_ort.command.terminal import INTERRUPTED, say
from tflite_ort.command.verify_tables import print_report
from tflite_ort.comparison.differences import Tolerance
from tflite_ort.comparison.drawn import random_inputs
from tflite_ort.comparison.index_limits import index_limits
from tflite_ort.export.exporting import export_onnx
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.prediction.array_files import InputError, open_plain
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.row_model import input_columns
from tflite_ort.providers.delegates import AUTO
from tflite_ort.providers.traits import FULL_PRECISION
from tflite_ort.schema import ExportError, Model, write_model
from tflite_ort.verification.extraction import extract as extracted
from tflite_ort.verification.extraction import one_operator
from tflite_ort.verification.html import environment, to_html
from tflite_ort.verification.overlay import node_names, write_overlays
from tflite_ort.verification.reading import as_verified
from tflite_ort.verification.report import Report
from tflite_ort.verification.runtimes import Settings
from tflite_ort.verification.samples import Random
from tflite_ort.verification.verifying import NAMES
from tflite_ort.verification.verifying import verify as verified
from tflite_ort.versioning.resolver import OpResolver

with late:
    from tflite_ort.interpreter import device_choice

Array = npt.NDArray[Any]

_IMAGES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp"})
_PROFILED = 20

InputFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="[NAME=]FILE|FOLDER",
        help="Files as run takes them; of a folder of pictures, each is a sample. Repeatable.",
    ),
]
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Write the comparison as an HTML page."),
]
OverlayFolder = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help="Write node data for Model Explorer.")
]
PartFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write the first operator that is off as a model, its inputs beside it.",
    ),
]


Runtimes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME",
        autocompletion=beginning(NAMES),
        help=f"What is compared: {', '.join(NAMES)}; repeatable.",
    ),
]
OnnxFile = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="An ONNX file that was made from the model, to be compared too."
    ),
]
MapFile = Annotated[
    Path | None,
    typer.Option(
        "--map",
        metavar="FILE",
        help="JSON: the tensor that each value of the ONNX file stands for.",
    ),
]
JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json", metavar="[FILE]", help="Write the report as JSON; without FILE, print it."
    ),
]
RelativeTolerance = Annotated[
    float, typer.Option(min=0.0, help="What floats may be off, as a share of the largest value.")
]
Reference = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=beginning(NAMES),
        help="The runtime that counts as right; without, LiteRT if it is installed.",
    ),
]
Samples = Annotated[int, typer.Option(min=1, help="How many random inputs.")]
Steps = Annotated[int, typer.Option(min=1, help="Runs in a row, over which state lasts.")]
Quanta = Annotated[
    float, typer.Option(min=0.0, help="What quantized tensors may be off, in steps of their scale.")
]
Profiled = Annotated[
    bool | None,
    typer.Option(help="Time each operator; by default with --report and --overlay."),
]


def verify(
    context: typer.Context,
    model: ModelOrBundle,
    runtime: Runtimes = None,
    onnx: OnnxFile = None,
    value_map: MapFile = None,
    reference: Reference = None,
    inputs: InputFiles = None,
    signature: SignatureKey = None,
    name: BundledModel = None,
    mean: Mean = None,
    std: Std = None,
    rate: Rate = None,
    samples: Samples = 2,
    steps: Steps = 1,
    seed: Seed = 0,
    tolerance: RelativeTolerance = 1e-4,
    quanta: Quanta = 1.0,
    json_file: JsonFile = None,
    html: ReportFile = None,
    overlay: OverlayFolder = None,
    extract: PartFile = None,
    threads: Threads = None,
    hybrid: HybridOption = Hybrid.AUTO,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    precision: PrecisionOption = Precision.FULL,
    resolver: ResolverName = None,
    profile: Profiled = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Run a model in several runtimes and say which operator is off; exit code 4 if one is."""
    _refuse_unused(context, with_onnx=onnx is not None, with_inputs=bool(inputs))
    _check_written(json_file, html, extract)
    found, providers = resolver_of(resolver), choices_of(provider, provider_option)
    settings = Settings(providers, threads, hybrid.value, found, precision=precision.value)
    limits: dict[str, Any] = {"external_roots": external_root or (), "budgets": budgets(budget)}
    how = Preparation(normalization=normalization_of(mean, std), rate=rate)
    given = _Files(inputs or (), seed, how, found, context, json_file == "-")
    with called_model(model, signature, name, **limits) as (file, source):
        report = verified(
            file,
            runtimes=runtime,
            onnx_file=onnx,
            mapping=None if value_map is None else _mapping(value_map),
            reference=reference,
            inputs=_file_samples(given, source, file) if inputs else Random(samples, steps, seed),
            tolerance=Tolerance(tolerance, quanta),
            settings=_on_device(settings, file, limits),
            profiled_runs=_PROFILED * (bool(html or overlay) if profile is None else profile),
            progress=activity.tell,
            **limits,
        )
    if overlay is not None:
        _write_overlay(report, overlay, _exported(source, hybrid.value, found))
    _write(report, json_file, html)
    if extract is not None:
        _extract(source, report, extract)
    raise typer.Exit(report.exit_code if report.complete else INTERRUPTED)


def _refuse_unused(context: typer.Context, *, with_onnx: bool, with_inputs: bool) -> None:
    if not with_onnx:
        refuse_unused(context, "needs --onnx", "value_map")
    if with_inputs:
        refuse_unused(context, "is of random inputs, without --input", "samples", "steps")
    else:
        refuse_unused(context, "needs --input", "mean", "std", "rate")


def _check_written(json_file: str | None, html: Path | None, part: Path | None) -> None:
    """Say now what cannot be written, not after the work."""
    if html is not None:
        environment()
    check_written(json_file, "--json")
    check_written(html, "--report")
    check_written(part, "--extract", over_models=True)


def _on_device(settings: Settings, model: Path, limits: dict[str, Any]) -> Settings:
    """`settings` with the device for the model, if they leave it to be chosen."""
    chosen = {"num_threads": settings.threads, "hybrid": settings.hybrid}
    chosen["precision"] = settings.precision
    of = {"model_path": model, "resolver": settings.resolver, **chosen, **limits}
    if settings.providers != AUTO:
        return settings
    found = device_choice.resolved(AUTO, of)
    return replace(settings, providers=found, precision=FULL_PRECISION)


def _write(report: Report, json_file: str | None, html: Path | None) -> None:
    if json_file is not None and json_file != "-":
        write_text(json_file, report.to_json())
    if html is not None:
        write_text(html, to_html(report))
    print(report.to_json(), end="") if json_file == "-" else print_report(report)


def _write_overlay(report: Report, folder: Path, exported: ModelProto | None) -> None:
    nodes, graph = ([], "") if exported is None else (node_names(exported), exported.graph.name)
    write_overlays(report, folder, nodes, graph)


def _exported(model: Model, hybrid: str, resolver: OpResolver | None) -> ModelProto | None:
    """The model as ONNX; None where it cannot be exported."""
    try:
        return export_onnx(model, hybrid=hybrid, resolver=resolver, stateful=True)
    except ExportError:
        return None


def _mapping(path: Path) -> dict[str, str | int]:
    with open_plain(path) as stream:
        read = parsed(stream.read(), InputError, str(path))
    if not isinstance(read, dict) or not all(isinstance(v, (str, int)) for v in read.values()):
        raise InputError(f"{path} is not a JSON object of names or indices of tensors")
    return read


@dataclass(frozen=True, slots=True)
class _Files:
    """What is given as inputs.

    Args:
        files: as of ``--input``; the other inputs are drawn by `seed`.
        how: what becomes of pictures and sound.
        quiet: standard output is for the report.
    """

    files: Sequence[str]
    seed: int
    how: Preparation
    resolver: OpResolver | None
    context: typer.Context
    quiet: bool

    def tell(self, text: str) -> None:
        """Say what was done to a file; of a folder, to its first image."""
        say(text, error=self.quiet)


def _file_samples(given: _Files, source: Model, path: Path) -> list[dict[int, Array]]:
    """A sample of the files; of a folder of images one each."""
    limits: dict[str, Any] = {"external_roots": source.external_roots, "budgets": source.budgets}
    interpreter = Interpreter(path, resolver=given.resolver, **limits)
    details, files, how = interpreter.get_input_details(), given.files, given.how
    columns = input_columns(interpreter)
    refuse_unused_preparation(given.context, how, columns)
    least, folder = index_limits(source), Path(files[0])
    drawn = random_inputs(details, given.seed, limits=least, budgets=source.budgets)
    if len(files) > 1 or not folder.is_dir():
        return [drawn | read_inputs(files, columns, how, given.tell)]
    images = sorted(path for path in folder.iterdir() if path.suffix.lower() in _IMAGES)
    if not images:
        raise InputError(f"no images in {folder}")
    protect(images)
    tells = [given.tell, *[None] * (len(images) - 1)]
    return [
        drawn | read_inputs([str(path)], columns, how, each)
        for path, each in zip(images, tells, strict=True)
    ]


def _extract(model: Model, report: Report, out: Path) -> None:
    """Write the first operator that is off, what the reference fed it as ``.npz``, and what an ONNX
    file has of it."""
    result = next((each for each in report.runtimes if each.named is not None), None)
    if result is None or result.named is None:
        say("no operator is off by itself: nothing is extracted")
        return
    whole, beside, onnx = as_verified(model), out.with_suffix(".npz"), out.with_suffix(".onnx")
    if result.part is None:
        part, inputs, _ = one_operator(whole, result.named.index)
    else:
        inputs = list(result.part.inputs)
        part = extracted(whole, inputs, result.part.outputs)
        write_bytes(onnx, result.part.content)
        say(f"wrote {onnx}: the nodes of {result.runtime} for it")
    write_bytes(out, write_model(part))
    say(f"wrote {out}: {result.named.label} alone")
    if all(index in result.fed for index in inputs):
        names = [whole.subgraphs[0].tensors[index].name for index in inputs]
        arrays = dict(zip(names, (result.fed[index] for index in inputs), strict=True))
        write_outputs(beside, arrays)
        file = "" if result.part is None else f" --onnx {onnx}"
        say(f"wrote {beside}: its inputs; verify {out}{file} --input {beside}")
