"""`mediapipe.solutions.pose`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.connections import PoseLandmarksConnections
from tflite_ort.tasks.landmarkers import Found, Landmarker, Limits, smoothed
from tflite_ort.tasks.messages import LandmarkList, NormalizedLandmarkList
from tflite_ort.tasks.points import PoseLandmark as PoseLandmark
from tflite_ort.tasks.pose_landmarker import (
    PoseLandmarker,
    PoseLandmarkerOptions,
    mask_of,
    mean_side,
)
from tflite_ort.tasks.rects import Rect, Size, centred_rect
from tflite_ort.tasks.smoothing import OneEuro
from tflite_ort.tasks.solutions.models import bundled
from tflite_ort.tasks.solutions.solution import Solution, mode, points_message
from tflite_ort.tasks.vision_task import Frame

Array = npt.NDArray[Any]

POSE_CONNECTIONS = frozenset(
    (each.start, each.end) for each in PoseLandmarksConnections.POSE_LANDMARKS
)
_NETWORKS = ("lite", "full", "heavy")
_OVERLAP = 0.3
# How much of a mask is kept where the new one is not sure, and the factors of the polynomial of the
# squared distance from a half that says how sure it is.
_KEPT = 0.7
_SURE = (5.68842, -0.748699, -57.8051, 291.309, -624.717)


class _Body(PoseLandmarker):
    """As the task, but for what its graph does otherwise: the region of the next picture is calmed
    too."""

    def __init__(self, options: PoseLandmarkerOptions, limits: Limits) -> None:
        Landmarker.__init__(self, options, limits)
        self.forget()

    def forget(self) -> None:
        """Forget the pictures before."""
        super().forget()
        self._filters = None
        self._circle = OneEuro(0.01, 10.0)
        self._seconds = 0.0

    def people(self, frame: Frame, calm: bool) -> list[Mapping[str, Array]]:
        """What the landmark network says of the people in a picture, calmed if asked for."""
        self._seconds = frame.seconds or 0.0
        found = self.found(frame)
        if not found:
            self._filters, self._circle = None, OneEuro(0.01, 10.0)
        if calm:
            return [self._smoothed(each, frame, self._seconds) for each in found]
        return [each.outputs for each in found]

    def _seen_scale(self, found: Found, size: Size) -> float:
        return mean_side(_rect(found.outputs["auxiliary_landmarks"], size), size)

    def _next_rect(self, outputs: Mapping[str, Array], size: Size) -> Rect:
        points = outputs["auxiliary_landmarks"]
        if self._streams:
            scale = mean_side(_rect(points, size), size)
            points = smoothed(self._circle, points, size, self._seconds, scale)
        return _rect(points, size).scaled(size, self._region.scale, square=True)


def _rect(points: Array, size: Size) -> Rect:
    return centred_rect(points[0, :2], points[1, :2], size)


class Pose(Solution):
    """The body of a person as 33 points.

    Args:
        static_image_mode: look for a person in each picture anew.
        model_complexity: 0, 1 or 2; MediaPipe's package has the network of 1 alone.
        enable_segmentation: give a mask of the person too.
        min_tracking_confidence: how sure the landmark network has to be.
    """

    _outputs: ClassVar = ("pose_landmarks", "pose_world_landmarks", "segmentation_mask")

    def __init__(
        self,
        static_image_mode: bool = False,
        model_complexity: int = 1,
        smooth_landmarks: bool = True,
        enable_segmentation: bool = False,
        smooth_segmentation: bool = True,
        min_detection_confidence: float = 0.5,
        min_tracking_confidence: float = 0.5,
    ) -> None:
        super().__init__(static_image_mode)
        base = bundled(
            {
                "pose_detector": "pose_detection/pose_detection.tflite",
                "pose_landmarks_detector": (
                    f"pose_landmark/pose_landmark_{_NETWORKS[model_complexity]}.tflite"
                ),
            }
        )
        limits = Limits(1, min_detection_confidence, min_tracking_confidence, 0.5, _OVERLAP)
        self._task = _Body(PoseLandmarkerOptions(base, mode(static_image_mode)), limits)
        self._calm = smooth_landmarks and not static_image_mode
        self._masks = enable_segmentation
        self._calm_mask = smooth_segmentation and not static_image_mode
        self._mask: Array | None = None

    def _found(self, frame: Frame) -> Mapping[str, Any]:
        people = self._task.people(frame, self._calm)
        if not people:
            self._mask = None
            return {}
        (person,) = people
        sure = person["visibility"]
        return {
            "pose_landmarks": points_message(NormalizedLandmarkList, person["landmarks"], sure),
            "pose_world_landmarks": points_message(LandmarkList, person["world_landmarks"], sure),
            "segmentation_mask": self._masked(person, frame) if self._masks else None,
        }

    def _masked(self, person: Mapping[str, Array], frame: Frame) -> Array:
        mask = np.array(mask_of(person, frame).numpy_view())
        if self._calm_mask and self._mask is not None and self._mask.shape == mask.shape:
            mask = calmed(mask, self._mask)
        self._mask = mask
        return mask

    def reset(self) -> None:
        """Forget the pictures before."""
        self._task.forget()
        self._mask = None


def calmed(mask: Array, before: Array) -> Array:
    """A mask, and where it is not sure some of the one before."""
    squared = np.square(mask - np.float32(0.5))
    sure = np.zeros_like(squared)
    for factor in reversed(_SURE):
        sure = squared * (np.float32(factor) + sure)
    unsure = 1 - np.minimum(1, sure)
    mixed: Array = mask + (before - mask) * (unsure * np.float32(_KEPT))
    return mixed
