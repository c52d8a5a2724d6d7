"""Fields of tables and members of enumerations, for the reference: mkdocstrings shows only those
that have a text of their own."""

from collections.abc import Iterator
from typing import Any

import griffe

LISTED = {"Table": "Fields", "IntEnum": "Members", "IntFlag": "Members"}


class Fields(griffe.Extension):
    """Adds them to what the docstring of a class says."""

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        """Called with each class whose members are known."""
        title = next((LISTED[name] for name in map(_last, cls.bases) if name in LISTED), None)
        rows = list(_rows(cls, annotated=title == "Fields"))
        if title is not None and rows:
            text = cls.docstring.value if cls.docstring else ""
            told = f"{text}\n\n{title}: {', '.join(rows)}."
            cls.docstring = griffe.Docstring(told.strip(), parent=cls)


def _last(base: Any) -> str:
    return str(base).rpartition(".")[2]


def _rows(cls: griffe.Class, *, annotated: bool) -> Iterator[str]:
    for name, member in cls.attributes.items():
        if name.startswith("_") or member.docstring:
            continue
        if annotated and member.annotation is not None:
            yield f"`{name}: {member.annotation}`"
        elif not annotated:
            yield f"`{name}`"
