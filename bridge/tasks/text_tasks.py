"""`TextClassifier` and `TextEmbedder`."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from tflite_ort.base.closing import Closing
from tflite_ort.bundles import open_bundle
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.model.resolvers import WellKnownOpResolver
from tflite_ort.prediction.answers import labels_of
from tflite_ort.schema import ModelError
from tflite_ort.tasks.containers import (
    Category,
    ClassificationResult,
    Classifications,
    EmbeddingResult,
)
from tflite_ort.tasks.detectors import Choice
from tflite_ort.tasks.embedders import as_embedding, cosine_similarity
from tflite_ort.tasks.options import BaseOptions
from tflite_ort.tasks.text_input import text_input

Array = npt.NDArray[Any]


class TextNetwork:
    """A model of text.

    Raises:
        ModelError: nothing tells how text becomes its inputs.
        BridgeError: it cannot be read or run.
    """

    def __init__(self, base: BaseOptions) -> None:
        content = open_bundle(base.source).model_content()
        self._interpreter = Interpreter(
            model_content=content,
            num_threads=base.num_threads or os.cpu_count(),
            resolver=WellKnownOpResolver(),
            providers=base.runs_on,
            precision=base.precision,
        )
        inputs = self._interpreter.get_input_details()
        self._outputs = self._interpreter.get_output_details()
        metadata = self._interpreter.metadata
        own: Sequence[str] = next((e.labels for e in metadata.outputs if e.labels), ())
        self.labels = own if base.labels is None else labels_of(base.labels)
        said = [each.name or None for each in metadata.outputs]
        self.heads = said if len(said) == len(self._outputs) else [None] * len(self._outputs)
        types = [each["dtype"] for each in inputs]
        self._read = text_input(metadata, types, [each["name"] for each in inputs])
        self._inputs, self._lock = inputs, threading.Lock()
        sizes = {tuple(each["shape_signature"]) for each in inputs}
        last = next(iter(sizes))[-1:] if len(sizes) == 1 else ()
        self._length = int(last[0]) if last and last[0] >= 0 else None
        self._sizes = list[tuple[int, ...]]()

    def __call__(self, text: str) -> list[Array]:
        """The outputs as real numbers, each as a vector.

        Raises:
            BridgeError: the model fails.
        """
        arrays = self._read(text, self._length)
        with self._lock:
            sizes = [array.shape for array in arrays]
            if sizes != self._sizes:
                for details, array in zip(self._inputs, arrays, strict=True):
                    self._interpreter.resize_tensor_input(details["index"], array.shape)
                self._interpreter.allocate_tensors()
                self._sizes = sizes
            for details, array in zip(self._inputs, arrays, strict=True):
                self._interpreter.set_tensor(details["index"], array)
            self._interpreter.invoke()
            found = [self._interpreter.get_tensor(each["index"]) for each in self._outputs]
        return [_real(*pair) for pair in zip(found, self._outputs, strict=True)]


def _real(stored: Array, details: dict[str, Any]) -> Array:
    scale, zero_point = details["quantization"]
    values = stored.reshape(-1).astype(np.float32)
    return (values - np.float32(zero_point)) * np.float32(scale) if scale else values


class _TextTask(Closing):
    """A task on text. Make one by `create_from_options` or `create_from_model_path`.

    Raises:
        BridgeError: the model cannot be read or run, or is of another kind.
        ValueError: the options contradict each other.
    """

    _options_class: ClassVar[Callable[..., Any]]

    def __init__(self, options: Any) -> None:
        self._options = options
        self._network = TextNetwork(options.base_options)

    @classmethod
    def create_from_model_path(cls, model_path: str | os.PathLike[str]) -> Self:
        """A task with default options."""
        return cls(cls._options_class(BaseOptions(model_asset_path=model_path)))

    @classmethod
    def create_from_options(cls, options: Any) -> Self:
        """A task with these options."""
        return cls(options)

    def close(self) -> None:
        """End it."""


@dataclass
class TextClassifierOptions:
    """Options of `TextClassifier`, as of `ClassifierOptions`."""

    base_options: BaseOptions
    display_names_locale: str | None = None
    max_results: int | None = None
    score_threshold: float | None = None
    category_allowlist: Sequence[str] | None = None
    category_denylist: Sequence[str] | None = None


class TextClassifier(_TextTask):
    """The class of a text, the surest first: of models that read BERT's pieces of words, words
    between delimiters, or the text itself."""

    _options_class = TextClassifierOptions

    def __init__(self, options: TextClassifierOptions) -> None:
        super().__init__(options)
        self._choice = Choice.of(options, self._network.labels)
        if len(self._network.heads) != 1:
            raise ModelError("a text classifier has one output")

    def classify(self, text: str) -> ClassificationResult:
        """The classes of a text.

        Raises:
            BridgeError: the model fails.
        """
        (scores,) = self._network(text)
        least = self._options.score_threshold
        order = np.argsort(-scores, kind="stable").tolist()
        categories: list[Category] = [
            category
            for number in order
            if (least is None or scores[number] >= least)
            and (category := self._choice.category(number, float(scores[number]))) is not None
        ]
        head = Classifications(categories[: self._choice.most], 0, self._network.heads[0])
        return ClassificationResult([head])


@dataclass
class TextEmbedderOptions:
    """Options of `TextEmbedder`.

    Args:
        l2_normalize: make the vector 1 long.
        quantize: give bytes, of numbers from -1 to 1.
    """

    base_options: BaseOptions
    l2_normalize: bool | None = None
    quantize: bool | None = None


class TextEmbedder(_TextTask):
    """A text as a vector, by each output of the model."""

    _options_class = TextEmbedderOptions

    cosine_similarity = staticmethod(cosine_similarity)

    def embed(self, text: str) -> EmbeddingResult:
        """The vectors of a text.

        Raises:
            BridgeError: the model fails.
        """
        made = [
            as_embedding(vector, self._options, name)
            for vector, name in zip(self._network(text), self._network.heads, strict=True)
        ]
        for number, each in enumerate(made):
            each.head_index = number
        return EmbeddingResult(made)
