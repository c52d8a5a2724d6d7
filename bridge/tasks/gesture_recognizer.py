"""`GestureRecognizer`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tflite_ort.bundles import open_bundle
from tflite_ort.tasks.classifiers import Classes
from tflite_ort.tasks.containers import (
    Category,
    GestureRecognizerResult,
    landmark_list,
    world_landmark_list,
)
from tflite_ort.tasks.hand_landmarker import HandLandmarker, HandLandmarkerOptions, handedness
from tflite_ort.tasks.network import Network, networks
from tflite_ort.tasks.options import RunningMode, TwoNames
from tflite_ort.tasks.processors import ClassifierOptions
from tflite_ort.tasks.vision_task import Frame, ResultCallback, VisionTask, VisionTaskOptions

Array = npt.NDArray[Any]

# The class of what is no gesture, in every classifier.
_BACKGROUND = "None"
_EMBEDDER = "gesture_embedder"
# The better one first.
_CLASSIFIERS = ("custom_gesture_classifier", "canned_gesture_classifier")


@dataclass
class _Options(VisionTaskOptions):
    num_hands: int = 1
    min_hand_detection_confidence: float = 0.5
    min_hand_presence_confidence: float = 0.5
    min_tracking_confidence: float = 0.5
    canned_gesture_classifier_options: ClassifierOptions = field(default_factory=ClassifierOptions)
    custom_gesture_classifier_options: ClassifierOptions = field(default_factory=ClassifierOptions)
    result_callback: ResultCallback | None = None


class GestureRecognizerOptions(TwoNames, _Options):
    """Options of `GestureRecognizer`; some have newer names too."""

    _OTHERS: ClassVar = {
        f"{kind}_gestures_classifier_options": f"{kind}_gesture_classifier_options"
        for kind in ("canned", "custom")
    }


@dataclass(frozen=True, slots=True)
class _Classifier:
    """A network that names gestures."""

    network: Network
    classes: Classes

    def best(self, embedding: Array) -> Category | None:
        """The surest gesture; None where none counts."""
        found = self.classes(embedding.reshape(self.network.input_shape))[0].categories
        return found[0] if found else None


class GestureRecognizer(VisionTask[GestureRecognizerResult]):
    """Gestures of hands, from a bundle of the hand landmarker's networks, of a network that turns a
    hand's points into a vector (``gesture_embedder``), and of one or two that name such vectors
    (``canned_gesture_classifier``, ``custom_gesture_classifier``)."""

    _options_class = GestureRecognizerOptions

    def __init__(self, options: GestureRecognizerOptions) -> None:
        super().__init__(options)
        alone = options.running_mode is RunningMode.IMAGE
        self._hands = HandLandmarker(
            HandLandmarkerOptions(
                options.base_options,
                RunningMode.IMAGE if alone else RunningMode.VIDEO,
                num_hands=options.num_hands,
                min_hand_detection_confidence=options.min_hand_detection_confidence,
                min_hand_presence_confidence=options.min_hand_presence_confidence,
                min_tracking_confidence=options.min_tracking_confidence,
            )
        )
        there = {entry.stem for entry in open_bundle(options.base_options.source).models}
        named = [each for each in _CLASSIFIERS if each in there] or [_CLASSIFIERS[-1]]
        kinds = {_EMBEDDER: "gesture embedder", **dict.fromkeys(named, "classifier")}
        self._embedder, *classifiers = networks(options.base_options, kinds)
        self._classifiers = [
            _Classifier(network, Classes(network, getattr(options, f"{name}_options")))
            for network, name in zip(classifiers, named, strict=True)
        ]

    recognize = VisionTask._on_image
    recognize_for_video = VisionTask._on_video
    recognize_async = VisionTask._on_stream

    def _result(self, frame: Frame) -> GestureRecognizerResult:
        hands = [each.outputs for each in self._hands.found(frame)]
        return GestureRecognizerResult(
            [self._gestures(hand, frame) for hand in hands],
            [[handedness(float(hand["handedness"]))] for hand in hands],
            [landmark_list(hand["landmarks"]) for hand in hands],
            [world_landmark_list(hand["world_landmarks"]) for hand in hands],
        )

    def _gestures(self, hand: Any, frame: Frame) -> list[Category]:
        """The gesture of a hand: of the first classifier that sees one, or that there is none."""
        vector = self._embedder(
            hand["landmarks"],
            handedness=hand["handedness"],
            world_landmarks=hand["world_landmarks"],
            size=np.array(frame.size, np.float32),
            rotation=float(frame.rect.rotation),
        )["embedding"]
        found = [each.best(vector) for each in self._classifiers]
        seen = [each for each in found if each is not None]
        named = [each for each in seen if each.category_name != _BACKGROUND]
        return [Category(-1, each.score, "", each.category_name) for each in (named or seen)[:1]]
