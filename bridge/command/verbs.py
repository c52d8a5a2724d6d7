"""The small verbs: versions, providers, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tflite_ort.command.demo import run_demo
from tflite_ort.command.terminal import new_console, new_table, say
from tflite_ort.command.versions import versions_command
from tflite_ort.providers.available import provider_reports


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


def providers() -> None:
    """Show the execution providers that are installed, their devices, and what they lack."""
    table = new_table("provider", "from", "version", "devices", "problem")
    for row in provider_reports():
        table.add_row(row.name, row.source, row.version, ", ".join(row.devices), row.problem)
    new_console().print(table)


def demo() -> None:
    """Read handwritten digits with the models that are shipped."""
    run_demo(new_console())
