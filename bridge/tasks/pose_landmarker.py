"""`PoseLandmarker`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tflite_ort.tasks.containers import PoseLandmarkerResult, landmark_list, world_landmark_list
from tflite_ort.tasks.image import Image, ImageFormat
from tflite_ort.tasks.landmarkers import Found, Landmarker, Limits, smoothed
from tflite_ort.tasks.rects import Rect, Size, centred_rect, new_before_kept
from tflite_ort.tasks.smoothing import LowPass, OneEuro
from tflite_ort.tasks.vision_task import Frame, ResultCallback, VisionTaskOptions

Array = npt.NDArray[Any]

_SCALE = 1.25
_OVERLAP = 0.5


@dataclass
class PoseLandmarkerOptions(VisionTaskOptions):
    """Options of `PoseLandmarker`."""

    num_poses: int = 1
    min_pose_detection_confidence: float = 0.5
    min_pose_presence_confidence: float = 0.5
    min_tracking_confidence: float = 0.5
    output_segmentation_masks: bool = False
    result_callback: ResultCallback | None = None


@dataclass
class _Filters:
    """What calms one person."""

    points: OneEuro = field(default_factory=lambda: OneEuro(0.05, 80.0))
    world: OneEuro = field(default_factory=lambda: OneEuro(0.1, 40.0))
    visibility: LowPass = field(default_factory=lambda: LowPass(0.1))


class PoseLandmarker(Landmarker[PoseLandmarkerResult]):
    """People as 33 points each, from a bundle of a pose detector (``pose_detector``) and a landmark
    network (``pose_landmarks_detector``)."""

    _options_class = PoseLandmarkerOptions
    _models: ClassVar[Mapping[str, str]] = {
        "pose_detector": "pose detector",
        "pose_landmarks_detector": "pose landmarks",
    }

    def __init__(self, options: PoseLandmarkerOptions) -> None:
        limits = Limits(
            options.num_poses,
            options.min_pose_detection_confidence,
            options.min_pose_presence_confidence,
            options.min_tracking_confidence,
            _OVERLAP,
        )
        super().__init__(options, limits)
        self._filters: _Filters | None = None

    def _associated(self, tracked: Sequence[Rect], found: Sequence[Rect]) -> list[Rect]:
        return new_before_kept(tracked, found, self._limits.tracking)

    def _next_rect(self, outputs: Mapping[str, Array], size: Size) -> Rect:
        middle, edge = outputs["auxiliary_landmarks"][:, :2]
        return centred_rect(middle, edge, size).scaled(size, _SCALE, square=True)

    def _result(self, frame: Frame) -> PoseLandmarkerResult:
        found = self.found(frame)
        people = [dict(each.outputs) for each in found]
        if frame.seconds is not None and self._limits.number == 1:
            people = [self._smoothed(each, frame, frame.seconds) for each in found]
            if not people:
                self._filters = None
        seen = [(each["visibility"], each["presence"]) for each in people]
        masks = None
        if self._options.output_segmentation_masks:
            masks = [mask_of(each, frame) for each in people]
        pairs = list(zip(people, seen, strict=True))
        return PoseLandmarkerResult(
            [landmark_list(each["landmarks"], *sure) for each, sure in pairs],
            [world_landmark_list(each["world_landmarks"], *sure) for each, sure in pairs],
            masks,
        )

    def _seen_scale(self, found: Found, size: Size) -> float:
        """How large a person is seen, in pixels."""
        return mean_side(found.rect, size)

    def _smoothed(self, found: Found, frame: Frame, seconds: float) -> dict[str, Array]:
        filters = self._filters = self._filters or _Filters()
        outputs, size = found.outputs, frame.size
        scale = self._seen_scale(found, size)
        return {
            **outputs,
            "landmarks": smoothed(filters.points, found.points, size, seconds, scale),
            "world_landmarks": filters.world(outputs["world_landmarks"], seconds),
            "visibility": filters.visibility(outputs["visibility"]),
        }


def mean_side(rect: Rect, size: Size) -> float:
    """The mean of the sides of a rectangle, in pixels of a picture of this size."""
    return float(np.mean([rect.width * size[0], rect.height * size[1]]))


def mask_of(outputs: Mapping[str, Array], frame: Frame) -> Image:
    """The mask of the region as one of the picture: 0 outside the region."""
    mask, matrix = outputs["mask"], outputs["projection"].astype(np.float64)
    width, height = frame.size
    inverse = np.linalg.inv(matrix[:2])
    rows, columns = np.mgrid[:height, :width]
    points = np.stack([columns / width, rows / height], -1) - matrix[2]
    at = (points @ inverse) * mask.shape[::-1]
    return Image(ImageFormat.VEC32F1, _sampled(mask, at[..., 0], at[..., 1]))


def _sampled(mask: Array, x: Array, y: Array) -> Array:
    """Bilinear values of a mask, 0 around it."""
    framed = np.pad(mask, 1)
    height, width = framed.shape
    x, y = np.clip(x + 1, 0, width - 1.001), np.clip(y + 1, 0, height - 1.001)
    left, top = x.astype(np.int64), y.astype(np.int64)
    across, down = x - left, y - top
    upper = framed[top, left] * (1 - across) + framed[top, left + 1] * across
    lower = framed[top + 1, left] * (1 - across) + framed[top + 1, left + 1] * across
    values: Array = (upper * (1 - down) + lower * down).astype(np.float32)
    return values
