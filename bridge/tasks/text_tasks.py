"""`TextClassifier`, `LanguageDetector` and `TextEmbedder`."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.bundles import open_bundle
from tflite_ort.interpreter.interpreter import Interpreter
from tflite_ort.model.resolvers import WellKnownOpResolver
from tflite_ort.prediction.answers import labels_of
from tflite_ort.schema import ModelError
from tflite_ort.tasks.containers import (
    ClassificationResult,
    Classifications,
    EmbeddingResult,
    LanguageDetectorResult,
)
from tflite_ort.tasks.detectors import Choice
from tflite_ort.tasks.embedders import as_embedding, cosine_similarity
from tflite_ort.tasks.heads import heads_of
from tflite_ort.tasks.options import BaseOptions
from tflite_ort.tasks.task import Task
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
        self.heads = heads_of(metadata, len(self._outputs), labels_of(base.labels))
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
            TypeError: it is no text.
            BridgeError: the model fails.
        """
        if not isinstance(text, str):
            raise TypeError(f"a text is a str, got {type(text).__name__}")
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


class _TextTask(Task):
    """A task on text. Make one by `create_from_options` or `create_from_model_path`.

    Raises:
        BridgeError: the model cannot be read or run, or is of another kind.
        ValueError: the options contradict each other.
    """

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self._text_network = TextNetwork(options.base_options)

    @property
    def _network(self) -> TextNetwork:
        """The network of a task that is not closed.

        Raises:
            ValueError: it is.
        """
        self._check_open()
        return self._text_network


@dataclass
class TextClassifierOptions:
    """Options of `TextClassifier`, as of `ClassifierOptions`."""

    base_options: BaseOptions
    display_names_locale: str | None = None
    max_results: int | None = None
    score_threshold: float | None = None
    category_allowlist: Sequence[str] | None = None
    category_denylist: Sequence[str] | None = None


class _Classifying(_TextTask):
    """A task that names the class of a text."""

    def __init__(self, options: TextClassifierOptions) -> None:
        super().__init__(options)
        if len(self._network.heads) != 1:
            raise ModelError("a text classifier has one output")
        (self._head,) = self._network.heads
        self._choice = Choice.of(options, self._head.labels)

    def _classes(self, text: str) -> Classifications:
        """The classes of a text, the surest first."""
        (scores,) = self._network(text)
        return self._head.found(scores, self._choice, self._options.score_threshold)


class TextClassifier(_Classifying):
    """The class of a text, the surest first: of models that read BERT's pieces of words, words
    between delimiters, or the text itself."""

    _options_class = TextClassifierOptions

    def classify(self, text: str) -> ClassificationResult:
        """The classes of a text.

        Raises:
            BridgeError: the model fails.
        """
        return ClassificationResult([self._classes(text)])


@dataclass
class LanguageDetectorOptions(TextClassifierOptions):
    """Options of `LanguageDetector`, as of `ClassifierOptions`."""


class LanguageDetector(_Classifying):
    """The language of a text, the surest first."""

    _options_class = LanguageDetectorOptions

    def detect(self, text: str) -> LanguageDetectorResult:
        """The languages of a text.

        Raises:
            ValueError: the model does not name them.
            BridgeError: the model fails.
        """
        predictions = []
        for each in self._classes(text).categories:
            if not each.category_name or each.score is None:
                raise ValueError(
                    "LanguageDetector ClassificationResult has a missing language code."
                )
            prediction = LanguageDetectorResult.LanguagePrediction(each.category_name, each.score)
            predictions.append(prediction)
        return LanguageDetectorResult(predictions)


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
            as_embedding(vector, self._options, head.name)
            for vector, head in zip(self._network(text), self._network.heads, strict=True)
        ]
        for number, each in enumerate(made):
            each.head_index = number
        return EmbeddingResult(made)
