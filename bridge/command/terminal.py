"""Tables on a terminal, whole lines elsewhere."""

from __future__ import annotations

import os

from rich.console import Console
from rich.table import Table

# Where output goes to no terminal there is no width to fit in: lines stay whole for other programs.
_UNLIMITED = 10_000


def new_console() -> Console:
    """Prints names as they are: no markup in brackets, no colour of numbers."""
    console = Console(markup=False, highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _UNLIMITED
    return console


def new_table(*heads: str) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for head in heads:
        table.add_column(head, overflow="fold")
    return table
