"""`mediapipe.solutions.pose`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from tflite_ort.tasks.body import Body, Masks
from tflite_ort.tasks.connections import PoseLandmarksConnections
from tflite_ort.tasks.landmarkers import Limits
from tflite_ort.tasks.messages import LandmarkList, NormalizedLandmarkList
from tflite_ort.tasks.points import PoseLandmark as PoseLandmark
from tflite_ort.tasks.pose_landmarker import PoseLandmarkerOptions
from tflite_ort.tasks.solutions.models import bundled
from tflite_ort.tasks.solutions.solution import Solution, mode, points_message
from tflite_ort.tasks.vision_task import Frame

POSE_CONNECTIONS = frozenset(
    (each.start, each.end) for each in PoseLandmarksConnections.POSE_LANDMARKS
)
_NETWORKS = ("lite", "full", "heavy")
_OVERLAP = 0.3


def pose_files(complexity: int) -> dict[str, str]:
    """The networks for a body, as `bundled` takes them."""
    return {
        "pose_detector": "pose_detection/pose_detection.tflite",
        "pose_landmarks_detector": f"pose_landmark/pose_landmark_{_NETWORKS[complexity]}.tflite",
    }


def pose_limits(detection: float, tracking: float) -> Limits:
    """The limits for a single person."""
    return Limits(1, detection, tracking, 0.5, _OVERLAP)


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
        options = PoseLandmarkerOptions(
            bundled(pose_files(model_complexity)), mode(static_image_mode)
        )
        self._task = Body(options, pose_limits(min_detection_confidence, min_tracking_confidence))
        self._calm = smooth_landmarks and not static_image_mode
        self._has_masks = enable_segmentation
        self._masks = Masks(smooth_segmentation and not static_image_mode)

    def _found(self, frame: Frame) -> Mapping[str, Any]:
        people = self._task.people(frame, self._calm)
        if not people:
            self._masks.forget()
            return {}
        mask = self._masks(people[0], frame) if self._has_masks else None
        return {**pose_messages(people[0]), "segmentation_mask": mask}

    def reset(self) -> None:
        """Forget the pictures before."""
        self._task.forget()
        self._masks.forget()


def pose_messages(person: Mapping[str, Any]) -> dict[str, Any]:
    """What a landmark network says of a person, as fields of a result."""
    sure = person["visibility"]
    return {
        "pose_landmarks": points_message(NormalizedLandmarkList, person["landmarks"], sure),
        "pose_world_landmarks": points_message(LandmarkList, person["world_landmarks"], sure),
    }
