"""The verb ``inspect``: what is in a model, and where each operator would run."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tflite_ort.bundles import Bundle, open_bundle
from tflite_ort.command.arguments import (
    BudgetNumbers,
    ExternalRoots,
    ModelFile,
    ProviderOptions,
    Providers,
    ResolverName,
    budgets,
    choices_of,
    resolver_of,
)
from tflite_ort.command.placements import Row, placed, unplaced
from tflite_ort.command.terminal import new_console, new_table, say, shape_text
from tflite_ort.metadata import Metadata, model_metadata
from tflite_ort.opening import holds_bundle, model_source
from tflite_ort.schema import (
    ModelError,
    SubGraph,
    Tensor,
    TensorType,
    read_model,
)
from tflite_ort.versioning import version_warnings


def inspect(
    model: ModelFile,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
    name: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Of a model in a bundle.")
    ] = None,
) -> None:
    """Show inputs, outputs, operators, where each would run and why not; of a bundle, what is in
    it, or with --model one of its models."""
    if holds_bundle(model) and name is None:
        _print_bundle(open_bundle(model, budgets=budgets(budget)))
        return
    source = model_source(model, name, budgets(budget))
    content = read_model(source, budgets=budgets(budget))
    providers, roots = choices_of(provider, provider_option), external_root or ()
    rows, problem = placed(model, providers, resolver_of(resolver), content.budgets, roots, name)
    console = new_console()
    for number, graph in enumerate(content.subgraphs):
        console.print(_tensor_table(graph, number))
    try:
        _print_metadata(console, model_metadata(content, source))
    except ModelError as error:
        say(f"warning: {error}")
    console.print(_operator_table(rows or unplaced(content)))
    for warning in version_warnings(content):
        say(f"warning: {warning}")
    if problem:
        say(f"cannot run: {problem}")


def _print_bundle(bundle: Bundle) -> None:
    """What is in it, with the inputs and outputs of the models."""
    console = new_console()
    table = new_table("entry", "kind", "offset", "bytes", "unpacked", "says")
    for entry in bundle.entries:
        said = ", ".join(f"{key}={value}" for key, value in entry.properties.items())
        size = str(entry.size) if entry.packed else ""
        table.add_row(entry.name, entry.kind, str(entry.offset), str(entry.stored), size, said)
    console.print(table)
    for key, value in bundle.properties.items():
        say(f"{key}: {value}")
    for entry in bundle.models:
        say(f"model {entry.name}:")
        for number, graph in enumerate(bundle.model(entry.name).subgraphs):
            console.print(_tensor_table(graph, number))


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


def _operator_table(rows: Counter[Row]) -> Table:
    table = new_table("operator", "version", "count", "runs on", "refused because")
    for (operator, version, place, reason), count in rows.items():
        table.add_row(operator, str(version), str(count), place, reason)
    return table


def _tensor_table(graph: SubGraph, number: int) -> Table:
    table = new_table(f"subgraph {number}", "name", "type", "shape", "scale", "zero point")
    for role, indices in (("input", graph.inputs), ("output", graph.outputs)):
        for index in indices:
            tensor = graph.tensors[index]
            shape = shape_text(tensor.shape_signature or tensor.shape)
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
