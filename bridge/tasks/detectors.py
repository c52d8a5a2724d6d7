"""`FaceDetector` and `ObjectDetector`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.containers import (
    BoundingBox,
    Category,
    Detection,
    DetectionResult,
    NormalizedKeypoint,
)
from tflite_ort.tasks.network import networks
from tflite_ort.tasks.processors import ClassifierOptions
from tflite_ort.tasks.rects import Size
from tflite_ort.tasks.vision_task import DetectingTask, Frame, ResultCallback, VisionTaskOptions

Array = npt.NDArray[Any]


@dataclass
class FaceDetectorOptions(VisionTaskOptions):
    """Options of `FaceDetector`."""

    min_detection_confidence: float = 0.5
    min_suppression_threshold: float = 0.3
    result_callback: ResultCallback | None = None


class FaceDetector(DetectingTask[DetectionResult]):
    """Faces as boxes with six keypoints: eyes, nose, mouth and ears.

    Examples:
        >>> detector = FaceDetector.create_from_model_path("face.tflite")     # doctest: +SKIP
        >>> detector.detect(picture).detections[0].bounding_box               # doctest: +SKIP
        BoundingBox(origin_x=187, origin_y=57, width=80, height=80)
    """

    _options_class = FaceDetectorOptions

    def __init__(self, options: FaceDetectorOptions) -> None:
        super().__init__(options)
        (self._network,) = networks(options.base_options, {"face_detector": "face detector"})

    def _result(self, frame: Frame) -> DetectionResult:
        found = self._network(
            frame.pixels,
            roi=frame.rect,
            min_score=float(self._options.min_detection_confidence),
            min_suppression_threshold=float(self._options.min_suppression_threshold),
        )
        return DetectionResult(
            [
                Detection(
                    pixel_box(box, frame.size),
                    [Category(0, float(score))],
                    [NormalizedKeypoint(x, y) for x, y in points.tolist()],
                )
                for box, score, points in zip(
                    found["boxes"], found["scores"], found["keypoints"], strict=True
                )
            ]
        )


@dataclass
class ObjectDetectorOptions(ClassifierOptions, VisionTaskOptions):
    """Options of `ObjectDetector`."""

    result_callback: ResultCallback | None = None


class ObjectDetector(DetectingTask[DetectionResult]):
    """Objects as boxes with labels."""

    _options_class = ObjectDetectorOptions

    def __init__(self, options: ObjectDetectorOptions) -> None:
        super().__init__(options)
        (self._network,) = networks(options.base_options, {"detector": "object detector"})
        self._choice = Choice.of(options, self._network.labels)
        self._allowed = {}
        if "allowed" in self._network.defaults:
            classes = range(len(self._network.defaults["allowed"]))
            allowed = [self._choice.category(number, 0.0) is not None for number in classes]
            self._allowed["allowed"] = np.array(allowed)

    def _result(self, frame: Frame) -> DetectionResult:
        threshold = self._options.score_threshold
        found = self._network(
            frame.pixels,
            roi=frame.rect,
            min_score=float(0.0 if threshold is None else threshold),
            **self._allowed,
        )
        detections = []
        for box, score, number in zip(
            found["boxes"], found["scores"].tolist(), found["classes"].tolist(), strict=True
        ):
            if (category := self._choice.category(number, score)) is not None:
                detections.append(Detection(pixel_box(box, frame.size), [category], []))
        return DetectionResult(detections[: self._choice.most])


@dataclass(frozen=True, slots=True)
class Choice:
    """Which classes a task gives, and how many."""

    labels: Sequence[str]
    allowed: frozenset[str]
    denied: frozenset[str]
    most: int | None

    @classmethod
    def of(cls, options: Any, labels: Sequence[str]) -> Choice:
        """What options say.

        Raises:
            ValueError: they both allow and deny, or ask for no class at all.
        """
        allowed = frozenset(options.category_allowlist or ())
        denied = frozenset(options.category_denylist or ())
        if allowed and denied:
            raise ValueError(
                "`category_allowlist` and `category_denylist` are mutually exclusive options."
            )
        most = options.max_results
        if most == 0:
            raise ValueError("Invalid `max_results` option: value must be != 0.")
        return cls(labels, allowed, denied, most if most is not None and most > 0 else None)

    def category(self, number: int, score: float) -> Category | None:
        """A class as a result; None where it is not to be given."""
        label = self.labels[number] if 0 <= number < len(self.labels) else ""
        if label in self.denied or (self.allowed and label not in self.allowed):
            return None
        return Category(number, score, None, label)


def pixel_box(box: Array, size: Size) -> BoundingBox:
    """A box (left, top, right, bottom) in 0..1 as whole pixels, cut towards 0. One that begins
    outside the picture begins at its edge, with the size that it has. What is no number is 0."""
    left, top, right, bottom = box.tolist()
    width, height = size
    across, down = (right - left) * width, (bottom - top) * height
    x, y, across, down = (
        int(min(max(0, number), most))  # 0 first: the larger one of 0 and NaN is then 0
        for number, most in (
            (left * width, width),
            (top * height, height),
            (across, width),
            (down, height),
        )
    )
    return BoundingBox(x, y, across, down)
