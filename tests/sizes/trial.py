"""One model with open inputs: its exported file beside the interpreter and LiteRT."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
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
from tflite_ort.providers.onnx_file import OnnxSession
from tflite_ort.schema import BridgeError, DelegateError, Model, read_model
from tflite_ort.schema.file.element_types import NUMPY_DTYPE
from tflite_ort.schema.values.complex_pairs import paired

Array = npt.NDArray[Any]

TAME = Tame.FINITE | Tame.BOUNDED | Tame.FULL
_KERNELS = ("default", "optimized", "reference")


@dataclass(frozen=True)
class Row:
    """What came of one size, or of an export that was refused.

    Args:
        kind: "same", "refused", "fails", "both refuse" or, which is wrong, "differs", "answers
            alone", "interpreter refuses", "interpreter differs".
        text: more about it.
    """

    kind: str
    axes: tuple[tuple[int, int], ...]
    shapes: Mapping[int, Shape]
    text: str = ""


def rows(content: bytes, litert: LiteRT, seed: int) -> list[Row]:
    """All that comes of a model."""
    try:
        model = read_model(content)
    except BridgeError:
        return []
    if not model.subgraphs or not _named_apart(model):
        return []
    if run(content, seed, tame=TAME, resolver=WellKnownOpResolver()).stage != "done":
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [
            row for each in openings(model) for row in _opened(content, model, each, litert, seed)
        ]


def _named_apart(model: Model) -> bool:
    graph = model.subgraphs[0]
    names = [graph.tensors[index].name for index in graph.inputs]
    return bool(names) and len(set(names)) == len(names)


def _opened(content: bytes, model: Model, opening: Opening, litert: LiteRT, seed: int) -> list[Row]:
    try:
        proto = export_onnx(
            content,
            input_shapes=opening.named(model),
            stateful=False,
            resolver=WellKnownOpResolver(),
        )
        session = OnnxSession(proto, precise=True)
    except BridgeError as error:
        return [Row("refused", opening.axes, {}, f"{type(error).__name__}: {error}"[:300])]
    return [
        _sized(content, model, opening, opening.resized(model, change, seed), session, litert, seed)
        for change in range(3)
    ]


def _sized(
    content: bytes,
    model: Model,
    opening: Opening,
    shapes: Mapping[int, Shape],
    session: OnnxSession,
    litert: LiteRT,
    seed: int,
) -> Row:
    feeds = _feeds(model, shapes, seed)
    try:
        given = [_as_onnx(each) for each in feeds]
        file = session.run(dict(zip(session.inputs, given, strict=True)))
    except DelegateError as error:
        file, failed = None, str(error)
    batches = opening.batches(model)
    ours = _interpreted(content, shapes, batches, feeds, seed)
    if ours is None:
        return Row("no single runs", opening.axes, shapes)
    if file is None:
        kind = "fails" if ours.stage == "done" else "both refuse"
        if kind == "both refuse" and not batches:
            wanted = litert.ask(Question(content, seed, shapes=tuple(shapes.items()), tame=TAME))
            if wanted.stage == "done":
                return Row(
                    "interpreter refuses, as the file",
                    opening.axes,
                    shapes,
                    f"{ours.error} {wanted.outputs[0].shape if wanted.outputs else ()}"[:300],
                )
        return Row(kind, opening.axes, shapes, failed)
    if ours.stage == "done":
        got = [_as_tensor(np.asarray(a), b) for a, b in zip(file, ours.outputs, strict=False)]
        apart = difference(got, ours.outputs, ours.quantised)
        if not is_close(apart):
            return Row(
                "differs",
                opening.axes,
                shapes,
                f"{apart}: {[a.shape for a in got]} {[a.shape for a in ours.outputs]}",
            )
    if batches:
        return Row(
            "same" if ours.stage == "done" else "answers alone", opening.axes, shapes, ours.error
        )
    wanted = _litert(content, shapes, litert, seed)
    if ours.stage != "done":
        near = [
            difference(
                [_as_tensor(np.asarray(a), b) for a, b in zip(file, each, strict=False)],
                each,
                [True] * len(each),
            )
            for each in wanted
        ]
        kind = "interpreter refuses" if wanted else "answers alone"
        return Row(kind, opening.axes, shapes, f"{ours.error}, LiteRT {near}")
    if not wanted:
        return Row("same", opening.axes, shapes, "LiteRT refuses")
    apart = min((difference(ours.outputs, each, ours.quantised) for each in wanted), key=len)
    if not any(is_close(difference(ours.outputs, each, ours.quantised)) for each in wanted):
        return Row("interpreter differs", opening.axes, shapes, apart)
    return Row("same", opening.axes, shapes)


def _feeds(model: Model, shapes: Mapping[int, Shape], seed: int) -> list[Array]:
    graph = model.subgraphs[0]
    feeds = []
    for position, index in enumerate(graph.inputs):
        tensor = graph.tensors[index]
        quantization = tensor.quantization
        scaled = (
            quantization is not None
            and quantization.scale is not None
            and len(quantization.scale) == 1
        )
        detail = {
            "index": index,
            "shape": shapes.get(position, tensor.shape),
            "dtype": NUMPY_DTYPE[tensor.type],
            "quantization": (float(quantization.scale[0]), 0) if scaled else (0.0, 0),
        }
        feeds.append(feed(detail, seed, TAME))
    return feeds


def _interpreted(
    content: bytes,
    shapes: Mapping[int, Shape],
    batches: frozenset[int],
    feeds: Sequence[Array],
    seed: int,
) -> Outcome | None:
    """The interpreter's outcome; of a batch, that of its samples one by one."""
    graph = read_model(content).subgraphs[0]
    if not batches:
        values = {index: value for index, value in zip(graph.inputs, feeds, strict=True)}
        return run(
            content,
            seed,
            shapes=tuple(shapes.items()),
            tame=TAME,
            values=values,
            resolver=WellKnownOpResolver(),
        )
    sizes = {feeds[position].shape[0] for position in batches}
    assert len(sizes) == 1
    alone = tuple(
        (position, (1, *shape[1:]) if position in batches else shape)
        for position, shape in shapes.items()
    )
    outcomes = []
    for sample in range(sizes.pop()):
        values = {
            index: feeds[position][sample : sample + 1] if position in batches else feeds[position]
            for position, index in enumerate(graph.inputs)
        }
        outcomes.append(
            run(
                content,
                seed,
                shapes=alone,
                tame=TAME,
                values=values,
                resolver=WellKnownOpResolver(),
            )
        )
    failed = next((each for each in outcomes if each.stage != "done"), None)
    if failed is not None:
        return failed
    results = list(zip(*(each.outputs for each in outcomes), strict=True))
    if any(len({each.shape for each in result}) > 1 for result in results):
        return None
    return replace(outcomes[0], outputs=tuple(joined(each) for each in results))


def _litert(
    content: bytes, shapes: Mapping[int, Shape], litert: LiteRT, seed: int
) -> list[Sequence[Array]]:
    asked = (
        litert.ask(Question(content, seed, kernels, shapes=tuple(shapes.items()), tame=TAME))
        for kernels in _KERNELS
    )
    return [each.outputs for each in asked if each.stage == "done"]


def _as_onnx(array: Array) -> Array:
    if array.dtype.kind in "OS":
        words = np.empty(array.size, object)
        words[:] = [each.decode("utf-8", "replace") for each in array.reshape(-1)]
        return words.reshape(array.shape)
    return paired(array)


def _as_tensor(value: Array, right: Array) -> Array:
    if right.dtype.kind == "c" and value.dtype.kind == "f":
        return np.ascontiguousarray(value).view(right.dtype)[..., 0]
    return value
