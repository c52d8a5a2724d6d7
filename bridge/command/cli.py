"""The command ``tflite-ort``: run, export, inspect, versions, bench, providers, demo."""

from __future__ import annotations

import importlib.metadata
import json
import warnings
from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from tflite_ort.command.arrays import (
    Normalization,
    random_inputs,
    read_inputs,
    set_inputs,
    top_scores,
    unique_names,
    write_outputs,
)
from tflite_ort.command.bench_tables import print_profile, print_results
from tflite_ort.command.benchmark import Settings, as_record, measure
from tflite_ort.command.benchmark import profile as profile_of
from tflite_ort.command.budget_choices import budgets_of
from tflite_ort.command.demo import run_demo
from tflite_ort.command.placements import placed, unplaced
from tflite_ort.command.provider_choices import provider_choices
from tflite_ort.command.terminal import new_console, new_table, say
from tflite_ort.command.versions import versions_command
from tflite_ort.export import export_onnx
from tflite_ort.files import write_text
from tflite_ort.interpreter import Interpreter
from tflite_ort.metadata import Metadata, model_metadata
from tflite_ort.providers.available import provider_reports
from tflite_ort.providers.delegates import ProviderChoice
from tflite_ort.resolvers import load_resolver
from tflite_ort.schema import (
    BridgeError,
    Budgets,
    ModelError,
    SubGraph,
    Tensor,
    TensorType,
    UnreadableModel,
    read_model,
)
from tflite_ort.versioning import version_warnings
from tflite_ort.versioning.resolver import OpResolver

Array = npt.NDArray[Any]

_PROFILED_RUNS = 50


class Weights(StrEnum):
    """How an exported file stores quantised weights."""

    UINT8 = "uint8"
    INT8 = "int8"


class Hybrid(StrEnum):
    """How float activations meet integer weights."""

    FLOAT = "float"
    DYNAMIC = "dynamic"


class CustomOps(StrEnum):
    """What becomes of custom operators without a translation."""

    DOMAIN = "domain"


class Commands(TyperGroup):
    """Commands whose errors are one message and exit code 1, never a traceback; warnings are one
    message too."""

    def invoke(self, ctx: Any) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _warn
            try:
                return super().invoke(ctx)
            except (BridgeError, OSError, MemoryError, RecursionError) as error:
                _complain(error)
                raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Run and export TensorFlow Lite models through ONNX Runtime.",
)

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A .tflite file.")]
Providers = Annotated[
    list[str] | None,
    typer.Option("--provider", help="Execution provider, repeatable; the first choice first."),
]
ProviderOptions = Annotated[
    list[str] | None,
    typer.Option(
        "--provider-option",
        metavar="[PROVIDER:]KEY=VALUE",
        help="Of the provider named, or the first one; repeatable.",
    ),
]
Seed = Annotated[int, typer.Option(min=0, help="Of the random inputs.")]
HybridOption = Annotated[
    Hybrid, typer.Option("--hybrid", help="dynamic rounds activations to 8 bits, as TFLite does.")
]
ResolverName = Annotated[
    str | None,
    typer.Option(
        "--resolver",
        metavar="MODULE:NAME",
        help="An OpResolver with custom operators, or a function that returns one.",
    ),
]
ExternalRoots = Annotated[
    list[Path] | None,
    typer.Option(
        "--external-root",
        metavar="DIR",
        help="A folder in which the model may have constants besides its own; repeatable.",
    ),
]
BudgetNumbers = Annotated[
    list[str] | None,
    typer.Option(
        "--budget",
        metavar="NAME=NUMBER",
        help="Let a model that you trust ask for more, such as folded_bytes=4000000000.",
    ),
]


def main() -> None:
    """The console entry point."""
    app()


def _resolver(reference: str | None) -> OpResolver | None:
    try:
        return None if reference is None else load_resolver(reference)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--resolver") from error


def _choices(
    names: Sequence[str] | None, options: Sequence[str] | None
) -> list[ProviderChoice] | None:
    try:
        return provider_choices(names, options)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--provider-option") from error


