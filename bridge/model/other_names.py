"""Names of classes that a model does not carry: in a file beside it, or those of a data set of as
many classes."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from tflite_ort.base.shipped import shipped
from tflite_ort.decode.networks import Kind
from tflite_ort.model.class_names import names_of

# What a kind is where classes have these names.
KindOf = Callable[[tuple[str, ...]], Kind | None]

_TELLING = re.compile(r"label|class|names|vocab", re.IGNORECASE)
_SUFFIXES = frozenset({".txt", ".csv", ".json", ".pbtxt", ".names", ".yaml", ".yml"})
# What exporters and hubs put beside a model.
_KNOWN = frozenset({"config.json", "metadata.yaml"})
# Of a folder, how many entries and files are looked at, and how much of a file.
_MOST_ENTRIES, _MOST_FILES, _MOST_BYTES = 1000, 20, 1 << 20


@dataclass(frozen=True, slots=True)
class Names:
    """Names of classes.

    Args:
        source: where they come from, as one says it.
    """

    labels: tuple[str, ...]
    source: str


@dataclass(frozen=True, slots=True)
class DataSet:
    """A data set that networks are trained on.

    Args:
        file: of its names, in the folder ``label_sets``.
        kind: of its networks.
        count: of classes.
        first: what stands before its names.
        without: a name that stands for none, and has no number.
    """

    name: str
    file: str
    kind: str
    count: int
    first: tuple[str, ...] = ()
    without: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of its classes."""
        content = shipped("tflite_ort.model", f"label_sets/{self.file}.txt").decode()
        return (*self.first, *(name for name in content.splitlines() if name != self.without))


# How many classes make which data set likely.
DATA_SETS = (
    DataSet("ImageNet", "imagenet", "classifier", 1000),
    DataSet("ImageNet", "imagenet", "classifier", 1001, ("background",)),
    DataSet("COCO", "coco", "object detector", 80, without="???"),
    DataSet("COCO", "coco", "object detector", 90),
    DataSet("COCO", "coco", "object detector", 91, ("background",)),
    DataSet("Pascal VOC", "voc", "segmentation", 21),
    DataSet("AudioSet", "audioset", "audio classifier", 521),
)


def other_names(kind_of: KindOf, classes: int, model: Path) -> tuple[Kind, Names] | None:
    """What a model without names is, and those that fit; None where none are known.

    Args:
        kind_of: says what the model is if its classes have some names.
        classes: how many it has.
        model: its file, beside which names are looked for.
    """
    for file in _beside(model) if classes else ():
        found = names_of(_start(file), file.suffix.lower())
        kind = kind_of(found) if len(found) == classes else None
        if kind is not None and kind.classes == classes:
            return kind, Names(found, f"those in {file.name} beside the model")
    for each in DATA_SETS:
        kind = kind_of(each.labels) if each.count == classes else None
        if kind is None or (kind.name, kind.classes) != (each.kind, classes):
            continue
        if kind.preparation is not None or kind.name == "audio classifier":
            source = f"{each.name}'s, assumed of {each.count} classes (--labels FILE gives others)"
            return kind, Names(each.labels, source)
    return None


def _beside(model: Path) -> Iterator[Path]:
    """The files that may have the names of its classes: first those with the name of the model."""
    try:
        with os.scandir(model.parent) as entries:
            found = [entry.name for entry in islice(entries, _MOST_ENTRIES) if entry.is_file()]
    except OSError:  # of bytes, or of a folder that may not be read
        return
    stem = model.stem.lower()
    telling = [
        name
        for name in found
        if Path(name).suffix.lower() in _SUFFIXES
        and (_TELLING.search(name) or name in _KNOWN or Path(name).stem.lower() == stem)
    ]
    order = sorted(telling, key=lambda name: (stem not in name.lower(), name in _KNOWN, name))
    yield from (model.parent / name for name in order[:_MOST_FILES])


def _start(file: Path) -> str:
    """The text of a file; nothing of one that is too large or cannot be read."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
    except OSError:
        return ""
    return "" if len(content) > _MOST_BYTES else content.decode("utf-8-sig", "replace")
