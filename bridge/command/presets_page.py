"""Puts the table of destinations into a page, between its marks:
``python -m tflite_ort.command.presets_page docs/exporting.md``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tflite_ort.base.files import write_text
from tflite_ort.export.presets import FORMS, PRESETS, columns

_MARK = "<!-- table of destinations -->"


def with_table(page: str) -> str:
    """A page with the table as it is now.

    Raises:
        ValueError: the page has no marks.
    """
    parts = page.split(_MARK)
    if len(parts) != 3:
        raise ValueError(f"the page needs {_MARK} twice, before and behind the table")
    return f"{parts[0]}{_MARK}\n{_table()}\n{_MARK}{parts[2]}"


def _table() -> str:
    told = [columns(name) for name in PRESETS]
    rows: list[Sequence[str]] = [list(told[0]), ["---"] * len(told[0])]
    rows += [[f"`{row.pop('name')}`", *row.values()] for row in told]
    lines = [f"| {' | '.join(cells)} |" for cells in rows]
    return "\n".join([*lines, "", *(f"- *{name}*: {text}." for name, text in FORMS.items())])


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), with_table(Path(sys.argv[1]).read_text(encoding="utf-8")))
