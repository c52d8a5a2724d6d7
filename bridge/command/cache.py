"""The verb ``cache``: what is in the cache of compiled models, and the end of it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from tflite_ort.cache.choice import chosen_folder
from tflite_ort.cache.folder import CacheFolder, Listed
from tflite_ort.command.arguments import AsJson
from tflite_ort.command.help import VerbCommand, VerbGroup
from tflite_ort.command.terminal import count_text, new_console, new_table, say, say_json

app = typer.Typer(
    cls=VerbGroup,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Show or empty the cache of compiled models.",
)

Folder = Annotated[
    Path | None, typer.Argument(metavar="DIR", help="The folder; default: as of cache=True.")
]


@app.command("list", cls=VerbCommand)
def list_entries(folder: Folder = None, as_json: AsJson = False) -> None:
    """Show the entries, the last used first."""
    cache = _cache(folder)
    entries = sorted(cache.entries(), key=lambda each: -each.used)
    if as_json:
        rows = [_row(each) for each in entries]
        say_json({"folder": str(cache.path), "limit": cache.limit(), "entries": rows})
        return
    table = new_table("model", "used", "MB", "key")
    for each in entries:
        row = _row(each)
        table.add_row(row["model"], row["used"], f"{each.size / 1e6:.1f}", each.key[:12])
    new_console().print(table)
    total = sum(each.size for each in entries)
    say(f"{cache.path}: {total / 1e6:.1f} MB, at most {cache.limit() / 1e6:.0f} MB")


@app.command(cls=VerbCommand)
def clear(folder: Folder = None, as_json: AsJson = False) -> None:
    """Delete all entries; other files in the folder stay."""
    cache = _cache(folder)
    count, freed = len(cache.entries()), cache.clear()
    if as_json:
        say_json({"folder": str(cache.path), "entries": count, "bytes": freed})
    else:
        entries = count_text(count, "entry", "entries")
        say(f"{cache.path}: deleted {entries}, {freed / 1e6:.1f} MB")


def _cache(folder: Path | None) -> CacheFolder:
    found = chosen_folder(True if folder is None else folder)
    if found is None:
        raise typer.Exit(1)
    return found


def _row(entry: Listed) -> dict[str, Any]:
    used = datetime.fromtimestamp(entry.used, UTC).isoformat(timespec="seconds")
    about = entry.about
    name = about.get("model") or ("(digest of a large file)" if "digest of" in about else "?")
    return {"model": str(name), "used": used, "bytes": entry.size, "key": entry.key}
