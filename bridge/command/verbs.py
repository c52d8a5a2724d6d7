"""The small verbs: versions, providers, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tflite_ort.base.optional import late
from tflite_ort.command.arguments import (
    AsJson,
    ExternalRoots,
    ProviderOptions,
    Providers,
    beginning,
    check_written,
    choices_of,
    refuse_unused,
)
from tflite_ort.command.demo import demo_record, run_demo
from tflite_ort.command.terminal import new_console, new_table, say, say_json
from tflite_ort.command.versions import versions_command
from tflite_ort.providers.available import missing_providers, provider_reports
from tflite_ort.schema import Op

with late:
    from tflite_ort.tasks import drawing


_OF_A_FILM = ("bundle", "out", "most", "provider", "provider_option")
_PROVIDER_FACTS = ("name", "short", "source", "version", "devices", "precisions", "problem")


def _operators(incomplete: str) -> list[str]:
    """What a shell completes: operators once something is typed, before that files."""
    return beginning([op.name for op in Op])(incomplete) if incomplete else []


def versions(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL|OPERATOR",
            autocompletion=_operators,
            help="A .tflite file, or the name of an operator, such as CONV_2D.",
        ),
    ],
    as_json: AsJson = False,
    fix: Annotated[
        Path | None, typer.Option(help="Write the model here with the versions it requires.")
    ] = None,
    external_root: ExternalRoots = None,
) -> None:
    """Say which operator versions and runtime a model needs; exit code 3 if one is not known. Of an
    operator, which versions there are, and where it runs on which element types."""
    check_written(fix, "--fix", over_models=True)
    text, code = versions_command(model, as_json, fix, external_root or ())
    say(*text.split("\n"))
    raise typer.Exit(code)


def providers(as_json: AsJson = False) -> None:
    """Show the execution providers that are installed, their devices, and what they lack."""
    if as_json:
        rows = provider_reports()
        found = [{name: getattr(row, name) for name in _PROVIDER_FACTS} for row in rows]
        missing = missing_providers(rows)
        found += [{"name": name, "problem": "not installed", "install": x} for name, x in missing]
        say_json(found)
        return
    table = new_table("provider", "name it", "from", "version", "devices", "precision", "problem")
    reports = provider_reports()
    for row in reports:
        lists = ", ".join(row.devices), ", ".join(row.precisions)
        table.add_row(row.name, row.short, row.source, row.version, *lists, row.problem)
    new_console().print(table)
    for name, line in missing_providers(reports):
        say(f"{name} is not installed: {line}")


def demo(
    context: typer.Context,
    camera: Annotated[
        Path | None,
        typer.Option(help="A film, an animated picture, or a folder of pictures as its frames."),
    ] = None,
    bundle: Annotated[
        list[Path] | None,
        typer.Option(help="With --camera: a hand, face or pose landmarker (.task); several times."),
    ] = None,
    out: Annotated[
        Path, typer.Option("-o", "--out", help="With --camera: the folder of the pictures drawn.")
    ] = Path("drawn"),
    most: Annotated[
        int, typer.Option(min=1, help="With --camera: the most hands, faces or bodies in a frame.")
    ] = 2,
    provider: Providers = None,
    provider_option: ProviderOptions = None,
    as_json: AsJson = False,
) -> None:
    """Read handwritten digits; draw hands and faces on a film.

    Without --camera the shipped models read digits that they have not seen. With it hands, faces
    and bodies are drawn on each frame, which is written as a picture."""
    if camera is None:
        refuse_unused(context, "needs --camera", *_OF_A_FILM)
        say_json(demo_record()) if as_json else run_demo(new_console())
        return
    if not bundle:
        raise typer.BadParameter("--camera needs --bundle: a hand, face or pose landmarker")
    chosen, drawn = choices_of(provider, provider_option), []
    try:
        for path, found in drawing.drawn_film(camera, out, bundle, most, chosen):
            drawn.append({"file": str(path), "found": dict(found)})
            if not as_json:
                say(f"{path}: {', '.join(f'{count} by {name}' for name, count in found.items())}")
    except ImportError as error:
        raise typer.BadParameter(str(error)) from error
    if as_json:
        say_json(drawn)