def _print_version(wanted: bool) -> None:
    if wanted:
        say(f"tflite-ort {importlib.metadata.version('tflite-ort')}")
        raise typer.Exit()


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Run and export TensorFlow Lite models through ONNX Runtime."""


# run ---------------------------------------------------------------------------------------------


@app.command()
def run(
    model: ModelFile,
    inputs: Annotated[
        list[str] | None,
        typer.Option(
            "--input",
            metavar="[NAME=]FILE",
            help="An .npy, .npz or image file, repeatable; inputs without one are random.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(help="Save outputs: an .npz file, or a folder of .npy files.")
    ] = None,
    mean: Annotated[
        str | None, typer.Option(help="Of images: (pixel - mean) / std; one or one per channel.")
    ] = None,
    std: Annotated[str | None, typer.Option(help="See --mean. Without: 0 and 255.")] = None,
    seed: Seed = 0,
    threads: Annotated[int | None, typer.Option(min=1)] = None,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Run a model once and print what comes out."""
    normalization = _normalization(mean, std)
    providers = _choices(provider, provider_option)
    interpreter = Interpreter(
        model,
        num_threads=threads,
        providers=providers,
        resolver=_resolver(resolver),
        external_roots=external_root or (),
        budgets=_budgets(budget),
    )
    details = interpreter.get_input_details()
    arrays = random_inputs(details, seed) | read_inputs(inputs or (), details, normalization)
    set_inputs(interpreter, arrays)
    interpreter.invoke()
    out = interpreter.get_output_details()
    results = [interpreter.get_tensor(each["index"]) for each in out]
    names = unique_names(out)
    _print_outputs(names, results, out)
    if output is not None:
        files = write_outputs(output, dict(zip(names, results, strict=True)))
        say(f"wrote {', '.join(map(str, files))}")


def _normalization(mean: str | None, std: str | None) -> Normalization | None:
    if mean is None and std is None:
        return None
    means, stds = _numbers(mean or "0", "--mean"), _numbers(std or "255", "--std")
    if 0 in stds:
        raise typer.BadParameter("a standard deviation is 0", param_hint="--std")
    return Normalization(means, stds)


def _numbers(text: str, option: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        message = f"{text!r} is not a number, nor numbers with commas between"
        raise typer.BadParameter(message, param_hint=option) from error


def _print_outputs(names: Sequence[str], results: Sequence[Array], details: list[Any]) -> None:
    table = new_table("output", "dtype", "shape", "min", "max", "mean")
    for name, array in zip(names, results, strict=True):
        dtype = "string" if array.dtype.kind in "OSU" else array.dtype.name
        table.add_row(name, dtype, _shape(array.shape), *_statistics(array))
    console = new_console()
    console.print(table)
    for name, array, each in zip(names, results, details, strict=True):
        if scores := top_scores(array, each):
            console.print(f"top of {name}: {scores}")


def _statistics(array: Array) -> tuple[str, str, str]:
    if not array.size or array.dtype.kind in "OSUc":
        return "-", "-", "-"
    wide = array.astype(np.float64)
    return f"{wide.min():.6g}", f"{wide.max():.6g}", f"{wide.mean():.6g}"


# export, versions, demo --------------------------------------------------------------------------


def _named_shape(text: str) -> tuple[str, list[int | str | None]]:
    """The input and its sizes that ``NAME=SIZES`` stands for."""
    name, equals, listed = text.rpartition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not NAME=SIZES", param_hint="--shape")
    sizes = [size.strip() for size in listed.split(",") if size.strip()]
    return name, [int(n) if n.lstrip("-").isdigit() else None if n == "?" else n for n in sizes]


@app.command()
def export(
    model: ModelFile,
    out: Annotated[
        Path | None, typer.Argument(metavar="[OUT]", help="Default: MODEL with suffix .onnx.")
    ] = None,
    weights: Annotated[
        Weights, typer.Option(help="int8 keeps signed weights, for TensorRT and QNN.")
    ] = Weights.UINT8,
    hybrid: HybridOption = Hybrid.FLOAT,
    resolver: ResolverName = None,
    budget: BudgetNumbers = None,
    custom_ops: Annotated[
        CustomOps | None,
        typer.Option(help="domain writes what has no translation as nodes of tflite.custom."),
    ] = None,
    shape: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SIZES",
            help="An input's shape, as image=batch,224,224,3: a name or ? leaves a size open.",
        ),
    ] = None,
    stateful: Annotated[
        bool,
        typer.Option(
            "--stateful/--stateless",
            help="Variables as inputs and outputs, or every run starts from their first values.",
        ),
    ] = True,
    external_root: ExternalRoots = None,
) -> None:
    """Write a model as ONNX."""
    target = model.with_suffix(".onnx") if out is None else out
    exported = export_onnx(
        model,
        target,
        weights=weights.value,
        hybrid=hybrid.value,
        input_shapes=dict(map(_named_shape, shape or ())),
        resolver=_resolver(resolver),
        custom_ops=None if custom_ops is None else custom_ops.value,
        stateful=stateful,
        external_roots=external_root or (),
        budgets=_budgets(budget),
    )
    nodes = Counter(node.op_type for node in exported.graph.node)
    parts = [target, target.with_name(f"{target.name}.data")]
    size = sum(part.stat().st_size for part in parts if part.exists())
    say(f"wrote {target}: {size / 1e6:.2f} MB, {nodes.total()} nodes")
    table = new_table("node", "count")
    for name, count in nodes.most_common():
        table.add_row(name, str(count))
    new_console().print(table)


