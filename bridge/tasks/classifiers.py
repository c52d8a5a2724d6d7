"""`ImageClassifier` and `AudioClassifier`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy.typing as npt

from tflite_ort.decode.scores import output_names
from tflite_ort.tasks.containers import ClassificationResult, Classifications
from tflite_ort.tasks.detectors import Choice
from tflite_ort.tasks.heads import heads_of
from tflite_ort.tasks.network import Network, networks
from tflite_ort.tasks.options import AudioRunningMode, BaseOptions
from tflite_ort.tasks.processors import ClassifierOptions
from tflite_ort.tasks.vision_task import Frame, ResultCallback, VisionTask, VisionTaskOptions
from tflite_ort.tasks.windows import SoundTask

Array = npt.NDArray[Any]


@dataclass
class ImageClassifierOptions(ClassifierOptions, VisionTaskOptions):
    """Options of `ImageClassifier`."""

    result_callback: ResultCallback | None = None


class ImageClassifier(VisionTask[ClassificationResult]):
    """What a picture shows, the surest class first."""

    _options_class = ImageClassifierOptions
    _takes_region = True

    def __init__(self, options: ImageClassifierOptions) -> None:
        super().__init__(options)
        (network,) = networks(options.base_options, {"classifier": "classifier"})
        self._classes = Classes(network, options)

    classify = VisionTask._on_image
    classify_for_video = VisionTask._on_video
    classify_async = VisionTask._on_stream

    def _result(self, frame: Frame) -> ClassificationResult:
        time = None if frame.seconds is None else round(frame.seconds * 1000)
        return ClassificationResult(self._classes(frame.pixels, roi=frame.rect), time)


class Classes:
    """What the outputs of a network tell, and which of its classes are given.

    Raises:
        ModelError: what the metadata say of scores is damaged.
        ValueError: options contradict each other.
    """

    def __init__(self, network: Network, options: Any) -> None:
        heads = heads_of(network.metadata, network.output_count, network.labels)
        self._heads = [(head, Choice.of(options, head.labels)) for head in heads]
        self._network, self._threshold = network, options.score_threshold

    def __call__(self, array: Array, **named: Any) -> list[Classifications]:
        """The classes to return for each output, best first."""
        found = self._network(array, **named)
        return [
            head.found(found[scores], choice, self._threshold, found[classes])
            for head, choice in self._heads
            for scores, classes in [output_names(head.number)]
        ]


@dataclass
class AudioClassifierOptions:
    """Options of `AudioClassifier`.

    Args:
        result_callback: in the stream mode, called with each result and its timestamp.
    """

    base_options: BaseOptions
    running_mode: AudioRunningMode = AudioRunningMode.AUDIO_CLIPS
    display_names_locale: str | None = None
    max_results: int | None = None
    score_threshold: float | None = None
    category_allowlist: Sequence[str] | None = None
    category_denylist: Sequence[str] | None = None
    result_callback: Callable[[ClassificationResult, int], None] | None = None


class AudioClassifier(SoundTask[ClassificationResult]):
    """What is heard in each window of a sound. Windows are as long as the model's input and follow
    each other without overlap; the last one is filled with silence.

    Raises:
        BridgeError: the model cannot be read or run, or is of another kind.
        ValueError: the options contradict each other.
    """

    _options_class = AudioClassifierOptions
    _model: ClassVar[Mapping[str, str]] = {"classifier": "audio classifier"}

    def __init__(self, options: AudioClassifierOptions) -> None:
        super().__init__(options)
        self._classes = Classes(self._network, options)

    classify = SoundTask._on_clip
    classify_async = SoundTask._on_block

    def _result(self, window: Array, time_ms: int) -> ClassificationResult:
        return ClassificationResult(self._classes(window), time_ms)
