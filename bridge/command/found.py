"""What a run has found: read from the outputs, printed, and drawn."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tflite_ort.base.files import write_bytes
from tflite_ort.base.optional import late
from tflite_ort.base.suggestions import suggestion
from tflite_ort.command.called_model import CalledModel
from tflite_ort.command.outputs import STDOUT, Output, as_json, check_target, save, text_of
from tflite_ort.command.terminal import new_console, new_table, say, say_json, shape_text
from tflite_ort.decode.kinds import KINDS, known_names
from tflite_ort.prediction.answer_text import lines_of, record_of
from tflite_ort.prediction.answers import AUTO, NO_DECODER, Answer, Reader
from tflite_ort.prediction.array_files import Array, InputError
from tflite_ort.prediction.images import picture_pixels
from tflite_ort.prediction.tensors import free_name
from tflite_ort.prediction.units import IMAGES, suffix_of
from tflite_ort.schema import DelegateError

with late:
    from tflite_ort.prediction import answer_pictures

Labels = Annotated[
    Path | None,
    typer.Option(
        "--labels",
        metavar="FILE",
        help="Names of the classes: one in a line, .csv, or .json such as a config.json.",
    ),
]
Top = Annotated[int, typer.Option(min=1, help="How many classes are shown.")]
MinScore = Annotated[
    float | None,
    typer.Option("--min-score", help="The least score of boxes and bodies; without, 0.3."),
]


def checked_decoder(name: str) -> str:
    """
    Raises:
        BadParameter: there is no such way to read outputs.
    """
    names = (AUTO, NO_DECODER, *known_names())
    if name not in names:
        text = f"{name!r} is none of {', '.join(names)}{suggestion(name, names)}"
        raise typer.BadParameter(text, param_hint="--decode")
    return name


DecodeAs = Annotated[
    str,
    typer.Option(
        "--decode",
        metavar="NAME",
        callback=checked_decoder,
        help=f"What the outputs are: {AUTO} finds it, {NO_DECODER}, or {', '.join(KINDS)}.",
    ),
]
Raw = Annotated[bool, typer.Option("--raw", help="Show the output tensors, not what they say.")]

_DRAWN = (".png", ".jpg", ".jpeg")
_MISSING = "values of {}: --input NAME=FILE gives them; --decode NAME reads the outputs without"
# Of how many inputs the names are said.
_FEW = 4


def names_text(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = [f"{len(names) - _FEW} more"] if len(names) > _FEW else []
    return ", ".join([*names[:_FEW], *more])


@dataclass(frozen=True, slots=True)
class Reading:
    """How outputs are read: what the options say."""

    labels: Sequence[str]
    decode: str
    top: int
    min_score: float | None
    raw: bool

    def reader(self, called: CalledModel, path: Path, *, drawn: bool) -> Reader | None:
        """What reads the outputs; None where they are shown as they are.

        Args:
            path: the model's file.
            drawn: inputs are random.

        Raises:
            InputError: as of `Reader`.
        """
        if self.raw or called.subgraph or (drawn and self.decode == AUTO):
            return None
        rest = self.decode, self.top, self.min_score
        model = called.interpreter._model
        return Reader(model, called.metadata, self.labels, *rest, path=path)


@dataclass(frozen=True, slots=True)
class Found:
    """What was found, and in which picture; None for what is not known.

    Args:
        lacks: what would make an answer where there is none.
    """

    answer: Answer | None
    pixels: Array | None
    lacks: str = ""

    @property
    def drawable(self) -> bool:
        """Whether it can be drawn on the picture."""
        return self.answer is not None and self.answer.drawable and self.pixels is not None


def answered(
    reader: Reader | None,
    results: Sequence[Output],
    given: Sequence[str],
    missing: Sequence[str] = (),
) -> Found:
    """What the outputs of a model say of the files that it was given.

    Args:
        missing: the inputs that have random values.

    Raises:
        BridgeError: as of `Reader`.
    """
    pixels = _pixels(given)
    if reader is None:
        unread = given and missing
        return Found(None, pixels, _MISSING.format(names_text(missing)) if unread else "")
    size = None if pixels is None else (pixels.shape[1], pixels.shape[0])
    try:
        answer = reader([each.value for each in results], size)
    except DelegateError as error:  # the outputs are not as the file declares them
        return Found(None, pixels, f"outputs that fit a {reader.known_as}: {error}")
    return Found(answer, pixels, reader.lacks)


def answered_by_task(answerer: Callable[[Array], Answer], given: Sequence[str]) -> Found:
    """What a bundle's task finds in a picture.

    Raises:
        InputError: no picture is given, or several are.
    """
    pixels = _pixels(given)
    if pixels is None or len(given) != 1:
        raise InputError("a bundle's task takes one picture: run BUNDLE PICTURE")
    return Found(answerer(pixels), pixels)


def _pixels(given: Sequence[str]) -> Array | None:
    """The only picture among the files."""
    files = [text if Path(text).exists() else text.partition("=")[2] or text for text in given]
    pictures = [file for file in files if suffix_of(file) in IMAGES]
    return picture_pixels(Path(pictures[0])) if len(pictures) == 1 else None


@dataclass(frozen=True, slots=True)
class Shown:
    """Where results go.

    Args:
        targets: the output that is named, or none, and the file.
        as_json: print JSON.
    """

    targets: Sequence[tuple[str, str]]
    as_json: bool

    @classmethod
    def of(cls, targets: Sequence[str], *, as_json: bool) -> Shown:
        """What ``--output`` and ``--json`` say.

        Raises:
            InputError: a file cannot be written, or standard output is for two things.
        """
        found = cls([_target(text) for text in targets], as_json)
        if [file for _, file in found.targets].count(STDOUT) + as_json > 1:
            raise InputError("standard output takes one: --json, or one --output -")
        return found

    @property
    def quiet(self) -> bool:
        """Whether standard output is for a file, or JSON."""
        return self.as_json or any(target == STDOUT for _, target in self.targets)

    def tell(self, text: str) -> None:
        """Print a line beside the results."""
        say(text, error=self.quiet)

    def show(self, found: Found, results: Sequence[Output]) -> None:
        """Print what was found, or the outputs, and write the files.

        Raises:
            InputError: a file cannot hold what it should.
        """
        if self.as_json:
            record = as_json(results)
            if found.answer is not None:
                key = free_name("answer", {each.name for each in results})
                record[key] = record_of(found.answer)
            say_json(record)
        elif not self.quiet:
            _print_found(found, results)
        for which, target in self.targets:
            if not which and target.lower().endswith(_DRAWN) and found.drawable:
                _write_drawn(found, Path(target))
                self.tell(f"wrote {target}")
            elif not results:
                raise InputError(f"--output {target}: of a task a picture is written, .png or .jpg")
            elif written := save(target, _chosen(results, which)):
                self.tell(f"wrote {', '.join(written)}")


def _target(text: str) -> tuple[str, str]:
    """The output that ``[NAME=]FILE`` names, or none, and the file."""
    name, equals, file = text.rpartition("=")
    target = file if equals else text
    check_target(target)
    return name, target


def _print_found(found: Found, results: Sequence[Output]) -> None:
    """Print what was found; the outputs themselves, and what is lacking, where there is nothing."""
    answer = found.answer
    if answer is None:
        _print_outputs(results)
        if found.lacks:
            say(f"lacks: {found.lacks}; --output results.npz saves the tensors")
        return
    say(f"{answer.kind} (--raw shows the tensors, --decode NAME reads them in another way)")
    say(*lines_of(answer))


def _write_drawn(found: Found, target: Path) -> None:
    assert found.answer is not None
    assert found.pixels is not None
    stream = io.BytesIO()
    picture: Any = answer_pictures.drawn(found.answer, np.ascontiguousarray(found.pixels))
    picture.save(stream, "PNG" if target.suffix.lower() == ".png" else "JPEG", quality=92)
    write_bytes(target, stream.getvalue())


def _chosen(outputs: Sequence[Output], name: str) -> Sequence[Output]:
    if not name:
        return outputs
    found = [each for each in outputs if each.name == name]
    if not found:
        names = [each.name for each in outputs]
        raise InputError(
            f"no output {name!r}; outputs: {', '.join(names)}{suggestion(name, names)}"
        )
    return found


def _print_outputs(outputs: Sequence[Output]) -> None:
    table = new_table("output", "dtype", "shape", "min", "max", "mean")
    for each in outputs:
        dtype = "string" if each.text else each.value.dtype.name
        numbers = each.statistics()
        shown = ("-",) * 3 if numbers is None else (f"{number:.6g}" for number in numbers)
        table.add_row(each.name, dtype, shape_text(each.value.shape), *shown)
    console = new_console()
    console.print(table)
    for each in outputs:
        if text := text_of(each):
            console.print(text)
