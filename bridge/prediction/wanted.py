"""What the results of a job have besides the outputs: columns of tables, best classes, drawings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tflite_ort.base.files import made_folder, writing
from tflite_ort.base.optional import late
from tflite_ort.metadata import Metadata
from tflite_ort.prediction.answers import Reader
from tflite_ort.prediction.array_files import Array, InputError
from tflite_ort.prediction.images import picture_pixels
from tflite_ort.prediction.tensors import OutputColumn
from tflite_ort.prediction.units import IMAGES, suffix_of
from tflite_ort.schema import Model

with late:
    from tflite_ort.prediction import answer_pictures


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller wants of results.

    Args:
        keep: columns of the tables that the results have too.
        labels: names of the classes, in the place of the model's.
        top: so many classes stand in the place of long vectors of scores; 0: none do.
        draw: a folder for the pictures with what was found; empty for none.
    """

    keep: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    top: int = 0
    draw: str = ""

    def named(self, outputs: Sequence[OutputColumn]) -> list[OutputColumn]:
        """`outputs` with the labels that are given.

        Raises:
            InputError: none has as many numbers as there are labels.
        """
        if not self.labels:
            return list(outputs)
        row = (len(self.labels),)
        if not any(each.row == row for each in outputs):
            there = ", ".join(f"{each.name} {list(each.row or ())}" for each in outputs)
            raise InputError(f"there are {len(self.labels)} labels, and the outputs are {there}")
        return [replace(e, labels=self.labels) if e.row == row else e for e in outputs]


def kept_cells(table: Any, names: Sequence[str], path: str) -> list[list[str]]:
    """The cells of each copied column as text; empty where the input is no table.

    Raises:
        InputError: the table has no such column.
    """
    if not isinstance(table, Mapping):
        return [[] for _ in names]
    if missing := [name for name in names if name not in table]:
        there = ", ".join(map(repr, table))
        raise InputError(f"{path} has no column {missing[0]!r} to keep; there are {there}")
    return [[_text(cell) for cell in table[name]] for name in names]


def _text(cell: Any) -> str:
    value = cell.as_py() if hasattr(cell, "as_py") else cell
    return "" if value is None else str(value)


class Drawer:
    """Draws what outputs say on the pictures that they are of; several threads may call it.

    Raises:
        InputError: nothing is known of the outputs.
    """

    def __init__(self, model: Model, metadata: Metadata, wanted: Wanted) -> None:
        self._folder, self._reader = Path(wanted.draw), Reader(model, metadata, wanted.labels)
        if self._reader.lacks:
            raise InputError(f"--draw lacks {self._reader.lacks}")
        made_folder(self._folder)

    def __call__(self, path: str, outputs: Sequence[Array]) -> None:
        """Write the picture in a file with what the outputs of one sample say; nothing of other
        files."""
        if suffix_of(path) not in IMAGES:
            return
        pixels = picture_pixels(Path(path))
        answer = self._reader(outputs, (pixels.shape[1], pixels.shape[0]))
        if answer is None or not answer.drawable:
            return
        parts = Path(path).with_suffix(".png").parts
        name = "__".join(part for part in parts if part.strip("./\\"))
        picture: Any = answer_pictures.drawn(answer, pixels)
        with writing(self._folder / name) as (stream,):
            picture.save(stream, "PNG")
