"""The verb ``as``: a program that finds this library under the name of another package."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from tflite_ort.cache.choice import VARIABLE as CACHE
from tflite_ort.command.arguments import (
    Hybrid,
    HybridOption,
    Precision,
    PrecisionOption,
    ProviderOptions,
    Providers,
    Threads,
    beginning,
    choices_of,
)
from tflite_ort.command.help import VerbCommand
from tflite_ort.litert import environment, install, waiting

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)

Name = Annotated[
    str,
    typer.Argument(
        metavar="NAME",
        autocompletion=beginning(install.NAMES),
        help=f"The package: {', '.join(install.NAMES)}. Several with blanks between, in quotes.",
    ),
]
Program = Annotated[
    list[str],
    typer.Argument(
        metavar="PROGRAM",
        help="-m MODULE and other options of Python, a .py file, or a command; and its arguments.",
    ),
]
CacheOption = Annotated[
    str | None,
    typer.Option(
        "--cache", metavar="DIR|1", help="Keep compiled models here; 1: where cache=True."
    ),
]


# What follows the name belongs to the program, so the options come before.
@app.command("as", cls=VerbCommand, context_settings={"allow_interspersed_args": False})
def stand_in(
    name: Name,
    program: Program,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    threads: Threads = None,
    hybrid: HybridOption = Hybrid.AUTO,
    precision: PrecisionOption = Precision.FULL,
    cache: CacheOption = None,
) -> None:
    """Run a program that imports tflite_runtime, ai_edge_litert, tensorflow.lite or mediapipe, with
    this library in its place.

    Options come before NAME; all that follows it belongs to the program. The Python processes that
    the program starts get the same."""
    said = {
        waiting.VARIABLE: name,
        environment.PROVIDER: shlex.join(provider or ()),
        environment.PROVIDER_OPTION: shlex.join(provider_option or ()),
        environment.THREADS: "" if threads is None else str(threads),
        environment.HYBRID: "" if hybrid is Hybrid.AUTO else hybrid.value,
        environment.PRECISION: "" if precision is Precision.FULL else precision.value,
    }
    if cache is not None:
        said[CACHE] = cache
    choices_of(provider, provider_option)
    try:
        for each in name.split():
            environment.check_told(each, said)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    _become(_command(program), said)


def _command(program: list[str]) -> list[str]:
    """What is run.

    Raises:
        BadParameter: it is an option that stands behind the name.
        OSError: there is no such program.
    """
    first = program[0]
    if first.startswith("--"):
        raise typer.BadParameter(f"{first}: options come before NAME", param_hint="PROGRAM")
    if first.startswith("-") or (Path(first).suffix == ".py" and Path(first).is_file()):
        return [sys.executable, *program]
    found = shutil.which(first)
    if found is None:
        raise OSError(errno.ENOENT, "there is no such program, nor a .py file of this name", first)
    return [found, *program[1:]]


def _become(command: list[str], said: Mapping[str, str]) -> None:
    """Run a program in place of this process; where a system cannot do that, wait for its end.

    Raises:
        Exit: with the code of the program.
    """
    folders = [waiting.startup_folder(), *filter(None, [os.environ.get("PYTHONPATH")])]
    variables = {**os.environ, **said, "PYTHONPATH": os.pathsep.join(folders)}
    sys.stdout.flush()
    if os.name == "posix":
        os.execve(command[0], command, variables)
    raise typer.Exit(subprocess.run(command, env=variables, check=False).returncode)
