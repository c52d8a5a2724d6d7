"""The verb ``export``: a model as ONNX."""

from __future__ import annotations

import json
from collections import Counter
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import onnx
import typer

from tflite_ort.bundles import open_bundle
from tflite_ort.command.arguments import (
    BudgetNumbers,
    ExternalRoots,
    Hybrid,
    HybridOption,
    ModelFile,
    ResolverName,
    budgets,
    resolver_of,
)
from tflite_ort.command.terminal import complain, new_console, new_table, say
from tflite_ort.export import export_onnx
from tflite_ort.export_bundle import export_bundle
from tflite_ort.export_check import ExportMismatch, check_export
from tflite_ort.export_decoded import IMAGE
from tflite_ort.export_shapes import shaped
from tflite_ort.opening import holds_bundle
from tflite_ort.resolvers import BuiltinOpResolver
from tflite_ort.schema import read_model
from tflite_ort.verification.report import OFF


class Weights(StrEnum):
    """How an exported file stores quantised weights."""

    UINT8 = "uint8"
    INT8 = "int8"


class CustomOps(StrEnum):
    """What becomes of custom operators without a translation."""

    DOMAIN = "domain"


Shapes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SIZES",
        help="An input's shape, as image=batch,224,224,3: a name or ? leaves a size open.",
    ),
]
Batch = Annotated[
    str | None,
    typer.Option(
        metavar="N|8",
        help="A batch dimension in front of every input and output: a name, or a number.",
    ),
]
CustomOpsOption = Annotated[
    CustomOps | None,
    typer.Option(help="domain writes what has no translation as nodes of tflite.custom."),
]


def export(
    model: ModelFile,
    out: Annotated[
        Path | None,
        typer.Argument(
            metavar="[OUT]", help="Default: MODEL with suffix .onnx; of a bundle a folder."
        ),
    ] = None,
    weights: Annotated[
        Weights, typer.Option(help="int8 keeps signed weights, as some accelerators need.")
    ] = Weights.UINT8,
    hybrid: HybridOption = Hybrid.FLOAT,
    resolver: ResolverName = None,
    external_root: ExternalRoots = None,
    budget: BudgetNumbers = None,
    custom_ops: CustomOpsOption = None,
    shape: Shapes = None,
    batch: Batch = None,
    stateful: Annotated[
        bool,
        typer.Option(
            "--stateful/--stateless",
            help="Variables as inputs and outputs, or every run starts from their first values.",
        ),
    ] = True,
    decode: Annotated[
        bool, typer.Option("--decode", help="End in boxes, landmarks, masks or classes.")
    ] = False,
    image_input: Annotated[
        bool, typer.Option("--image-input", help="Decode, and begin at a picture of any size.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Run it beside the interpreter; exit code 4 if off.")
    ] = False,
) -> None:
    """Write a model as ONNX; of a bundle every model, with a list of them, into a folder."""
    options: dict[str, Any] = {
        "weights": weights.value,
        "hybrid": hybrid.value,
        "input_shapes": dict(map(_named_shape, shape or ())),
        "batch": int(batch) if batch is not None and batch.isdigit() else batch,
        "resolver": resolver_of(resolver),
        "custom_ops": None if custom_ops is None else custom_ops.value,
        "stateful": stateful,
        "external_roots": external_root or (),
        "budgets": budgets(budget),
        "decode": IMAGE if image_input else decode,
    }
    if holds_bundle(model):
        _export_bundle(model, model.with_suffix("") if out is None else out, check, options)
        return
    target = model.with_suffix(".onnx") if out is None else out
    exported = export_onnx(model, target, **options, check=check and bool(options["decode"]))
    _describe(exported, target)
    if check and not options["decode"]:
        _check(exported, target, model, options)


def _describe(exported: onnx.ModelProto, target: Path) -> None:
    """Print what was written."""
    nodes = Counter(node.op_type for node in exported.graph.node)
    parts = [target, target.with_name(f"{target.name}.data")]
    size = sum(part.stat().st_size for part in parts if part.exists())
    say(f"wrote {target}: {size / 1e6:.2f} MB, {nodes.total()} nodes")
    table = new_table("node", "count")
    for name, count in nodes.most_common():
        table.add_row(name, str(count))
    new_console().print(table)


def _export_bundle(model: Path, folder: Path, check: bool, options: dict[str, Any]) -> None:
    """Write every model of a bundle, and list what was written."""
    index = export_bundle(
        open_bundle(model, budgets=options["budgets"]), folder, **options, check=check
    )
    written = json.loads(index.read_text())
    table = new_table("file", "from", "inputs", "outputs")
    for each in written["models"]:
        sides = (", ".join(value["name"] for value in each[side]) for side in ("inputs", "outputs"))
        table.add_row(each["file"], each["name"], *sides)
    for each in written["files"]:
        table.add_row(each["file"], each["name"], "", "")
    new_console().print(table)
    say(f"wrote {index}")


def _check(exported: onnx.ModelProto, target: Path, model: Path, options: dict[str, Any]) -> None:
    """Print the largest difference from the interpreter.

    Raises:
        Exit: with code 4 where it is too large.
    """
    shapes, batch = options["input_shapes"], options["batch"]
    hybrid, resolver = options["hybrid"], options["resolver"] or BuiltinOpResolver()
    roots, limits = options["external_roots"], options["budgets"]
    read = read_model(model, external_roots=roots, budgets=limits)
    source = shaped(read, shapes, batch, resolver).model
    try:
        found = check_export(exported, target, source, hybrid=hybrid, resolver=resolver)
    except ExportMismatch as error:
        complain(error)
        raise typer.Exit(OFF) from error
    for name, each in found.items():
        same = "the same as the interpreter's" if each.exact else f"within {each.words}"
        say(f"checked {name}: {same}")


def _named_shape(text: str) -> tuple[str, list[int | str | None]]:
    """The input and its sizes that ``NAME=SIZES`` stands for."""
    name, equals, listed = text.rpartition("=")
    if not equals:
        raise typer.BadParameter(f"{text!r} is not NAME=SIZES", param_hint="--shape")
    sizes = [size.strip() for size in listed.split(",") if size.strip()]
    return name, [int(n) if n.lstrip("-").isdigit() else None if n == "?" else n for n in sizes]