@app.command()
def versions(
    model: Annotated[
        Path,
        typer.Argument(metavar="MODEL|OPERATOR", help="A .tflite file, or such as CONV_2D."),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    fix: Annotated[
        Path | None, typer.Option(help="Write the model here with the versions it requires.")
    ] = None,
) -> None:
    """Say which operator versions and runtime a model needs; exit code 3 if one is not known. Of an
    operator, which versions there are, and where it runs on which element types."""
    text, code = versions_command(model, as_json, fix)
    say(*text.split("\n"))
    raise typer.Exit(code)


@app.command()
def providers() -> None:
    """Show the execution providers that are installed, their devices, and what they lack."""
    table = new_table("provider", "from", "version", "devices", "problem")
    for row in provider_reports():
        table.add_row(row.name, row.source, row.version, ", ".join(row.devices), row.problem)
    new_console().print(table)


@app.command()
def demo() -> None:
    """Read handwritten digits with the models that are shipped."""
    run_demo(new_console())


# inspect -----------------------------------------------------------------------------------------


@app.command()
def inspect(
    model: ModelFile,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Show inputs, outputs, operators, where each would run and why not."""
    content = read_model(model, budgets=_budgets(budget))
    providers = _choices(provider, provider_option)
    roots = external_root or ()
    rows, problem = placed(model, providers, _resolver(resolver), content.budgets, roots)
    console = new_console()
    for number, graph in enumerate(content.subgraphs):
        console.print(_tensor_table(graph, number))
    try:
        _print_metadata(console, model_metadata(content, model))
    except ModelError as error:
        say(f"warning: {error}")
    table = new_table("operator", "version", "count", "runs on", "refused because")
    for row, count in (rows or unplaced(content)).items():
        operator, version, place, reason = row
        table.add_row(operator, str(version), str(count), place, reason)
    console.print(table)
    for warning in version_warnings(content):
        say(f"warning: {warning}")
    if problem:
        say(f"cannot run: {problem}")


def _print_metadata(console: Console, metadata: Metadata) -> None:
    """What the author says of the model and its tensors, and the files that come with it."""
    for name in ("name", "description", "version", "author", "license"):
        if text := getattr(metadata, name):
            console.print(f"{name}: {text}")
    for name, content in metadata.files.items():
        console.print(f"file: {name}, {len(content)} bytes")
    if not (metadata.inputs or metadata.outputs):
        return
    table = new_table("metadata", "name", "mean", "std", "labels", "description")
    for role, tensors in (("input", metadata.inputs), ("output", metadata.outputs)):
        for each in tensors:
            numbers = (" ".join(f"{n:g}" for n in values) for values in (each.mean, each.std))
            labels = f"{len(each.labels)}: {each.labels[0]}, ..." if each.labels else ""
            table.add_row(role, each.name, *numbers, labels, each.description)
    console.print(table)


def _tensor_table(graph: SubGraph, number: int) -> Table:
    table = new_table(f"subgraph {number}", "name", "type", "shape", "scale", "zero point")
    for role, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for index in indices:
            tensor = graph.tensors[index]
            shape = _shape(tensor.shape_signature or tensor.shape)
            name = TensorType(tensor.type).name.lower()
            table.add_row(role, tensor.name, name, shape, *_quantization(tensor))
    return table


def _quantization(tensor: Tensor) -> tuple[str, str]:
    quantization = tensor.quantization
    if quantization is None or quantization.scale is None or not len(quantization.scale):
        return "", ""
    points = quantization.zero_point
    point = int(points[0]) if points is not None and len(points) else 0
    return f"{float(quantization.scale[0]):.6g}", str(point)


# bench -------------------------------------------------------------------------------------------


@app.command()
def bench(
    models: Annotated[list[Path], typer.Argument(metavar="MODEL...", help=".tflite files.")],
    threads: Annotated[str, typer.Option(help="Numbers of threads, with commas between.")] = "1,2",
    rounds: Annotated[int, typer.Option(min=1, help="Turns of each runtime.")] = 15,
    min_time: Annotated[float, typer.Option(min=0.0, help="Seconds of one turn.")] = 0.05,
    check: Annotated[bool, typer.Option("--check", help="Compare the outputs too.")] = False,
    litert: Annotated[bool, typer.Option(help="Measure LiteRT if it is installed.")] = True,
    memory: Annotated[bool, typer.Option(help="Measure peak memory.")] = True,
    json_file: Annotated[
        str | None, typer.Option("--json", metavar="FILE|-", help="Write the numbers as JSON.")
    ] = None,
    seed: Seed = 0,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    resolver: ResolverName = None,
    hybrid: HybridOption = Hybrid.FLOAT,
    profile: Annotated[
        bool, typer.Option("--profile", help="The time of each operator and its nodes instead.")
    ] = False,
    external_root: ExternalRoots = None,
) -> None:
    """Time models, beside LiteRT where ai-edge-litert is installed.

    Both runtimes take turns; the ratio is LiteRT's time over ours, the median over the rounds.
    Memory is the growth of a fresh process (Linux only).
    """
    counts = _thread_counts(threads)
    _resolver(resolver)
    providers = _choices(provider, provider_option)
    roots = tuple(map(str, external_root or ()))
    settings = Settings(
        rounds, min_time, seed, litert, check, memory, providers, resolver, hybrid.value, roots
    )
    results, failed = [], False
    for model in models:
        try:
            if profile:
                times = profile_of(model, counts[0], settings, _PROFILED_RUNS)
                print_profile(model.name, times, _PROFILED_RUNS)
                continue
            results += [measure(model, count, settings) for count in counts]
        except (BridgeError, OSError, MemoryError, RecursionError) as error:
            _complain(error, model)
            failed = True
    if json_file == "-":
        say(*json.dumps(as_record(results), indent=2).split("\n"))
    elif results:
        print_results(results, check)
    if json_file is not None and json_file != "-":
        write_text(json_file, json.dumps(as_record(results), indent=2) + "\n")
    raise typer.Exit(int(failed))


def _thread_counts(text: str) -> list[int]:
    if not all(part.isdecimal() and int(part) > 0 for part in text.split(",")):
        raise typer.BadParameter(f"{text!r} are not numbers above 0", param_hint="--threads")
    return [int(part) for part in text.split(",")]


def _budgets(given: list[str] | None) -> Budgets:
    try:
        return budgets_of(given or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--budget") from error


# Printing ----------------------------------------------------------------------------------------


def _shape(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape)) or "scalar"


def _warn(message: Warning | str, *_: Any, **_named: Any) -> None:
    say(f"warning: {message}", error=True)


def _complain(error: Exception, model: Path | None = None) -> None:
    if isinstance(error, UnreadableModel) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif model is not None:
        text = f"{model}: {text}"
    say(f"error: {text}", error=True)
