"""What the outputs of a model say: classes, boxes, points and masks, with their names."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tflite_ort.base.optional import late
from tflite_ort.metadata import Metadata
from tflite_ort.model.class_names import class_names, known_kind, names_of
from tflite_ort.model.other_names import other_names
from tflite_ort.prediction.array_files import Array, InputError, open_plain
from tflite_ort.schema import Model

with late:
    from tflite_ort.decode import decoding
    from tflite_ort.providers import onnx_file

if TYPE_CHECKING:
    from tflite_ort.decode.networks import Kind

Size = tuple[int, int]

# What names a way to read outputs besides those of `kinds.KINDS`.
AUTO, NO_DECODER = "auto", "none"

_MOST_BYTES = 1 << 24
# Kinds of networks whose outputs are for other networks.
_VECTOR = "embedding"
_NO_ANSWER = (_VECTOR, "gesture embedder")
_REAL = "fiu"
# Letters that stand for none, and for a space.
_BLANKS = frozenset({"<pad>", "[PAD]", "<blank>", "<blk>", "<s>", "</s>", "<unk>", "[UNK]", ""})
_SPACES = frozenset({"|", "▁", "<space>"})
# Scores of bodies and faces from which they are there.
_THERE = 0.5
# The most pixels of a side of a mask.
_MASK_SIDE = 1024
_NAMES_LACK = (
    "names of the {}classes: --labels FILE has one in a line; a labels.txt beside the model is "
    "read by itself"
)


@dataclass(frozen=True, slots=True)
class Scored:
    """A class: its number, its name, which may be empty, and how sure the model is of it."""

    number: int
    label: str
    score: float

    @property
    def name(self) -> str:
        """The label, or the number as one says it."""
        return self.label or f"class {self.number}"


@dataclass(frozen=True, slots=True)
class Box:
    """A thing and where it is: left, top, right and bottom in 0..1 of the picture."""

    what: Scored
    sides: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Points:
    """Points of a thing, [N, 2 or more] in 0..1 of the picture.

    Args:
        score: how sure the model is that it is there.
        names: of the points; empty without.
        sure: of each point, where that is known.
    """

    what: str
    score: float
    places: Array
    names: tuple[str, ...] = ()
    sure: Array | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a model says of an input.

    Args:
        kind: what the network was taken for.
        size: width and height of the picture; None without one.
        classes: the surest first.
        mask: the class of each pixel, [height, width]; 0 is the background.
        shares: of a mask, which part of it each class has.
        texts: further lines.
        names: where names come from that the model does not carry; empty where it has its own.
        lacks: what is missing for a better answer; empty for nothing.
    """

    kind: str
    size: Size | None = None
    classes: tuple[Scored, ...] = ()
    boxes: tuple[Box, ...] = ()
    points: tuple[Points, ...] = ()
    mask: Array | None = None
    shares: tuple[Scored, ...] = ()
    texts: tuple[str, ...] = ()
    names: str = ""
    lacks: str = ""

    @property
    def drawable(self) -> bool:
        """Whether it has something to draw on a picture."""
        return bool(self.boxes or self.points or self.classes or self.mask is not None)


def read_labels(path: Path | None) -> tuple[str, ...]:
    """The names of classes in a file, as of `names_of`.

    Raises:
        InputError: it has none.
        OSError: it cannot be read.
    """
    if path is None:
        return ()
    with open_plain(path) as stream:
        content = stream.read(_MOST_BYTES + 1)
    names = names_of(content.decode("utf-8-sig", "replace"), path.suffix.lower())
    if len(content) > _MOST_BYTES or not names:
        raise InputError(f"{path} has no names of classes: a line for each, .csv, or .json")
    return names


def labels_of(given: str | os.PathLike[str] | Sequence[str] | None) -> tuple[str, ...]:
    """Names of classes, or those in a file, as of `read_labels`."""
    if isinstance(given, (str, os.PathLike)):
        return read_labels(Path(given))
    return tuple(given or ())


def check_count(labels: Sequence[str], classes: int) -> None:
    """
    Raises:
        InputError: there are not as many labels as classes.
    """
    if len(labels) != classes:
        more = ""
        if classes == len(labels) + 1:
            more = "; where the first class is the background, the file has a first line for it"
        counts = f"there are {len(labels)} labels, and the model has {classes} classes"
        raise InputError(f"{counts}{more}")


