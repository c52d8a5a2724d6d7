"""Inputs and outputs as columns of rows, one row a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tflite_ort.decode.picture_input import PictureInput
from tflite_ort.metadata import TensorDescription
from tflite_ort.prediction.array_files import Array, Details, signature_of
from tflite_ort.prediction.pictures import Pictures
from tflite_ort.schema.file.model_metadata import AssociatedFileType, AudioProperties


@dataclass(frozen=True, slots=True)
class InputColumn:
    """An input.

    Args:
        name: unique among the inputs.
        details: as `Interpreter.get_input_details` gives them.
        description: what the model's metadata say of it; None without.
        pictures: by the index of an input, what pictures become for it; None: not known.
    """

    name: str
    details: Details
    description: TensorDescription | None = None
    pictures: Pictures | None = None

    def __reduce__(self) -> Any:
        """Without the model, of which `pictures` asks."""
        known = None if self.pictures is None else {int(self.details["index"]): self.picture}.get
        return type(self), (self.name, self.details, self.description, known)

    @property
    def leads(self) -> bool:
        """Whether rows stand in the place of the first size, which is 1 for one sample. Where sound
        has one axis of any length, it is that of its samples."""
        is_sound = self.sound is not None and signature_of(self.details) == (-1,)
        return leads_with_one(self.details) and not is_sound

    @property
    def row(self) -> tuple[int, ...]:
        """The sizes of one row; -1 where the model takes any."""
        signature = signature_of(self.details)
        return signature[1:] if self.leads else signature

    @property
    def picture(self) -> PictureInput | None:
        """What pictures become for it; None where that is not known."""
        return self.pictures(int(self.details["index"])) if self.pictures is not None else None

    @property
    def sound(self) -> AudioProperties | None:
        """What the metadata say of sound; None without."""
        content = None if self.description is None else self.description.table.content
        found = None if content is None else content.content_properties
        return found if isinstance(found, AudioProperties) else None


@dataclass(frozen=True, slots=True)
class OutputColumn:
    """An output.

    Args:
        name: unique among the outputs.
        dtype: numpy's object stands for strings.
        row: the sizes of one row; None where rows may differ.
        leads: the output of one sample has a first size of 1, in whose place the rows stand.
        rank: of the output of one sample.
        scale, zero_point: of codes, real values are scale * (code - zero_point); a scale of 0
            means that values are real.
        labels: along the last axis, or of values; none of text and complex numbers.
        by_value: values are numbers of labels.
    """

    name: str
    dtype: np.dtype[Any]
    row: tuple[int, ...] | None
    leads: bool
    rank: int
    scale: float = 0.0
    zero_point: int = 0
    labels: tuple[str, ...] = ()
    by_value: bool = False

    @property
    def labelled(self) -> bool:
        """Whether a row has one best label: a vector of as many scores as there are labels."""
        return not self.by_value and bool(self.labels) and self.row == (len(self.labels),)

    def joined(self, singles: Sequence[Array]) -> Array:
        """Outputs of one sample each as rows; an object array where their shapes may differ."""
        if self.row is None:
            return ragged(singles)
        return np.concatenate(singles) if self.leads else np.stack(singles)

    def unpadded(self, rows: Array, counts: Array, axes: Sequence[int]) -> Array:
        """Rows of a batch without what pads them, as an object array of outputs of one sample each.

        Args:
            counts: [n, axes], the sizes of the rows along `axes`.
        """
        whole, singles = [slice(None)] * (rows.ndim - 1), list[Array]()
        for row, sizes in zip(rows, counts.tolist(), strict=True):
            for axis, size in zip(axes, sizes, strict=True):
                whole[axis] = slice(size)
            single = row[tuple(whole)]
            singles.append(single[np.newaxis] if rows.ndim == self.rank else single)
        return ragged(singles)

    def best(self, rows: Array) -> tuple[Array, Array]:
        """(label, score) of the largest value of each row [n, labels]; scores are float32."""
        places = rows.argmax(axis=-1) if len(rows) else np.zeros(0, np.intp)
        top = np.take_along_axis(rows, places[:, np.newaxis], axis=-1)[:, 0].astype(np.float32)
        scores = (top - self.zero_point) * self.scale if self.scale else top
        return np.array(self.labels, np.object_)[places], scores.astype(np.float32)


def ragged(rows: Sequence[Any]) -> Array:
    """An object array of rows, which are mostly arrays."""
    column = np.empty(len(rows), np.object_)
    for place, row in enumerate(rows):
        column[place] = row
    return column


def described_inputs(
    details: Sequence[Details],
    described: Sequence[TensorDescription],
    pictures: Pictures | None = None,
) -> list[InputColumn]:
    """Inputs with what metadata say of them, if these are about as many.

    Args:
        pictures: as of `InputColumn`.
    """
    known: Sequence[TensorDescription | None] = described
    if len(described) != len(details):
        known = [None] * len(details)
    names = unique_names(details)
    rows = zip(names, details, known, strict=True)
    return [InputColumn(*each, pictures) for each in rows]


def unique_names(details: Sequence[Mapping[str, Any]]) -> list[str]:
    """The tensors' names, with the position added to a name that occurs twice."""
    names = [str(each["name"]) for each in details]
    counts = Counter(names)
    taken = {name for name, count in counts.items() if count == 1}
    return [
        name if counts[name] == 1 else free_name(f"{name}_{position}", taken)
        for position, name in enumerate(names)
    ]


def free_name(name: str, taken: set[str]) -> str:
    """`name`, with underscores behind it until nothing has it; now it is taken."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def leads_with_one(details: Details) -> bool:
    """Whether the first size of a tensor is 1, or open."""
    return signature_of(details)[:1] in ((1,), (-1,))


def output_column(
    name: str, details: Details, description: TensorDescription | None, *, fixed: bool
) -> OutputColumn:
    """What an output is as a column.

    Args:
        fixed: its shape is known before the model runs, and is the same for all inputs.
    """
    dtype: np.dtype[Any] = np.dtype(details["dtype"])
    shape = tuple(int(size) for size in details["shape"])
    leads = shape[:1] == (1,)
    scale, zero_point = details["quantization"]
    return OutputColumn(
        name,
        np.dtype(np.object_) if dtype.kind in "SU" else dtype,
        (shape[1:] if leads else shape) if fixed else None,
        leads,
        len(shape),
        float(scale),
        int(zero_point),
        () if description is None or dtype.kind in "cSU" else description.labels,
        description is not None and names_values(description),
    )


def names_values(description: TensorDescription) -> bool:
    """Whether labels are those of values, not of places along the last axis."""
    files = description.table.associated_files
    return any(each.type is AssociatedFileType.TENSOR_VALUE_LABELS for each in files)
