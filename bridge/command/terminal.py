"""What the command prints: tables on a terminal, whole lines elsewhere, warnings and errors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from tflite_ort.schema import UnreadableModel

# Where output goes to no terminal there is no width to fit in: lines stay whole for other programs.
_UNLIMITED = 10_000


def new_console() -> Console:
    """Prints names as they are: no markup in brackets, no colour of numbers."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNLIMITED
    return console


def new_table(*heads: str) -> Table:
    """A table without lines, with these heads of columns; long cells go on in the next line."""
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, overflow="fold")
    return table


def shape_text(shape: Sequence[int]) -> str:
    """A shape such as ``1x224x224x3``, or ``scalar``."""
    return "x".join(map(str, shape)) or "scalar"


def warn(message: Warning | str, *_: Any, **_named: Any) -> None:
    """Print a warning on stderr; takes what `warnings.showwarning` takes."""
    typer.echo(f"warning: {message}", err=True)


def complain(error: Exception, model: Path | None = None) -> None:
    """Print an error on stderr in one line, with the file that it is about.

    Args:
        model: the file, for an error that does not name one.
    """
    if isinstance(error, UnreadableModel) and isinstance(error.__cause__, OSError):
        error = error.__cause__
    text = str(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif model is not None:
        text = f"{model}: {text}"
    typer.echo(f"error: {text}", err=True)
