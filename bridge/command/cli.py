"""The command ``tflite-ort``: run, export, verify and so on."""

from __future__ import annotations

import importlib.metadata
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tflite_ort.command.bench import bench
from tflite_ort.command.demo import run_demo
from tflite_ort.command.export import export
from tflite_ort.command.extract import extract
from tflite_ort.command.inspect import inspect
from tflite_ort.command.predict import predict
from tflite_ort.command.run import run
from tflite_ort.command.terminal import complain, new_console, new_table, say, warn
from tflite_ort.command.tune import tune
from tflite_ort.command.verify import verify
from tflite_ort.command.versions import versions_command
from tflite_ort.command.view import view
from tflite_ort.providers.available import provider_reports
from tflite_ort.schema import BridgeError


class Commands(TyperGroup):
    """Commands whose errors are one message and exit code 1, never a traceback; warnings are one
    message too."""

    def invoke(self, ctx: Any) -> Any:
        """Run one command.

        Raises:
            Exit: with code 1 after an error, which is printed.
        """
        with warnings.catch_warnings():
            warnings.showwarning = warn
            try:
                return super().invoke(ctx)
            except (BridgeError, OSError, MemoryError, RecursionError) as error:
                complain(error)
                raise typer.Exit(1) from error


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Run and export TensorFlow Lite models through ONNX Runtime.",
)


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


for _verb in (
    run,
    predict,
    export,
    verify,
    extract,
    versions,
    providers,
    demo,
    inspect,
    bench,
    tune,
    view,
):
    app.command()(_verb)


def main() -> None:
    """The console entry point."""
    app()