class Reader:
    """Reads the outputs of a model.

    Args:
        labels: names of the classes, in the place of the model's.
        decode: `AUTO`, `NO_DECODER`, or a name in `kinds.KINDS`.
        top: how many classes are given.
        min_score: of boxes; None: as the kind has it, and at least 0.3.
        path: the model's file; beside it, and among those of well-known data sets, names of classes
            are looked for that the model does not carry. None looks for none.

    Raises:
        InputError: the model's outputs are none of the kind that is named, or there are not as
            many labels as classes.
    """

    def __init__(
        self,
        model: Model,
        metadata: Metadata,
        labels: Sequence[str] = (),
        decode: str = AUTO,
        top: int = 5,
        min_score: float | None = None,
        path: Path | None = None,
    ) -> None:
        self._model, self._top, self._least = model, top, min_score
        named = "" if decode in (AUTO, NO_DECODER) else decode
        self.kind: Kind | None = None
        if decode != NO_DECODER:
            self.kind = known_kind(model, metadata, tuple(labels), named)
            if self.kind is None and named:
                raise InputError(f"--decode {decode}: the outputs of the model are no such ones")
        self.labels, self._names = tuple(labels) or class_names(metadata), ""
        if not self.labels and self.kind is not None and path is not None:
            classes = self._count if self.kind.name == _VECTOR else self.kind.classes
            found = other_names(
                lambda names: known_kind(model, metadata, names, named), classes, path
            )
            if found is not None:
                self.kind, self.labels, self._names = found[0], found[1].labels, found[1].source
        if labels and self.kind is not None and self.kind.name == _VECTOR:
            check_count(labels, self._count)
        self._session: Any = None

    @property
    def known_as(self) -> str:
        """What the network is taken for, as one says it; empty where it is not known."""
        if self.kind is None:
            return ""
        network = self.kind.facts.get("network")
        return f"{self.kind.name} ({network})" if network else self.kind.name

    @property
    def lacks(self) -> str:
        """What would make an answer where there is none."""
        if self.kind is None:
            return (
                "a way to read these outputs, which are of no kind that is known: --decode NAME "
                "says what they are"
            )
        if self.kind.name != _VECTOR:
            return ""
        return (
            f"what the {self._count} numbers are: --decode classes if they are scores, or --labels "
            f"FILE with {self._count} names, one in a line"
        )

    @property
    def _count(self) -> int:
        """How many numbers the first output has along its last axis."""
        graph = self._model.subgraphs[0]
        return int(graph.tensors[graph.outputs[0]].shape[-1])

    def __call__(self, values: Sequence[Array], size: Size | None) -> Answer | None:
        """What outputs say; None where nothing is known of them.

        Args:
            values: the outputs of the primary subgraph, in its order.
            size: width and height of the picture; None without one.

        Raises:
            InputError: there are not as many labels as classes.
            DelegateError: the outputs are not as the model declares them.
        """
        kind = self.kind
        if (
            kind is None
            or kind.name in _NO_ANSWER
            or any(v.dtype.kind not in _REAL for v in values)
        ):
            return None
        if self._session is None:
            self._session = onnx_file.OnnxSession(decoding.decoder(self._model, kind))
        graph = self._model.subgraphs[0]
        tensors = [graph.tensors[index] for index in graph.outputs]
        real = map(decoding.real_values, values, tensors)
        feeds: dict[str, Array] = {f"output{place}": value for place, value in enumerate(real)}
        shown = size
        if kind.preparation is not None:
            shown = size or (kind.preparation.width, kind.preparation.height)
            feeds["size"] = np.array(_limited(shown), np.float32)
        if "min_score" in self._session.choices and self._minimum is not None:
            feeds["min_score"] = np.array(self._minimum, np.float32)
        known = {*self._session.inputs, *self._session.choices}
        given = {name: value for name, value in feeds.items() if name in known}
        results = self._session.run(given)
        return self._answer(dict(zip(self._session.outputs, results, strict=True)), shown)

    @property
    def _minimum(self) -> float | None:
        if self._least is not None:
            return self._least
        listed = self.kind is not None and self.kind.name == "object detector"
        return 0.3 if listed else None

    def _answer(self, found: Mapping[str, Array], size: Size | None) -> Answer:
        if "keypoint_scores" in found:
            return self._bodies(found, size)
        if "boxes" in found:
            return self._boxes(found, size)
        if "landmarks" in found:
            return self._landmarks(found, size)
        if "tokens" in found:
            return self._text(found["tokens"])
        if "category_mask" in found:
            return self._mask(found, size)
        if "classes" in found:
            return self._classes(found["classes"], found["scores"], size)
        names = self.kind.facts.get("names", ()) if self.kind is not None else ()
        order = np.argsort(-found["scores"], kind="stable")
        return self._classes(order, found["scores"][order], size, tuple(names))

    def _unnamed(self, labels: Sequence[str]) -> str:
        """What is lacking where classes have no names."""
        count = 0 if self.kind is None else self.kind.classes
        return "" if labels else _NAMES_LACK.format(f"{count} " if count else "")

    def _scored(self, number: int, score: float, labels: Sequence[str]) -> Scored:
        label = labels[number] if 0 <= number < len(labels) else ""
        return Scored(int(number), label, float(score))

    def _classes(
        self, numbers: Array, scores: Array, size: Size | None, names: tuple[str, ...] = ()
    ) -> Answer:
        labels = names or self.labels
        if labels:
            check_count(labels, self._count)
        pairs = list(zip(numbers.tolist(), scores.tolist(), strict=True))[: self._top]
        classes = tuple(self._scored(*each, labels) for each in pairs)
        return Answer(self.known_as, size, classes, names=self._names, lacks=self._unnamed(labels))

    def _boxes(self, found: Mapping[str, Array], size: Size | None) -> Answer:
        several = "classes" in found
        numbers = found["classes"] if several else np.zeros(len(found["scores"]), np.int64)
        own = () if several or self.kind is None else (self.kind.name.split()[0],)
        labels = self.labels if several else own
        boxes = []
        for sides, score, number in zip(found["boxes"], found["scores"], numbers, strict=True):
            what = self._scored(int(number), float(score), labels)
            left, top, right, bottom = map(float, sides)
            boxes.append(Box(what, (left, top, right, bottom)))
        boxes.sort(key=lambda box: -box.what.score)
        points = tuple(
            Points(own[0] if own else "", float(score), places)
            for places, score in zip(found.get("keypoints", ()), found["scores"], strict=False)
        )
        lacks = self._unnamed(labels) if boxes else ""
        told = self._names if several and boxes else ""
        return Answer(
            self.known_as, size, boxes=tuple(boxes), points=points, names=told, lacks=lacks
        )

    def _landmarks(self, found: Mapping[str, Array], size: Size | None) -> Answer:
        assert self.kind is not None
        what, score = self.kind.name.split()[0], float(found.get("score", np.array(1.0)))
        points = Points(what, score, found["landmarks"], sure=found.get("visibility"))
        texts = []
        if "handedness" in found:
            right = float(found["handedness"])
            texts.append(f"{'right' if right > _THERE else 'left'} hand")
        lacks = (
            f"a picture of the {what} alone: tflite-ort run BUNDLE.task PICTURE finds it first"
            if score < _THERE
            else ""
        )
        return Answer(self.known_as, size, points=(points,), texts=tuple(texts), lacks=lacks)

    def _text(self, tokens: Array) -> Answer:
        """What is said: each letter once for a run of it, and nothing for the blank."""
        if len(self.labels) != self._count:
            lacks = f"the {self._count} letters: --labels vocab.json, or FILE with one in a line"
            return Answer(self.known_as, lacks=lacks)
        changed = np.append(True, tokens[1:] != tokens[:-1]) if len(tokens) else tokens > 0
        letters = [self.labels[int(each)] for each in tokens[changed]]
        text = "".join(" " if each in _SPACES else each for each in letters if each not in _BLANKS)
        said = (text.strip() or "(nothing is said)",)
        return Answer(self.known_as, texts=said, names=self._names)

    def _bodies(self, found: Mapping[str, Array], size: Size | None) -> Answer:
        assert self.kind is not None
        names, least = tuple(self.kind.facts["points"]), 0.2 if self._least is None else self._least
        rows = zip(found["scores"], found["keypoints"], found["keypoint_scores"], strict=True)
        bodies = tuple(
            Points("body", float(score), places, names, sure)
            for score, places, sure in rows
            if score >= least
        )
        return Answer(self.known_as, size, points=bodies)

    def _mask(self, found: Mapping[str, Array], size: Size | None) -> Answer:
        mask = found["category_mask"]
        masks = found["confidence_masks"]
        labels: Sequence[str] = self.labels
        if len(masks) == 1:
            labels = [*labels[:1]] if labels else ["foreground"]
            here = (mask == 0).astype(np.uint8)
            foreground = (self._scored(0, float(here.mean()), labels),)
            return Answer(self.known_as, size, mask=here, shares=foreground)
        counts = np.bincount(mask.reshape(-1), minlength=len(masks))
        order = [int(each) for each in np.argsort(-counts, kind="stable") if counts[each]]
        shares = tuple(self._scored(each, counts[each] / mask.size, labels) for each in order)
        return Answer(
            self.known_as,
            size,
            mask=mask,
            shares=shares[: max(self._top, 8)],
            names=self._names,
            lacks=self._unnamed(labels),
        )


def _limited(size: Size) -> Size:
    """A size with the same proportions whose sides are not longer than those of a mask."""
    longest = max(size)
    if longest <= _MASK_SIDE:
        return size
    width, height = (max(1, round(side * _MASK_SIDE / longest)) for side in size)
    return width, height
