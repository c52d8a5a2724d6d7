"""A model on files in one call.

>>> from tflite_ort import quick
>>> quick.run("mobilenet.tflite", "cat.jpg")                      # doctest: +SKIP
classifier
Egyptian cat  74.2 %
tabby         14.5 %
"""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.base.files import write_bytes
from tflite_ort.bundles.bundle import Source
from tflite_ort.command.arrays import read_inputs
from tflite_ort.command.called_model import CalledModel
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.model.opening import holds_bundle
from tflite_ort.prediction.answer_pictures import drawn
from tflite_ort.prediction.answer_text import lines_of
from tflite_ort.prediction.answers import AUTO, Answer, Box, Reader, Scored, labels_of
from tflite_ort.prediction.array_files import InputError
from tflite_ort.prediction.images import picture_pixels
from tflite_ort.prediction.preparation import Preparation
from tflite_ort.prediction.units import IMAGES, suffix_of
from tflite_ort.providers.delegates import ProviderChoices
from tflite_ort.schema import Budgets
from tflite_ort.tasks.bundle_answers import bundle_answerer

Array = npt.NDArray[Any]
# A picture of Pillow is taken too.
Given = str | os.PathLike[str] | Array

__all__ = ["Result", "run"]


@dataclass(frozen=True, slots=True)
class Result:
    """What a model gave.

    Args:
        answer: what it says: classes, boxes, points or a mask; None where that is not known.
        outputs: the output tensors by name; empty of a bundle's task.
        notes: what was done to the files.
        pixels: the picture, uint8 [height, width, 3]; None without one.
    """

    answer: Answer | None
    outputs: Mapping[str, Array]
    notes: tuple[str, ...] = ()
    pixels: Array | None = None

    @property
    def classes(self) -> tuple[Scored, ...]:
        """The classes, the surest first; empty of other answers."""
        return () if self.answer is None else self.answer.classes

    @property
    def boxes(self) -> tuple[Box, ...]:
        """The boxes, the surest first; empty of other answers."""
        return () if self.answer is None else self.answer.boxes

    def __str__(self) -> str:
        if self.answer is not None:
            return "\n".join([self.answer.kind, *lines_of(self.answer)])
        return "\n".join(f"{name}: {v.dtype} {list(v.shape)}" for name, v in self.outputs.items())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """As a notebook shows it: the picture with what was found, and the lines."""
        shown = ""
        if self.answer is not None and self.answer.drawable and self.pixels is not None:
            data = base64.b64encode(self._png()).decode()
            shown = f'<img src="data:image/png;base64,{data}" style="max-width: 100%">'
        return f"{shown}<pre>{escape(str(self))}</pre>"

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Write the picture with what was found drawn on it, as PNG.

        Raises:
            InputError: there is no picture, or nothing to draw.
        """
        write_bytes(path, self._png())

    def _png(self) -> bytes:
        if self.answer is None or self.pixels is None:
            raise InputError("there is nothing to draw: no picture was given, or nothing is known")
        stream = io.BytesIO()
        drawn(self.answer, self.pixels).save(stream, "PNG")
        return stream.getvalue()


def run(
    model: str | os.PathLike[str],
    *given: Given,
    labels: str | os.PathLike[str] | Sequence[str] | None = None,
    decode: str = AUTO,
    top: int = 5,
    min_score: float | None = None,
    providers: ProviderChoices | None = None,
) -> Result:
    """Run a model, or the task of a bundle, once.

    Args:
        model: a ``.tflite`` file, or a ``.task``.
        given: by input, in their order: a picture, ``.wav``, ``.npy`` or ``.npz`` file, a picture
            as uint8 [height, width, 3], or an array that the input takes.
        labels: names of the classes, or a file of them.
        decode: what the outputs are, as ``tflite-ort run --decode`` takes it.
        top: how many classes are given.
        min_score: of boxes and bodies; None: 0.3.
        providers: as of `Interpreter`.

    Raises:
        InputError: what is given does not fit.
        BridgeError: as `Interpreter`.
    """
    given = tuple(
        np.asarray(each.convert("RGB")) if hasattr(each, "convert") else each for each in given
    )
    if holds_bundle(model):
        return _of_task(model, given, providers)
    interpreter = Interpreter(os.fspath(model), providers=providers)
    called, notes = CalledModel.of(interpreter, None), list[str]()
    if len(given) != len(called.columns):
        names = ", ".join(each.name for each in called.columns)
        raise InputError(f"the model has {len(called.columns)} inputs: {names}; give one for each")
    arrays = dict[int, Array]()
    for value, column in zip(given, called.columns, strict=True):
        if isinstance(value, (str, os.PathLike)):
            arrays |= read_inputs([os.fspath(value)], [column], tell=notes.append)
        else:
            row = Preparation(media=value.dtype == np.uint8).rows([value], column)[0]
            arrays[int(column.details["index"])] = row[np.newaxis] if column.leads else row
    names_given = labels_of(labels)
    how = (decode, top, min_score, Path(model))
    reader = Reader(interpreter._model, called.metadata, names_given, *how)
    results, pixels = called.run(arrays), _pixels(given)
    size = None if pixels is None else (pixels.shape[1], pixels.shape[0])
    answer = reader([each.value for each in results], size)
    return Result(answer, {each.name: each.value for each in results}, tuple(notes), pixels)


def _of_task(model: Source, given: Sequence[Given], providers: ProviderChoices | None) -> Result:
    assert isinstance(model, (str, os.PathLike))
    answerer, pixels = bundle_answerer(model, Budgets(), providers), _pixels(given)
    if answerer is None:
        raise InputError(f"{os.fspath(model)} is a bundle of no task that is known here")
    if pixels is None or len(given) != 1:
        raise InputError("a bundle's task takes one picture")
    return Result(answerer(pixels), {}, (), pixels)


def _pixels(given: Sequence[Given]) -> Array | None:
    """The only picture that is given."""
    found = []
    for value in given:
        if not isinstance(value, (str, os.PathLike)):
            found += [value] if value.dtype == np.uint8 and value.shape[2:] == (3,) else []
        elif suffix_of(os.fspath(value)) in IMAGES:
            found.append(picture_pixels(Path(value)))
    return found[0] if len(found) == 1 else None
