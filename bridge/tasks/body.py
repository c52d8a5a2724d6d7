"""The body of one person, followed and calmed as MediaPipe's graphs for whole persons do it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.landmarkers import Found, Landmarker, Limits, smoothed
from tflite_ort.tasks.pose_landmarker import (
    PoseLandmarker,
    PoseLandmarkerOptions,
    mask_of,
    mean_side,
)
from tflite_ort.tasks.rects import Rect, Size, centred_rect
from tflite_ort.tasks.smoothing import OneEuro
from tflite_ort.tasks.vision_task import Frame

Array = npt.NDArray[Any]

# How much of a mask is kept where the new one is not sure, and the factors of the polynomial of the
# squared distance from a half that says how sure it is.
_KEPT = 0.7
_SURE = (5.68842, -0.748699, -57.8051, 291.309, -624.717)


class Body(PoseLandmarker):
    """As the task, but for what these graphs do otherwise: the region of the next picture is calmed
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


@dataclass
class Masks:
    """The masks of a person, float32 of the picture's size.

    Args:
        calm: keep some of the mask before where the new one is not sure.
    """

    calm: bool
    _last: Array | None = None

    def __call__(self, person: Mapping[str, Array], frame: Frame) -> Array:
        """The mask of a person in the next picture."""
        mask = np.array(mask_of(person, frame).numpy_view())
        if self.calm and self._last is not None and self._last.shape == mask.shape:
            mask = calmed(mask, self._last)
        self._last = mask
        return mask

    def forget(self) -> None:
        """Forget the pictures before."""
        self._last = None


def calmed(mask: Array, before: Array) -> Array:
    """A mask, and where it is not sure some of the one before."""
    squared = np.square(mask - np.float32(0.5))
    sure = np.zeros_like(squared)
    for factor in reversed(_SURE):
        sure = squared * (np.float32(factor) + sure)
    unsure = 1 - np.minimum(1, sure)
    mixed: Array = mask + (before - mask) * (unsure * np.float32(_KEPT))
    return mixed
