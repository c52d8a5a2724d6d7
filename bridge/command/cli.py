"""The command ``tflite-ort``: run, export, verify and so on."""

from __future__ import annotations

import importlib.metadata
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from tflite_ort.base.optional import imported, late, load
from tflite_ort.command.help import VerbCommand, VerbGroup
from tflite_ort.command.terminal import complain, say, warn
from tflite_ort.command.verb_table import VERBS

with late:
    from tflite_ort import schema


# Libraries alone take more.
_LEAST_BYTES = 224 << 20


class LateCommand(TyperCommand):
    """A verb, as the list of verbs shows it."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """The context of the command itself."""
        assert self.name is not None
        return command(self.name).make_context(info_name, args, parent, **extra)


def command(verb: str) -> Any:
    """The command of a verb, with its options."""
    module, _, name = VERBS[verb].function.partition(":")
    named = getattr(imported(f"tflite_ort.command.{module}"), name)
    if isinstance(named, typer.Typer):
        return typer.main.get_command(named)
    own = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    own.command(verb, cls=VerbCommand)(named)
    return typer.main.get_command(own)


class Commands(VerbGroup):
    """Commands whose errors are one message and exit code 1, never a traceback; warnings are one
    message too."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The verbs, in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> TyperCommand | None:
        """A verb, whose module is not imported by that."""
        found = VERBS.get(cmd_name)
        return None if found is None else LateCommand(cmd_name, help=found.summary)

    def invoke(self, ctx: Any) -> Any:
        """Run one command.

        Raises:
            Exit: with code 1 after an error, which is printed.
        """
        with warnings.catch_warnings():
            warnings.showwarning = warn
            try:
                _check_memory()
                return super().invoke(ctx)
            except BrokenPipeError:  # who reads has enough
                raise
            except ImportError as error:  # of a library for which there is no memory
                complain(_first_cause(error))
                raise typer.Exit(1) from error
            except (OSError, MemoryError, RecursionError) as error:
                complain(error)
                raise typer.Exit(1) from error
            except schema.BridgeError as error:
                complain(error)
                raise typer.Exit(1) from error


def _check_memory() -> None:
    """
    Raises:
        MemoryError: numpy and ONNX Runtime find no place. Python itself does not bear that: it
            raises errors of other kinds in the middle of an import.
    """
    resource = load("resource")
    limit = -1 if resource is None else resource.getrlimit(resource.RLIMIT_AS)[0]
    if 0 <= limit < _LEAST_BYTES:
        raise MemoryError(
            f"there is not enough memory: the limit of the address space is {limit >> 20} MiB, "
            f"the libraries take more than {_LEAST_BYTES >> 20} MiB"
        )


def _first_cause(error: Exception) -> Exception:
    """What the loader of libraries has said; numpy puts a page of advice in front of it."""
    while isinstance(error.__cause__, ImportError):
        error = error.__cause__
    return error


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},  # of the verbs too
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
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Run and export TensorFlow Lite models through ONNX Runtime."""


def main() -> None:
    """The console entry point."""
    for stream in (sys.stdout, sys.stderr):  # names may have what the terminal has not
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    # Of help or a version that cannot be written, or where not even an error can be told of.
    except (OSError, MemoryError) as error:
        complain(error)
        sys.exit(1)
