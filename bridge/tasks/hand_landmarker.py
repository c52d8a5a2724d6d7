"""`HandLandmarker`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.containers import (
    Category,
    HandLandmarkerResult,
    landmark_list,
    world_landmark_list,
)
from tflite_ort.tasks.landmarkers import Found, Landmarker, Limits
from tflite_ort.tasks.rects import Rect, Size, extent, hand_rect, kept_before_new
from tflite_ort.tasks.vision_task import Frame, ResultCallback, VisionTaskOptions

Array = npt.NDArray[Any]

# Two hands of which so many points are so near, in parts of the palm's size, are one.
_SAME_POINTS, _SAME_DISTANCE, _SAME_OVERLAP = 10, 0.2, 0.2
_PALM_CORNERS = [0, 5, 17]


@dataclass
class HandLandmarkerOptions(VisionTaskOptions):
    """Options of `HandLandmarker`."""

    num_hands: int = 1
    min_hand_detection_confidence: float = 0.5
    min_hand_presence_confidence: float = 0.5
    min_tracking_confidence: float = 0.5
    result_callback: ResultCallback | None = None


class HandLandmarker(Landmarker[HandLandmarkerResult]):
    """Hands as 21 points each, from a bundle of a palm detector (``hand_detector``) and a landmark
    network (``hand_landmarks_detector``)."""

    _options_class = HandLandmarkerOptions
    _models: ClassVar[Mapping[str, str]] = {
        "hand_detector": "palm detector",
        "hand_landmarks_detector": "hand landmarks",
    }

    def __init__(self, options: HandLandmarkerOptions) -> None:
        limits = Limits(
            options.num_hands,
            options.min_hand_detection_confidence,
            options.min_hand_presence_confidence,
            options.min_tracking_confidence,
        )
        super().__init__(options, limits)

    def _associated(self, tracked: Sequence[Rect], found: Sequence[Rect]) -> list[Rect]:
        return kept_before_new(tracked, found, self._limits.tracking)

    def _next_rect(self, outputs: Mapping[str, Array], size: Size) -> Rect:
        rect = hand_rect(outputs["landmarks"], size)
        return rect.scaled(size, 2.0, shift_y=-0.1, square=True)

    def _distinct(self, found: list[Found], size: Size) -> list[Found]:
        kept: list[Found] = []
        for each in found:
            if not any(_same(each.points, other.points, size) for other in kept):
                kept.append(each)
        return kept

    def _result(self, frame: Frame) -> HandLandmarkerResult:
        found = self.found(frame)
        return HandLandmarkerResult(
            [[handedness(float(each.outputs["handedness"]))] for each in found],
            [landmark_list(each.points) for each in found],
            [world_landmark_list(each.outputs["world_landmarks"]) for each in found],
        )


def handedness(right: float) -> Category:
    """Which hand it is, given how sure it is a right one."""
    index, score, name = (0, right, "Right") if right >= 0.5 else (1, 1 - right, "Left")
    return Category(index, score, name, name)


def _same(a: Array, b: Array, size: Size) -> bool:
    """Whether two hands are one."""
    one, two = (points[:, :2] * np.array(size) for points in (a, b))
    near = np.linalg.norm(one - two, axis=1) < _SAME_DISTANCE * max(_palm(one), _palm(two))
    bounds = [np.concatenate(extent(points)) for points in (one, two)]
    return bool(near.sum() >= _SAME_POINTS and _overlap(*bounds) > _SAME_OVERLAP)


def _palm(points: Array) -> float:
    corners = points[_PALM_CORNERS]
    return float(np.linalg.norm(corners - np.roll(corners, 1, axis=0), axis=1).max())


def _overlap(a: Array, b: Array) -> float:
    """Intersection over union of two boxes (left, top, right, bottom)."""
    sides = np.maximum(np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]), 0)
    common = sides.prod()
    union = (a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod() - common
    return float(common / union) if union > 0 else 0.0
