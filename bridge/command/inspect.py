"""The verb ``inspect``: what is in a model, and where each operator would run."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from tflite_ort.bundles import Bundle, open_bundle
from tflite_ort.command.advice import on_the_command_line
from tflite_ort.command.arguments import (
    AsJson,
    BudgetNumbers,
    BundledModel,
    ExternalRoots,
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    ResolverName,
    SignatureKey,
    budgets,
    choices_of,
    refuse_unused,
    resolver_of,
)
from tflite_ort.command.inspect_tables import print_bundle, print_model
from tflite_ort.command.inspected import Inspected
from tflite_ort.command.placements import placed, unplaced
from tflite_ort.command.terminal import complain, say, say_json
from tflite_ort.metadata import Metadata, model_metadata
from tflite_ort.model.missing_operators import lacking_signatures
from tflite_ort.model.opening import holds_bundle, model_source
from tflite_ort.model.resolvers import BuiltinOpResolver
from tflite_ort.model.signature_model import signature_file, signature_model, signature_of
from tflite_ort.schema import (
    BridgeError,
    Budgets,
    ModelError,
    read_model,
)

# What is asked about a model, not about a bundle.
_OF_A_MODEL = (
    *("signature", "provider", "provider_option", "precision"),
    *("resolver", "external_root"),
)
# What tells a script that a model cannot run here, as of ``versions``.
_CANNOT_RUN = 3


def inspect(
    context: typer.Context,
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL", help=".tflite files, or bundles.")
    ],
    signature: SignatureKey = None,
    name: BundledModel = None,
    as_json: AsJson = False,
    whole: Annotated[
        bool, typer.Option("--all", help="Also show bodies and other subgraphs.")
    ] = False,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    precision: PrecisionOption = Precision.FULL,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
) -> None:
    """Show signatures, inputs, outputs, costs and operators, where each would run and why not; of a
    bundle, what is in it, or with --model one of its models. Exit code 3 if a model cannot run."""
    how = {
        "providers": choices_of(provider, provider_option),
        "precision": precision.value,
        "resolver": resolver_of(resolver),
        "external_roots": external_root or (),
    }
    limits, code, records = budgets(budget), 0, list[dict[str, Any]]()
    for path in models:
        if len(models) > 1 and not as_json:
            say(*([""] if path is not models[0] else []), f"{path}:")
        try:
            if holds_bundle(path) and name is None:
                if len(models) == 1:
                    refuse_unused(context, "of a bundle needs --model", *_OF_A_MODEL)
                bundle = open_bundle(path, budgets=limits)
                records.append(_bundle_record(path, bundle))
                if not as_json:
                    print_bundle(bundle)
                continue
            found = _inspected(path, name, signature, limits, how)
        except (BridgeError, OSError, MemoryError, RecursionError) as error:
            if len(models) == 1:
                raise
            complain(error, path)
            code = code or 1
            continue
        if found.problem:
            code = _CANNOT_RUN
        records.append(found.record())
        if not as_json:
            print_model(found, whole=whole)
    if as_json:
        say_json(records[0] if len(models) == 1 else records)
    raise typer.Exit(code)


def _inspected(
    path: Path,
    name: str | None,
    signature: str | None,
    limits: Budgets,
    how: Mapping[str, Any],
) -> Inspected:
    source = model_source(path, name, limits)
    roots = how["external_roots"]
    model = read_model(source, budgets=limits, external_roots=roots)
    described: Metadata | str
    try:
        described = model_metadata(model, source)
    except ModelError as error:
        described = on_the_command_line(str(error))
    with ExitStack() as stack:
        file, entry = path, name
        if signature is not None:
            index = signature_of(model, signature).subgraph_index
            file, entry = stack.enter_context(signature_file(model, signature, path.name)), None
            model = signature_model(model, signature)
            described = described if index == 0 else Metadata()
        rows, problem, choice = placed(
            file, how["providers"], how["resolver"], limits, roots, entry, how["precision"]
        )
    size = path.stat().st_size if name is None else memoryview(_bytes(source)).nbytes
    lacking = lacking_signatures(model, how["resolver"] or BuiltinOpResolver())
    rows = rows or unplaced(model)
    return Inspected(path, size, model, described, rows, problem, choice, lacking)


def _bytes(source: Any) -> Any:
    return Path(source).read_bytes() if isinstance(source, (str, Path)) else source


def _bundle_record(path: Path, bundle: Bundle) -> dict[str, Any]:
    entries = [
        {
            "name": entry.name,
            "kind": entry.kind,
            "offset": entry.offset,
            "bytes": entry.stored,
            "properties": dict(entry.properties),
        }
        for entry in bundle.entries
    ]
    return {
        "bundle": str(path),
        "properties": dict(bundle.properties),
        "entries": entries,
        "models": [entry.name for entry in bundle.models],
    }
