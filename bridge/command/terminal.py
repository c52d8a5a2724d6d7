"""What the command prints: tables on a terminal, whole lines elsewhere, warnings and errors.

Control characters are shown, never sent. A model's names and texts may hold anything: sequences
that rewrite what was printed before, change the terminal or turn the direction of writing. All that
the commands print passes through here.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tflite_ort.base.json_text import written
from tflite_ort.base.optional import late
from tflite_ort.command.activity import activity
from tflite_ort.command.advice import on_the_command_line

with late:
    from tflite_ort import schema
    from tflite_ort.base import suggestions

# What shells tell of a command that Ctrl-C ended.
INTERRUPTED = 130
# Names fold in a narrower column.
_COLUMN_WIDTH = 10
# Where output goes to no terminal there is no width to fit in: lines stay whole for other programs.
_UNLIMITED = 10_000
_SAYS_NOTHING: Mapping[type[Exception], str] = {MemoryError: "there is not enough memory"}


def shown(text: str) -> str:
    """`text` on one line, with all but printable characters as escapes such as ``\\x1b``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def coloured(text: str, part: str, style: str) -> Text:
    """A text whose first `part` has a colour, where a terminal has them."""
    found = Text(shown(text))
    start = found.plain.find(shown(part))
    if start >= 0:
        found.stylize(style, start, start + len(shown(part)))
    return found


def say(*messages: str, error: bool = False, whole: bool = False) -> None:
    """Print messages, each from the start of a line; on a terminal lines end between words. Further
    lines of one are indented, so that no name in it can pass for another message.

    Args:
        whole: lines stay whole on a terminal too: other programs read them.
    """
    activity.clear()
    stream = sys.stderr if error else sys.stdout
    width = _UNLIMITED if whole else _width_of(stream)
    for message in messages:
        first, *others = map(shown, message.split("\n"))
        lines = (first, *(line if line.startswith(" ") else f"  {line}" for line in others))
        print("\n".join(part for line in lines for part in _parted(line, width)), file=stream)


def _width_of(stream: IO[str]) -> int:
    """The characters in a line of a terminal, or as COLUMNS says; elsewhere lines stay whole."""
    if "COLUMNS" in os.environ or stream.isatty():
        return shutil.get_terminal_size((_UNLIMITED, 0)).columns
    return _UNLIMITED


def _parted(line: str, width: int) -> list[str]:
    """A line as lines that end between words; a word that is longer stays whole."""
    if len(line) <= width:
        return [line]
    begin = " " * (len(line) - len(line.lstrip()))
    after = f"{begin}  "
    return wrap(
        line.strip(),
        width,
        initial_indent=begin,
        subsequent_indent=after,
        break_long_words=False,
        break_on_hyphens=False,
    )


def say_json(value: Any) -> None:
    """Print a value as JSON, in which all but ASCII is escaped; see `json_text.written`."""
    activity.clear()
    print(written(value, indent=2))


def say_on(text: str) -> None:
    """Go on with a text that comes in pieces; its line breaks and tabs are kept. What is being done
    is no longer shown: it would stand in the text."""
    activity.end()
    kept = "".join(c if c in "\n\t" else shown(c) for c in text)
    print(kept, end="", flush=True)


class PlainConsole(Console):
    """Prints names as they are: no markup in brackets, no colours, and nothing unprintable."""

    def __init__(self) -> None:
        super().__init__(markup=False, highlight=False, emoji=False)
        if not self.is_terminal and "COLUMNS" not in os.environ:
            self.width = _UNLIMITED

    def print(self, *objects: Any, **options: Any) -> None:
        activity.clear()
        super().print(*map(self._plain, objects), **options)

    def _plain(self, each: Any) -> Any:
        if isinstance(each, PlainTable) and self.width < each.least_width:
            return each.listed(self.width)
        return shown(each) if isinstance(each, str) else each


class PlainTable(Table):
    """A table without lines, whose cells are texts of one line each.

    On a terminal of less than 10 characters for each column it is a list of rows, a line for each
    cell.
    """

    def __init__(self, *heads: str) -> None:
        super().__init__(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for head in heads:
            self.add_column(shown(head), overflow="fold")

    def add_row(self, *cells: Any, **options: Any) -> None:
        plain = (shown(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*plain, **options)

    @property
    def least_width(self) -> int:
        """The characters that the columns need beside each other."""
        return _COLUMN_WIDTH * len(self.columns)

    def listed(self, width: int) -> Table:
        """A table of two columns: what the columns are called, and the cells of one row after the
        other."""
        heads = [str(column.header) for column in self.columns]
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 1, 0, 0))
        table.add_column(style="bold", max_width=width // 3, overflow="fold")
        table.add_column(overflow="fold")
        for cells in zip(*(column.cells for column in self.columns), strict=True):
            for head, cell in zip(heads, cells, strict=True):
                if cell != "":
                    table.add_row(head, cell)
            table.add_row("", "")
        return table


def new_console() -> PlainConsole:
    """A console for the results of a command."""
    return PlainConsole()


def new_table(*heads: str) -> Table:
    """A table for them, with these columns."""
    return PlainTable(*heads)


def count_text(count: int, one: str, several: str = "") -> str:
    """A number of things, such as ``1 row`` and ``2 rows``."""
    return f"{count} {one if count == 1 else several or one + 's'}"


def size_text(size: int) -> str:
    """A number of bytes, such as ``3.61 MB``."""
    return f"{size / 1e6:.2f} MB" if size >= 1e5 else f"{size / 1e3:.1f} kB"


def shape_text(shape: Sequence[int]) -> str:
    """A shape such as ``1x224x224x3``, or ``scalar``."""
    return "x".join(map(str, shape)) or "scalar"


def warn(message: Warning | str, *_: Any, **_named: Any) -> None:
    """Print a warning on stderr; takes what `warnings.showwarning` takes."""
    say(f"warning: {on_the_command_line(str(message))}", error=True)


def complain(error: Exception, model: Path | None = None) -> None:
    """Print an error on stderr in one line, with the file that it is about.

    Args:
        model: the file, for an error that does not name one.
    """
    # In this order: there may be no memory for the schema.
    if isinstance(error.__cause__, OSError) and isinstance(error, schema.UnreadableModel):
        error = error.__cause__
    text = on_the_command_line(str(error) or _SAYS_NOTHING.get(type(error), type(error).__name__))
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
        text += suggestions.unopened(error)
    elif model is not None and str(model) not in text:
        text = f"{model}: {text}"
    say(f"error: {text}", error=True)
