"""Makes docs/options.md: ``python -m tflite_ort.command.options_page > docs/options.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from tflite_ort.command.cli import command
from tflite_ort.command.help import Row, Told, VerbCommand
from tflite_ort.command.verb_table import VERBS

_HEAD = """# Every command and option

Made by `python -m tflite_ort.command.options_page` from what `tflite-ort VERB --help` says.
[The command line](command_line.md) tells what the commands are for. Options that follow "Also" are
[those of several commands](#options-of-several-commands), with their defaults."""
_SHARED = """
## Options of several commands

The default of `--hybrid` differs: files for other runtimes and `predict` compute in floats,
`generate` rounds as LiteRT does, and all others do what is faster.
"""


def options_page() -> str:
    """The text of the page."""
    all_told = list(_all_told())
    common: dict[str, Row] = {}
    for name, text in (row for told in all_told for row in told.shared):
        common.setdefault(_short(name), (name, _without_default(text)))
    lines = [_HEAD]
    for told in all_told:
        lines += _verb(told, common)
    return "\n".join([*lines, _SHARED, *_table(list(common.values()))]) + "\n"


def _all_told() -> Iterator[Told]:
    """What the help of each verb says; of several commands under one name, of each."""
    for verb in VERBS:
        found, name = command(verb), f"tflite-ort {verb}"
        if isinstance(found, TyperGroup):
            context = typer.Context(found, info_name=name)
            for each in found.list_commands(context):
                yield _told(found.get_command(context, each), f"{name} {each}")
        else:
            yield _told(found, name)


def _told(verb: Any, name: str) -> Told:
    assert isinstance(verb, VerbCommand)
    return verb.told(typer.Context(verb, info_name=name))


def _verb(told: Told, common: Mapping[str, Row]) -> Iterator[str]:
    """The lines of one command.

    Args:
        common: what is said of options that several commands have. One of which this command says
            something else is told as its own.
    """
    name = told.usage.removeprefix("tflite-ort ").partition(" [")[0]
    yield f"\n## {name}\n\n`{told.usage}`"
    for paragraph in told.paragraphs:
        yield f"\n{_cell(paragraph)}"
    also = [
        (name, text)
        for name, text in told.shared
        if common[_short(name)] == (name, _without_default(text))
    ]
    yield ""
    yield from _table([*told.arguments, *told.own, *(e for e in told.shared if e not in also)])
    yield f"\nAlso: {', '.join(f'`{_short(name)}`{_default(text)}' for name, text in also)}."


def _table(rows: Sequence[Row]) -> Iterator[str]:
    if rows:
        yield "| argument or option | what it does |\n|---|---|"
    for name, text in rows:
        yield f"| {_code(name)} | {_cell(text)} |"


def _short(name: str) -> str:
    """An option without what stands for its value."""
    return name.split(", ")[-1].partition(" ")[0]


def _without_default(text: str) -> str:
    return text.partition(" [default: ")[0]


def _default(text: str) -> str:
    _, found, default = text.partition(" [default: ")
    return f" ({default.rstrip(']')})" if found else ""


def _cell(text: str) -> str:
    """A text that Markdown shows as it is."""
    for character in "\\`*<|":
        text = text.replace(character, f"\\{character}")
    return text


def _code(name: str) -> str:
    """As code: Markdown's own would end at a ``|`` in a table."""
    return f"<code>{name.replace('<', '&lt;').replace('|', '&#124;')}</code>"


if __name__ == "__main__":
    print(options_page(), end="")
