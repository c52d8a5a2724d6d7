"""One model with open inputs: its exported file beside the interpreter and LiteRT."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.batching.single_runs import joined
from tests.fuzz.case import is_close
from tests.fuzz.compare import difference
from tests.fuzz.feeds import Tame, feed
from tests.fuzz.litert import LiteRT, Question
from tests.fuzz.steps import Outcome, run
from tests.sizes.openings import Opening, Shape, openings
from tflite_ort import WellKnownOpResolver, export_onnx
from tflite_ort.export.check import _as_onnx, _as_tensor
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import BridgeError, DelegateError, Model, Tensor, read_model
from tflite_ort.schema.file.element_types import NUMPY_DTYPE

Array = npt.NDArray[Any]

TAME = Tame.FINITE | Tame.BOUNDED | Tame.FULL
KERNELS = ("default", "optimized", "reference")
# What may come of a size: the file gives what the interpreter or LiteRT gives, or fails, or was
# refused; what may not: it gives something else, or something where all others refuse.
RIGHT = ("same", "as LiteRT", "refused", "fails", "both refuse", "sizes differ")
WRONG = ("differs", "answers alone")
# The interpreter: it refuses, or gives something else, where LiteRT has an answer.
OURS = ("interpreter refuses", "interpreter differs")


@dataclass(frozen=True)
class Row:
    """What came of one size, or of an export that was refused."""

    kind: str
    opening: Opening
    shapes: Mapping[int, Shape]
    text: str = ""


@dataclass(frozen=True)
class Trial:
    """A model that runs, and who is asked about it."""

    content: bytes
    model: Model
    litert: LiteRT
    seed: int

    def rows(self) -> Iterator[Row]:
        """All that comes of its openings."""
        for opening in openings(self.model):
            yield from self.opened(opening)

    def opened(self, opening: Opening) -> Iterator[Row]:
        """What comes of three sizes, or of an export that is refused."""
        try:
            shapes = opening.named(self.model)
            proto = export_onnx(
                self.content, input_shapes=shapes, stateful=False, resolver=WellKnownOpResolver()
            )
            session = OnnxSession(proto, precise=True)
        except BridgeError as error:
            yield Row("refused", opening, {}, f"{type(error).__name__}: {error}")
            return
        for change in range(3):
            yield self.sized(opening, opening.resized(self.model, change, self.seed), session)

    def sized(self, opening: Opening, shapes: Mapping[int, Shape], session: OnnxSession) -> Row:
        feeds = list(self._feeds(shapes))
        given = dict(zip(session.inputs, map(_as_onnx, feeds), strict=True))
        batches = opening.batches(self.model)
        ours = self._singles(shapes, batches, feeds) if batches else self._run(shapes, feeds)
        try:
            file = session.run(given)
        except DelegateError as error:
            kind = "fails" if ours is not None and ours.stage == "done" else "both refuse"
            return Row(kind, opening, shapes, str(error))
        if ours is None:
            return Row("sizes differ", opening, shapes)
        apart = _apart(file, ours.outputs, ours.quantised) if ours.stage == "done" else ours.error
        if ours.stage == "done" and batches:
            apart = _apart(file, list(map(_of_batch, ours.outputs, file)), ours.quantised)
        if ours.stage == "done" and is_close(apart) and batches:
            return Row("same", opening, shapes)
        asked = [] if batches else list(self._litert(shapes))
        near = any(is_close(_apart(file, each, [True] * len(each))) for each in asked)
        if ours.stage != "done":
            kind = "interpreter refuses" if near else "answers alone"
            return Row(kind, opening, shapes, f"{apart}; {len(asked)} of LiteRT's kernels answer")
        if not is_close(apart):
            return Row("as LiteRT" if near else "differs", opening, shapes, apart)
        kind = "same" if near or not asked else "interpreter differs"
        return Row(kind, opening, shapes)

    def _feeds(self, shapes: Mapping[int, Shape]) -> Iterator[Array]:
        graph = self.model.subgraphs[0]
        for position, index in enumerate(graph.inputs):
            tensor = graph.tensors[index]
            detail = {
                "index": index,
                "shape": shapes.get(position, tensor.shape),
                "dtype": NUMPY_DTYPE[tensor.type],
                "quantization": (_scale(tensor), 0),
            }
            yield feed(detail, self.seed, TAME)

    def _run(self, shapes: Mapping[int, Shape], feeds: Sequence[Array]) -> Outcome:
        values = dict(zip(self.model.subgraphs[0].inputs, feeds, strict=True))
        return run(
            self.content,
            self.seed,
            shapes=tuple(shapes.items()),
            tame=TAME,
            values=values,
            resolver=WellKnownOpResolver(),
            hybrid="float",  # as exports
        )

    def _singles(
        self, shapes: Mapping[int, Shape], batches: frozenset[int], feeds: Sequence[Array]
    ) -> Outcome | None:
        """The samples of a batch one by one; None where their results have sizes of their own."""
        alone = {
            position: (1, *shape[1:]) if position in batches else shape
            for position, shape in shapes.items()
        }
        (count,) = {len(feeds[position]) for position in batches}
        outcomes = []
        for sample in range(count):
            part = slice(sample, sample + 1)
            pairs = enumerate(feeds)
            row = [each[part] if position in batches else each for position, each in pairs]
            outcomes.append(self._run(alone, row))
        refused = next((each for each in outcomes if each.stage != "done"), None)
        if refused is not None:
            return refused
        results = list(zip(*(each.outputs for each in outcomes), strict=True))
        if any(len({each.shape for each in result}) > 1 for result in results):
            return None
        return replace(outcomes[0], outputs=tuple(map(joined, results)))

    def _litert(self, shapes: Mapping[int, Shape]) -> Iterator[Sequence[Array]]:
        for kernels in KERNELS:
            resized = tuple(shapes.items())
            question = Question(self.content, self.seed, kernels, shapes=resized, tame=TAME)
            answer = self.litert.ask(question)
            if answer.stage == "done":
                yield answer.outputs


def trial(content: bytes, litert: LiteRT, seed: int) -> Trial | None:
    """A model that can be tried: it runs as it is, and its inputs have names of their own."""
    try:
        model = read_model(content)
    except BridgeError:
        return None
    graph = model.subgraphs[0]
    names = [graph.tensors[index].name for index in graph.inputs]
    if not names or len(set(names)) < len(names):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = run(content, seed, tame=TAME, resolver=WellKnownOpResolver())
    return Trial(content, model, litert, seed) if found.stage == "done" else None


def _scale(tensor: Tensor) -> float:
    """Its one scale, as details show it; 0 for none."""
    scales = None if tensor.quantization is None else tensor.quantization.scale
    return float(scales[0]) if scales is not None and len(scales) == 1 else 0.0


def _of_batch(rows: Array, got: Any) -> Array:
    """The results of all samples; one of them where they are alike and the file has one, since the
    batch does not reach it."""
    alone = rows[:1]
    alike = rows.shape != np.shape(got) == alone.shape and bool((rows == alone).all())
    return alone if alike else rows


def _apart(file: Sequence[Any], want: Sequence[Array], quantised: Sequence[bool]) -> str:
    """How the file's outputs differ; further ones, counts of a batch, are left out. Strings of an
    export are text."""
    want = [_as_onnx(each) if each.dtype.kind in "OS" else each for each in want]
    pairs = zip(file, want, strict=False)
    got = [_as_tensor(np.asarray(a), b) for a, b in pairs]
    if not any(each.size for each in (*got, *want)):  # a constant has no batch
        return ""
    return difference(got, want, quantised)
